"""Decisions of one command by fetches of its own, without a service, a cache and a store."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from app.api.trials.reading import recheck_of
from app.cache.freshness import Snapshot, freshness, next_snapshot
from app.cache.result import Source, found
from app.decisions.evaluate import CachedFile, Decision, Question
from app.decisions.pasted import decide_by_file
from app.fetch.network import SystemResolver, client_tls
from app.main.fetching import fetcher_from
from app.main.operator_files import OperatorFiles
from app.main.settings import Settings
from robots_core.file import File
from robots_core.origin import Origin
from robots_core.robots.access import Validators
from robots_core.robots.judge import recognise_challenge


@asynccontextmanager
async def standalone(
    settings: Settings, operators: OperatorFiles
) -> AsyncIterator[Callable[[Question], Awaitable[Decision]]]:
    """Yield the function that decides. It fetches each file once, as the settings and the files of operators say."""
    resolver = SystemResolver()
    fetcher = fetcher_from(settings, resolver, client_tls(), operators.agents)
    files: dict[Origin, tuple[Snapshot, File]] = {}

    async def decide(question: Question) -> Decision:
        origin = question.origin
        if origin not in files:
            fetched = recognise_challenge(await fetcher.fetch(origin, Validators(), question.caller))
            snapshot = next_snapshot(None, fetched, time.time())
            files[origin] = snapshot, File(snapshot.access)
        now, (snapshot, file) = time.time(), files[origin]
        recheck = recheck_of(operators.model(origin.host, question.agent.recheck))
        cached = found(snapshot, freshness(snapshot, recheck, origin.key, now), Source.FETCHED)
        cached_file = CachedFile(cached, file.robots, version=file.version)
        return decide_by_file(question, cached_file, now, forbidden=settings.forbidden)

    try:
        yield decide
    finally:
        await fetcher.aclose()
        resolver.close()
