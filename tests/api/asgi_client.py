"""Call an ASGI application directly: with bytes that no client would send, and at a fifth of a client's cost."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn
from urllib.parse import quote

from starlette.types import ASGIApp, Message

PATIENCE = 150.0
"""Seconds after which a request fails, even on a busy machine."""

JSON_ROUTES = [
    ("POST", "/v1/allowed"),
    ("POST", "/v1/permits"),
    ("POST", "/v1/permits/batch"),
    ("POST", "/v1/test"),
    ("POST", "/v1/indexing"),
    ("POST", "/v1/permits/x/outcome"),
    ("PUT", "/v1/overrides/x"),
]
"""The method and path of every route that takes a JSON body."""


class Answer(NamedTuple):
    status: int
    headers: Mapping[bytes, bytes]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, parsed as strict JSON."""
        return json.loads(self.body.decode("utf-8"), parse_constant=_no_json)


def _no_json(name: str) -> NoReturn:
    raise AssertionError(f"{name} is not valid JSON")


async def request(
    app: ASGIApp,
    method: str,
    path: str,
    query: bytes = b"",
    body: bytes = b"",
    headers: Sequence[tuple[bytes, bytes]] = ((b"content-type", b"application/json"),),
) -> Answer:
    """Send a request to the application; the bytes may be invalid."""
    sent = [body[: len(body) // 2], body[len(body) // 2 :]]
    sent_messages: list[Message] = []
    over = asyncio.Event()

    async def receive() -> Message:
        if not sent:
            await over.wait()
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": sent.pop(0), "more_body": bool(sent)}

    async def send(message: Message) -> None:
        sent_messages.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            over.set()

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": quote(path).encode(),
        "root_path": "",
        "query_string": query,
        "headers": [(b"host", b"localhost"), *headers],
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 80),
        "state": {},
    }
    async with asyncio.timeout(PATIENCE):
        await app(scope, receive, send)
    assert over.is_set()
    pieces = [message.get("body", b"") for message in sent_messages[1:]]
    return Answer(sent_messages[0]["status"], dict(sent_messages[0]["headers"]), b"".join(pieces))
