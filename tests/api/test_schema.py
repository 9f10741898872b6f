"""Every route against schemathesis: valid requests by its description, and invalid ones."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from app.main.service import create
from tests.api.document import DOCUMENT
from tests.api.service import settings_on
from tests.origins import Names, serve, text

EXAMPLES = 4
"""Requests per route and kind."""


def test_every_route_conforms_to_its_schema(store_url: str) -> None:
    # Each process of the tests collects this file, and schemathesis takes half a second to import.
    from tests.api.schema_fuzz import broken_promises

    with running(store_url) as url:
        broken = broken_promises(DOCUMENT, url, EXAMPLES)
    assert not broken, "\n\n".join(broken)


@contextmanager
def running(store_url: str) -> Iterator[str]:
    """The URL of the service in a thread; host names resolve to a small origin, or not at all."""
    ready = threading.Event()
    found: list[tuple[str, uvicorn.Server]] = []

    async def run() -> None:
        async with serve(text(200, "User-agent: *\nDisallow: /private/\nCrawl-delay: 5\n")) as origin:
            settings = settings_on(store_url, fetch_timeout=1.0, access_log=False)
            app = create(settings, resolver=Names({"a.test": [str(origin.address)]}))
            server = uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False))
            # Name the protocol: asyncio disables Nagle's algorithm only if it is given.
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            listener.bind(("127.0.0.1", 0))
            found.append((f"http://127.0.0.1:{listener.getsockname()[1]}", server))
            ready.set()
            await server.serve([listener])

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    ready.wait(30)
    url, server = found[0]
    try:
        yield url
    finally:
        server.should_exit = True
        thread.join()
