"""A service that says what a test wants said, by the contract of `POST /v1/permits`; and a clock that sleepers move."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any, TypeAlias
from urllib.parse import unquote

import httpx

from tests.origins import Exchange, head

Said: TypeAlias = Mapping[str, object] | Exception | httpx.Response
Says: TypeAlias = Said | Callable[[Mapping[str, Any]], Said]


def allow(wait: float = 0.0, interval: float = 1.0, permit: str = "cGVybWl0") -> dict[str, object]:
    """The page may be fetched in `wait` seconds."""
    verdict = {"verdict": "allow", "allowed": True, "reason": "no_match", "rule": None, "retry_at": None}
    slot = {"permit": permit, "go_at": "2026-11-21T18:30:00.000Z", "wait": wait, "interval": interval}
    return {**verdict, **slot, "retry_after": None, "degraded": False}


def wait_too_long(retry_after: float, interval: float = 1.0) -> dict[str, object]:
    """It may be, but others are before."""
    return {**allow(retry_after, interval), "permit": None, "go_at": None, "retry_after": retry_after}


def defer(retry_at: str) -> dict[str, object]:
    """It is not known yet."""
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


class Permitting:
    """Answers the first question with the first of `says`, and so on, and the last of them for ever.

    To be had as a transport of httpx, or on a socket of tests.origins.
    """

    def __init__(self, *says: Says, date: str = "Sat, 21 Nov 2026 18:30:00 GMT", backoff: float = 0.0) -> None:
        self._says = says
        self._date = date
        self._backoff = backoff
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.told: list[tuple[str, dict[str, Any]]] = []

    @property
    def transport(self) -> httpx.MockTransport:
        """The service without a wire; its answers are still to be read, as those on a wire are."""

        def answer(request: httpx.Request) -> httpx.Response:
            whole = self.answer(request)
            return httpx.Response(whole.status_code, headers=whole.headers, stream=httpx.ByteStream(whole.content))

        return httpx.MockTransport(answer)

    def answer(self, request: httpx.Request) -> httpx.Response:
        """The response to a request of either route."""
        said = json.loads(request.content)
        self.keys.append(request.headers.get("Authorization"))
        if request.url.path != "/v1/permits":
            permit = unquote(request.url.raw_path.decode()).removeprefix("/v1/permits/").removesuffix("/outcome")
            self.told.append((permit, said))
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
        """The same on a socket."""
        fields = _fields(exchange)
        body = await exchange.receive(int(fields["Content-Length"]))
        asked = httpx.Request("POST", f"http://service{exchange.path}", headers=fields, content=body)
        response = self.answer(asked)
        sent = {"Content-Length": str(len(response.content)), "Content-Type": "application/json"}
        if "Date" in response.headers:
            sent["Date"] = response.headers["Date"]
        await exchange.send(head(response.status_code, sent) + response.content)


class Relay:
    """A way to a real service, on a socket of tests.origins: `turns` are the instants that it gave, by URL."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.turns: dict[str, list[float]] = {}

    async def __call__(self, exchange: Exchange) -> None:
        """Pass a question on, and its answer back."""
        body = await exchange.receive(int(_fields(exchange)["Content-Length"]))
        async with httpx.AsyncClient(base_url=self._url, timeout=60.0) as client:
            response = await client.post(exchange.path, content=body, headers={"Content-Type": "application/json"})
        if go_at := response.json().get("go_at"):
            self.turns.setdefault(json.loads(body)["url"], []).append(datetime.fromisoformat(go_at).timestamp())
        sent = {name: value for name, value in response.headers.items() if name != "connection"}
        await exchange.send(head(response.status_code, sent) + response.content)

    @property
    def shortest(self) -> float:
        """Seconds between the two turns that are closest."""
        turns = sorted(turn for some in self.turns.values() for turn in some)
        return min(later - first for first, later in pairwise(turns))
