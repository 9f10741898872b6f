"""A fake service with answers from the test, by the contract of `POST /v1/permits`."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, TypeAlias
from urllib.parse import unquote

import httpx

from tests.origins import NO_TLS, Exchange, head

Said: TypeAlias = Mapping[str, object] | Exception | httpx.Response
Says: TypeAlias = Said | Callable[[Mapping[str, Any]], Said]


def allow(wait: float = 0.0, interval: float = 1.0, permit: str = "cGVybWl0") -> dict[str, object]:
    """The page may be fetched in `wait` seconds."""
    verdict = {"verdict": "allow", "allowed": True, "reason": "no_match", "rule": None, "retry_at": None}
    slot = {"permit": permit, "go_at": "2026-11-21T18:30:00.000Z", "wait": wait, "interval": interval}
    return {**verdict, **slot, "retry_after": None, "degraded": False}


def wait_too_long(retry_after: float, interval: float = 1.0) -> dict[str, object]:
    """The page is allowed, but its slot is too far away."""
    return {**allow(retry_after, interval), "permit": None, "go_at": None, "retry_after": retry_after}


def defer(retry_at: str) -> dict[str, object]:
    """The verdict is deferred."""
    none = dict.fromkeys(("permit", "go_at", "wait", "interval", "retry_after"))
    return {**allow(), **none, "verdict": "defer", "allowed": False, "reason": "unreachable", "retry_at": retry_at}


def disallow(pattern: str = "/private/", line: int = 2) -> dict[str, object]:
    """A rule of its robots.txt forbids it."""
    rule = {"directive": "disallow", "pattern": pattern, "line": line}
    none = dict.fromkeys(("permit", "go_at", "wait", "interval", "retry_after"))
    return {**allow(), **none, "verdict": "disallow", "allowed": False, "reason": "rule", "rule": rule}


def _fields(exchange: Exchange) -> httpx.Headers:
    lines = exchange.head.decode("latin-1").split("\r\n")[1:]
    return httpx.Headers([(name, value) for name, _, value in (line.partition(": ") for line in lines if line)])


def mock(library: Any, handler: Callable[[httpx.Request], httpx.Response]) -> Any:
    """A transport of httpx or httpx2 over a function for httpx."""

    def handle(request: Any) -> Any:
        try:
            asked = httpx.Request(
                request.method, str(request.url), headers=request.headers.raw, content=request.content
            )
            response = handler(asked)
        except httpx.HTTPError as error:
            raise getattr(library, type(error).__name__)(str(error)) from error
        stream = library.ByteStream(response.content)
        return library.Response(response.status_code, headers=response.headers.raw, stream=stream)

    return library.MockTransport(handle)


class Permitting:
    """Answers the first question with the first of `says`, and so on; the last one answers all further questions.

    To be had as a transport of httpx, or on a socket of tests.origins.
    """

    def __init__(self, *says: Says, date: str = "Sat, 21 Nov 2026 18:30:00 GMT", backoff: float = 0.0) -> None:
        self._says = says
        self._date = date
        self._backoff = backoff
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.reports: list[tuple[str, dict[str, Any]]] = []
        self.collected: list[dict[str, Any]] = []

    def transport(self, library: Any = httpx) -> Any:
        """The service as a transport of httpx or httpx2; its answers must be read, as from a socket."""
        return mock(library, self.answer)

    def answer(self, request: httpx.Request) -> httpx.Response:
        """The response to a request of either route."""
        said = json.loads(request.content)
        if request.url.path == "/v1/permits/outcomes":
            self.collected += said["items"]
            return httpx.Response(200, json={"outcomes": [{"released": False, "backoff": None}] * len(said["items"])})
        self.keys.append(request.headers.get("Authorization"))
        if request.url.path != "/v1/permits":
            permit = unquote(request.url.raw_path.decode()).removeprefix("/v1/permits/").removesuffix("/outcome")
            self.reports.append((permit, said))
            released = said.get("released") is True
            backoff = None if released else self._backoff
            return httpx.Response(200, json={"released": released, "backoff": backoff, "degraded": False})
        says = self._says[min(len(self.asked), len(self._says) - 1)]
        self.asked.append(said)
        answer = says(said) if callable(says) else says
        match answer:
            case Exception():
                raise answer
            case httpx.Response():
                return answer
            case _:
                return httpx.Response(200, json=answer, headers={"Date": self._date})

    async def __call__(self, exchange: Exchange) -> None:
        """The service on a socket."""
        fields = _fields(exchange)
        body = await exchange.receive(int(fields["Content-Length"]))
        asked = httpx.Request("POST", f"http://service{exchange.path}", headers=fields, content=body)
        response = self.answer(asked)
        sent = {"Content-Length": str(len(response.content)), "Content-Type": "application/json", "Connection": "close"}
        if "Date" in response.headers:
            sent["Date"] = response.headers["Date"]
        await exchange.send(head(response.status_code, sent) + response.content)


class Relay:
    """A proxy to a real service, on a socket of tests.origins; `turns` has the instants of granted slots, by URL.

    It defers a page whose URL contains `defers` for a second when it is asked about it for the first time.
    """

    def __init__(self, url: str, defers: str = " ") -> None:
        self._url = url
        self._defers = defers
        self.deferred: list[str] = []
        self.turns: dict[str, list[float]] = {}

    async def __call__(self, exchange: Exchange) -> None:
        """Forward a request, and return its response."""
        body = await exchange.receive(int(_fields(exchange)["Content-Length"]))
        url = json.loads(body).get("url", "")
        if self._defers in url and url not in self.deferred:
            self.deferred.append(url)
            later = json.dumps(defer((datetime.now(UTC) + timedelta(seconds=1)).isoformat())).encode()
            sent = {"Content-Length": str(len(later)), "Connection": "close"}
            await exchange.send(head(200, sent) + later)
            return
        async with httpx.AsyncClient(base_url=self._url, timeout=60.0, verify=NO_TLS) as client:
            response = await client.post(exchange.path, content=body, headers={"Content-Type": "application/json"})
        if go_at := response.json().get("go_at"):
            self.turns.setdefault(json.loads(body)["url"], []).append(datetime.fromisoformat(go_at).timestamp())
        sent = {**response.headers, "connection": "close"}
        await exchange.send(head(response.status_code, sent) + response.content)

    @property
    def shortest(self) -> float:
        """The shortest time between two slots, in seconds."""
        turns = sorted(turn for some in self.turns.values() for turn in some)
        return min(later - first for first, later in pairwise(turns))
