"""Cached origins add no objects for the garbage collector, whose pauses grow with each object that it visits."""

import gc
from itertools import pairwise

import pytest
from redis.asyncio import Redis

import app.decisions.parsed_files
import robots_core.origin
from app.cache.freshness import Recheck
from app.cache.robots_cache import RobotsCache
from app.cache.visits import RedisVisits, Visits
from app.decisions.cached_files import CachedFiles
from app.decisions.evaluate import Question, evaluate
from app.decisions.parsed_files import PARSED_FILES
from app.history.reader import HistoryReader
from app.store.guarded_client import GuardedClient
from robots_core.origin import Target, read_target
from robots_core.robots.access import Successful
from robots_core.robots.agents import read_agent
from robots_core.robots.dialects import DIALECTS
from tests.cache.web import Past, ScriptedWeb
from tests.doubles import Clock

MOST_VISITED = 90_000
"""The most objects of all parsed files, which take a full collection 20 to 40 ms."""

HELD = 50
RULES = "".join(f"Disallow: /{rule}\n" for rule in range(10))


def tracked() -> int:
    """The objects that a full collection visits."""
    gc.collect()
    gc.collect()  # a tuple within a tuple is untracked one collection later
    return len(gc.get_objects())


async def test_origins_beyond_the_parsed_files_leave_nothing_to_visit(
    cache: RobotsCache, web: ScriptedWeb, clock: Clock, store_client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.decisions.parsed_files, "PARSED_FILES", HELD)
    model = Recheck()
    files = CachedFiles(
        cache,
        HistoryReader(cache, Past(), clock),
        lambda _host, _name: model,
        Visits(RedisVisits(GuardedClient(store_client, monotonic=lambda: 0.0), clock=clock), clock),
        10**8,
    )

    async def ask(target: Target) -> None:
        web.finds(Successful(200, f"User-agent: *\n{RULES}Crawl-delay: 2\nSitemap: {target.url}\n".encode()))
        question = Question(target, read_agent("ExampleBot"), DIALECTS["rfc9309"])
        await files.get(target.origin)
        file = files.get_if_fresh(question, clock())
        assert file is not None
        assert evaluate(question, file, clock(), forbidden=True).rate is not None

    async def ask_about(first: int, last: int) -> int:
        for number in range(first, last):
            await ask(read_target(f"https://host-{number}.example/"))
        web.calls.clear()
        robots_core.origin._cached_origin.cache_clear()
        return tracked()

    few = await ask_about(0, 10)
    full = await ask_about(10, 2 * HELD)
    more = [await ask_about(first, first + 2 * HELD) for first in range(2 * HELD, 8 * HELD, 2 * HELD)]
    # Ended timers and new connections are visited, too, but not every time as many more.
    assert min(after - before for before, after in pairwise((full, *more))) < HELD
    assert (full - few) / (HELD - 10) * PARSED_FILES <= MOST_VISITED
