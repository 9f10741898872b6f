"""A running service, asked over HTTP by commands."""

import json
import os
import re
from collections.abc import Mapping
from types import TracebackType
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import httpcore

from app.cli.exit_codes import Failed, Parser
from app.fetch.network import client_tls
from app.origin import BadUrl, read_target

SERVER = "http://127.0.0.1:8080"
"""Where a service listens that was started with no settings."""

KEY = "ROBOTS_API_KEY"
"""The environment variable that holds the key to ask with; not an argument, since everyone can see those."""

TIMEOUT = 90.0
"""Seconds of silence after which an answer is given up: a fetch may hold one for a minute."""

ANSWER_LIMIT = 16 * 1024 * 1024
"""Octets of the longest answer that is read."""

_KEY = re.compile(r"[!-~]{1,512}")


class Away(Failed):
    """Nothing that speaks HTTP answers there now; the text says what was met."""


class Answer(NamedTuple):
    """What came back; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes


def add_server(parser: Parser, default: str | None) -> None:
    """The argument --server."""
    meaning = "ask this service" + (f"; {default} where none is named" if default else ", and fetch nothing here")
    parser.add_argument("--server", metavar="URL", default=default, help=f"{meaning} (a key for it: {KEY})")


class Service:
    """The service at a URL, over `connections` connections at most; may be used by several threads."""

    def __init__(self, url: str, *, connections: int = 1) -> None:
        """Raises Failed for a URL, or a key in the environment, that cannot be used."""
        self.url = url
        try:
            target = read_target(url)
        except BadUrl as error:
            raise Failed(f"The server cannot be asked: {error}.") from None
        self._base = target.origin.key + quote(target.path.partition("?")[0].rstrip("/"), safe="/%")
        self._headers: list[tuple[bytes | str, bytes | str]] = [("Accept", "application/json"), *_authorization()]
        tls = client_tls() if target.origin.scheme == "https" else None
        self._pool = httpcore.ConnectionPool(tls, max_connections=connections, max_keepalive_connections=connections)

    def __enter__(self) -> "Service":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.close()

    def get_object(self, path: str, parameters: Mapping[str, Any], *, expected: str) -> dict[str, Any]:
        """The JSON object that a GET answers with 200, which has the member `expected`; raises Failed for all else."""
        answer = self.get(path, parameters)
        try:
            told: dict[str, Any] = json.loads(answer.content)
            if answer.status != 200:
                raise Failed(f"{self.url} answers {answer.status}: {told['detail']}")
            _ = told[expected]
        except (ValueError, LookupError, TypeError, RecursionError):
            raise Failed(f"{self.url} answers {answer.status}, but not as a service of this kind does.") from None
        return told

    def get(self, path: str, parameters: Mapping[str, Any]) -> Answer:
        """The answer to a GET, a list being several parameters; raises Away, or Failed where it is too long."""
        url = f"{self._base}{path}?{urlencode(parameters, doseq=True)}"
        timeouts = dict.fromkeys(("connect", "read", "write", "pool"), TIMEOUT)
        try:
            with self._pool.stream("GET", url, headers=self._headers, extensions={"timeout": timeouts}) as response:
                content = b""
                for piece in response.iter_stream():
                    content += piece
                    if len(content) > ANSWER_LIMIT:
                        raise Failed(
                            f"{self.url} sends more than {ANSWER_LIMIT} octets: it is no service of this kind."
                        )
                headers = {name.lower().decode("latin-1"): value.decode("latin-1") for name, value in response.headers}
                return Answer(response.status, headers, content)
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, OSError) as error:
            raise Away(f"{self.url} does not answer: {str(error) or type(error).__name__}.") from error


def _authorization() -> list[tuple[str, str]]:
    key = os.environ.get(KEY, "")
    if not key:
        return []
    if not _KEY.fullmatch(key):
        raise Failed(f"{KEY} holds what no key is made of: it is printable ASCII without blanks.")
    return [("Authorization", f"Bearer {key}")]
