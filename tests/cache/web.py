"""What the tests of the cache share: one origin, its files, and a web whose answers a test sets."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from app.cache.freshness import Recheck, Snapshot
from app.cache.robots_cache import RobotsCache
from app.history.versions import History, add, version_of
from robots_core.origin import Origin
from robots_core.robots.access import (
    Access,
    Cause,
    Fetched,
    Lifetime,
    NotModified,
    Successful,
    Unreachable,
    Validators,
)

SITE = Origin("https", "www.example.com", 443)
KEY = "robots:{https://www.example.com:443}"
FILE = Successful(200, b"User-agent: *\nDisallow: /a\n")
NEWER = Successful(200, b"User-agent: *\nDisallow: /b\n")
DOWN = Unreachable(Cause.SERVER_ERROR, 503)
TAGGED = Validators('"1"')
HOURLY = Lifetime(cache_control="max-age=3600")
DEFAULT = Recheck()


@dataclass
class ScriptedWeb:
    """The web as the cache sees it: `answer` is the result of every fetch, which waits for `let_go`."""

    answer: Fetched | Exception = field(default_factory=lambda: Fetched(FILE, None, TAGGED, HOURLY))
    calls: list[tuple[Origin, Validators]] = field(default_factory=list)
    requested: asyncio.Event = field(default_factory=asyncio.Event)
    let_go: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.let_go.set()

    def finds(self, access: Access | NotModified) -> None:
        self.answer = Fetched(access, None, TAGGED, HOURLY)

    async def fetch(self, origin: Origin, validators: Validators, caller: str) -> Fetched:
        self.calls.append((origin, validators))
        self.requested.set()
        await self.let_go.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Past:
    """Histories that are shared like the store, and written at once."""

    def __init__(self) -> None:
        self.noted: list[Snapshot] = []

    async def read(self, origin: Origin) -> History:
        return add((), map(version_of, self.noted), 2e9)

    def note(self, origin: Origin, ended: Snapshot, following: Snapshot | None) -> None:
        self.noted.append(ended)


NewCache = Callable[[], RobotsCache]
