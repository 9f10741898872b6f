"""An origin to crawl, and its log."""

import math
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from ipaddress import IPv4Address
from itertools import count, zip_longest

from tests.origins import Exchange, text

TICK = 0.002
"""Seconds by which slots may seem closer than they are, since their instants are in milliseconds."""

HTML = {"Content-Type": "text/html", "Connection": "close"}

_numbers = count(1)


def new_address() -> str:
    """An address on loopback that this process has not used yet, for an origin that no service remembers."""
    return str(IPv4Address("127.2.0.0") + next(_numbers))


class Site:
    """An origin's pages by path, and the log of its requests, with instants (Unix seconds)."""

    def __init__(self, robots: str, pages: Mapping[str, str | Sequence[bytes]] | None = None) -> None:
        self._robots = robots
        self.version = sha256(robots.encode()).hexdigest()[:16]
        self._pages = pages or {}
        self.log: list[tuple[float, str]] = []

    async def __call__(self, exchange: Exchange) -> None:
        path = exchange.path
        self.log.append((time.time(), path))
        if path == "/robots.txt":
            await exchange.send(text(200, self._robots, {"Connection": "close"}))
            return
        page = self._pages.get(path, "a page")
        if isinstance(page, str):
            await exchange.send(text(200, page, HTML))
            return
        times = len(self.at(path))
        await exchange.send(page[min(times, len(page)) - 1])

    def at(self, path: str) -> list[float]:
        return [at for at, asked in self.log if asked == path]

    def ahead_of_turns(self, origin: str, turns: Mapping[str, Sequence[float]]) -> list[str]:
        """The paths requested outside a slot of their own; `turns` has the slots in Unix seconds, by URL."""
        early = []
        for path in set(self.paths) - {"/robots.txt"}:
            begun = sorted(turns.get(f"{origin}{path}", ()))
            pairs = zip_longest(sorted(self.at(path)), begun[: len(self.at(path))], fillvalue=math.inf)
            early += [path for asked, turn in pairs if asked < turn - TICK]
        return early

    @property
    def paths(self) -> list[str]:
        return [path for _, path in self.log]


def links(*paths: str) -> str:
    return "".join(f'<a href="{path}">a link</a>' for path in paths)
