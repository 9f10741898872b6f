"""schemathesis against a running service: every route must conform to its OpenAPI description."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import schemathesis
from hypothesis import strategies as st
from schemathesis import Case, CheckContext, Response
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema

from tests.operator_token import TOKEN_HEADER

FORMATS = {
    "http-url": st.sampled_from(["http://a.test/", "https://b.test/x?y#z", "HTTP://a.test", "http://[::1]:8080/ü"]),
    "crawler": st.sampled_from(["ExampleBot", "Mozilla/5.0 (compatible; Googlebot/2.1)", "*", "SeznamBot/4.0"]),
    "instant": st.sampled_from(["2026-11-21T18:30:00Z", "1999-12-31 23:59:59.5+01:00"]),
}
"""Conditions of these formats that a pattern cannot express."""


_ACCEPTED = ("2xx", "404", "409", "410", "422", "503")
_BY_CHANCE = {"examples": {"enabled": False}, "coverage": {"enabled": False}}


@schemathesis.serializer("application/x-ndjson")
def one_line(_context: object, value: object) -> bytes:
    """A stream of one line."""
    return json.dumps(value).encode() + b"\n"


@schemathesis.check
def described(_context: CheckContext, response: Response, case: Case[Any]) -> bool | None:
    """Only requests that violate the description are refused as such."""
    if case.meta is not None and case.meta.generation.mode.is_positive and response.status_code == 422:
        assert response.json()["type"] != "urn:robots-decisions:problem:bad-request", response.text
    return None


def broken_promises(description: Mapping[str, Any], url: str, examples: int, seed: int | None = None) -> list[str]:
    """What the service at `url` does against its description, each with a request that shows it.

    `examples` requests are made per route and kind, and those that cover the description systematically: the same ones
    in every run. With `seed`, only others, by chance.
    """
    for name, values in FORMATS.items():
        schemathesis.openapi.format(name, values)
    config = SchemathesisConfig.from_dict(
        {
            "base-url": url,
            "headers": dict(TOKEN_HEADER),
            "workers": 1,
            "request-timeout": 30,
            "generation": {"max-examples": examples, "deterministic": seed is None, "database": "none"},
            "phases": {"stateful": {"enabled": False}, **({} if seed is None else _BY_CHANCE)},
            "warnings": False,
            **({} if seed is None else {"seed": seed}),
            # A description cannot express everything, such as parameters that exclude each other. A type of problem
            # says so; `described` checks all other requests against the description.
            "operations": [
                # An item of a batch that violates the description fails alone, and the batch does not fail.
                {
                    "include-name": f"POST {path}",
                    "checks": {"negative_data_rejection": {"expected-statuses": ["200", "413", "415", "422"]}},
                }
                for path in ("/v1/allowed", "/v1/bundle", "/v1/permits/batch", "/v1/permits/outcomes")
            ]
            # Verdicts have no body, also those whose statuses are those of problems, which have one.
            + [
                {
                    "include-name": "GET /v1/check",
                    "checks": {
                        "content_type_conformance": {"enabled": False},
                        "response_schema_conformance": {"enabled": False},
                        "positive_data_acceptance": {"expected-statuses": [*_ACCEPTED, "403"]},
                        "not_a_server_error": {"expected-statuses": ["2xx", "4xx", "503"]},
                    },
                }
            ]
            # There is no change, so the answer would take as long as the request says.
            + [{"include-name": "GET /v1/changes", "parameters": {"wait": 0}}],
            "checks": {"positive_data_acceptance": {"expected-statuses": list(_ACCEPTED)}},
        }
    )
    schema = schemathesis.openapi.from_dict(dict(description), config=config)
    return list(_failures(from_schema(schema).execute()))


def _failures(stream: Iterator[events.EngineEvent]) -> Iterator[str]:
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
