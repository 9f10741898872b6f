"""An HTTP client of a running service, for commands."""

import json
import os
import re
from collections.abc import Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import quote, urlencode

import httpcore2

from app.cli.exit_codes import Failed, Parser
from app.fetch.network import client_tls
from robots_core.origin import BadUrl, read_target

DEFAULT_SERVER = "http://127.0.0.1:8080"
"""The default address of the service."""

API_KEY = "ROBOTS_API_KEY"
"""The environment variable with the API key. There is no argument for it, since other users can read arguments."""

SERVICE_TIMEOUT = 90.0
"""Seconds without a byte after which a request fails; the service may wait a minute for a fetch."""

ANSWER_LIMIT = 16 * 1024 * 1024
"""Bytes of the longest answer that is read."""

_SUCCESS = frozenset({200, 201})

_KEY = re.compile(r"[!-~]{1,512}")


class Answer(NamedTuple):
    """A response."""

    status: int
    content: bytes


def add_server(parser: Parser, default: str | None) -> None:
    """Add the argument --server."""
    meaning = "ask this service" + (f"; default {default}" if default else " instead of fetching from here")
    parser.add_argument("--server", metavar="URL", default=default, help=f"{meaning} (API key: ${API_KEY})")


class ServiceClient:
    """A client of the service at a URL, with one connection."""

    def __init__(self, url: str) -> None:
        """Raise Failed if the URL, or the API key in the environment, is malformed."""
        self.url = url
        try:
            target = read_target(url)
        except BadUrl as error:
            raise Failed(f"--server: {error}.") from None
        self._base = target.origin.key + quote(target.path.partition("?")[0].rstrip("/"), safe="/%")
        self._headers: list[tuple[bytes | str, bytes | str]] = [("Accept", "application/json"), *_authorization()]
        tls = client_tls() if target.origin.scheme == "https" else None
        self._pool = httpcore2.AsyncConnectionPool(tls, max_connections=1)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._pool.aclose()

    async def get_object(self, path: str, parameters: Mapping[str, Any], *, expected: str) -> dict[str, Any]:
        """GET a JSON object with the member `expected`. Raise Failed for any other response."""
        return self.object_in(await self.get(path, parameters), expected=expected)

    def object_in(self, answer: Answer, *, expected: str) -> dict[str, Any]:
        """The JSON object in a successful response, with the member `expected`. Raise Failed for any other."""
        try:
            found: dict[str, Any] = json.loads(answer.content)
            if answer.status not in _SUCCESS:
                raise Failed(f"{self.url} answers {answer.status}: {found['detail']}")
            _ = found[expected]
        except (ValueError, LookupError, TypeError, RecursionError):
            raise self.not_this_service(answer) from None
        return found

    async def get(self, path: str, parameters: Mapping[str, Any]) -> Answer:
        """GET a path; a list is sent as repeated parameters. Raise as `send`."""
        return await self.send("GET", f"{path}?{urlencode(parameters, doseq=True)}")

    async def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Answer:
        """Send a request, with JSON if it has a body. Raise Failed without a whole response."""
        content_type = [] if body is None else [("Content-Type", "application/json")]
        timeouts = dict.fromkeys(("connect", "read", "write", "pool"), SERVICE_TIMEOUT)
        try:
            async with self._pool.stream(
                method,
                f"{self._base}{path}",
                headers=[*self._headers, *content_type],
                content=None if body is None else json.dumps(body).encode(),
                extensions={"timeout": timeouts},
            ) as response:
                content = b""
                async for chunk in response.aiter_stream():
                    content += chunk
                    if len(content) > ANSWER_LIMIT:
                        raise Failed(f"{self.url} sends more than {ANSWER_LIMIT} bytes; is it this service?")
                return Answer(response.status, content)
        except (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError, OSError) as error:
            raise Failed(f"{self.url} does not respond: {str(error) or type(error).__name__}.") from error

    def not_this_service(self, answer: Answer) -> Failed:
        """The error for a response that this service would not send."""
        return Failed(f"{self.url} answers {answer.status} with an unexpected body; is it this service?")


def _authorization() -> list[tuple[str, str]]:
    key = os.environ.get(API_KEY, "")
    if not key:
        return []
    if not _KEY.fullmatch(key):
        raise Failed(f"{API_KEY} is not a valid API key: use printable ASCII without spaces.")
    return [("Authorization", f"Bearer {key}")]
