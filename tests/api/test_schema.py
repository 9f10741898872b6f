"""Every route, asked by schemathesis all that its description lets one ask, and much that it does not."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import schemathesis
import uvicorn
from fastapi import FastAPI
from hypothesis import strategies as st
from schemathesis import Case, CheckContext, Response
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema

from app.main import create
from tests.api.service import settings_on
from tests.origins import Names, serve, text

EXAMPLES = 25
"""How many requests the fuzzing makes per route and kind."""

FORMATS = {
    "http-url": st.sampled_from(["http://a.test/", "https://b.test/x?y#z", "HTTP://a.test", "http://[::1]:8080/ü"]),
    "crawler": st.sampled_from(["ExampleBot", "Mozilla/5.0 (compatible; Googlebot/2.1)", "*", "SeznamBot/4.0"]),
    "instant": st.sampled_from(["2026-11-21T18:30:00Z", "1999-12-31 23:59:59.5+01:00"]),
}
"""What a pattern cannot say of these formats."""


@schemathesis.check
def described(_context: CheckContext, response: Response, case: Case[Any]) -> bool | None:
    """Only what goes against the description is refused as such."""
    if case.meta is not None and case.meta.generation.mode.is_positive and response.status_code == 422:
        assert response.json()["type"] != "urn:robots-decisions:problem:bad-request", response.text
    return None


def test_every_route_keeps_to_its_description(store_url: str) -> None:
    for name, values in FORMATS.items():
        schemathesis.openapi.format(name, values)
    with running(store_url) as (app, url):
        config = SchemathesisConfig.from_dict(
            {
                "base-url": url,
                "workers": 1,
                "request-timeout": 10,
                "generation": {"max-examples": EXAMPLES, "deterministic": True, "database": "none"},
                "phases": {"stateful": {"enabled": False}},
                "warnings": False,
                # What a description cannot say, such as that two parameters exclude each other, is refused by a type
                # of problem that says it; `described` below holds all the rest to the description.
                "operations": [
                    # An item of a batch that goes against the description fails alone, and the batch does not.
                    {
                        "include-name": "POST /v1/allowed",
                        "checks": {"negative_data_rejection": {"expected-statuses": ["200", "413", "422"]}},
                    },
                    {
                        "include-name": "POST /v1/permits",
                        "checks": {"negative_data_rejection": {"expected-statuses": ["200", "413", "422"]}},
                    },
                ],
                "checks": {"positive_data_acceptance": {"expected-statuses": ["2xx", "404", "409", "422", "503"]}},
            }
        )
        schema = schemathesis.openapi.from_dict(app.openapi(), config=config)
        told = list(_told(from_schema(schema).execute()))
    assert not told, "\n\n".join(told)


def _told(stream: Iterator[events.EngineEvent]) -> Iterator[str]:
    seen = set()
    for event in stream:
        if isinstance(event, events.NonFatalError | events.FatalError):
            yield repr(event)
        if isinstance(event, events.ScenarioFinished):
            for label, checks in event.recorder.checks.items():
                for check in checks:
                    if check.failure_info is None:
                        continue
                    failure = check.failure_info.failure
                    case = event.recorder.cases[label].value
                    key = (case.operation.label, check.name, failure.title)
                    if key not in seen:
                        seen.add(key)
                        yield f"{key}\n{failure.message}\n{check.failure_info.code_sample}"


@contextmanager
def running(store_url: str) -> Iterator[tuple[FastAPI, str]]:
    """The application behind a real server in a thread; its names lead to a small origin, or nowhere."""
    ready = threading.Event()
    found: list[tuple[FastAPI, str, uvicorn.Server]] = []

    async def run() -> None:
        async with serve(text(200, "User-agent: *\nDisallow: /private/\nCrawl-delay: 5\n")) as origin:
            settings = settings_on(store_url, fetch_timeout=1.0, access_log=False)
            app = create(settings, resolver=Names({"a.test": [str(origin.address)]}))
            server = uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False))
            # The protocol is named, as asyncio sends small answers at once only where it is.
            listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            listening.bind(("127.0.0.1", 0))
            found.append((app, f"http://127.0.0.1:{listening.getsockname()[1]}", server))
            ready.set()
            await server.serve([listening])

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    ready.wait(30)
    app, url, server = found[0]
    try:
        yield app, url
    finally:
        server.should_exit = True
        thread.join()
