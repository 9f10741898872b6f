"""Requests that wait for the next change of the feed: one look at the store a second, for all of them together."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

from app.api.caller import Caller
from app.history.change import Change
from app.history.redis_changes import ChangeId, Position, RedisChanges
from app.loop.admission import CallerShares, Refused, ignore, refusal
from app.loop.background import BackgroundTask
from app.loop.single_flight import SingleFlight
from app.store.guarded_client import StoreDown

POLLS_AT_ONCE, POLLS_PER_CALLER = 512, 64
"""Requests that wait at the same time, in all and per API key or address; further ones are answered 503."""

POLL_PAUSE = 1.0
"""Seconds between two looks at the store while requests wait."""

WAIT_PER_REQUEST = 10.0
"""Seconds of waiting that one request of a quota pays for; a longer wait is charged as several requests."""

READS_AT_ONCE = 8
"""Requests that read a new change from the store at the same time, after they have waited for it."""

Found: TypeAlias = Sequence[tuple[ChangeId, Change]]


class ChangePolls:
    """The requests of this process that wait for changes. `stopping`: set when the process is about to end."""

    def __init__(
        self,
        feed: RedisChanges,
        stopping: asyncio.Event,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        refused: Refused = ignore,
    ) -> None:
        """`refused` is called with "changes" for each request that is refused because too many wait."""
        self._feed = feed
        self._stopping = stopping
        self._monotonic = monotonic
        too_many = refusal("changes", refused, "Too many requests wait for changes", 10)
        self._polls = CallerShares(POLLS_AT_ONCE, POLLS_PER_CALLER, too_many)
        self._looks: SingleFlight[str, ChangeId | None] = SingleFlight(BackgroundTask.CHANGE_LOOKS, expected=StoreDown)
        self._reads = asyncio.Semaphore(READS_AT_ONCE)

    async def read(self, caller: Caller, after: Position, limit: int, wait: float) -> Found:
        """Up to `limit` changes after a position, waiting up to `wait` seconds for the first one.

        None are returned when the process stops. Raises ChangesMissed, StoreDown, Overloaded if too many requests wait,
        and Problem (401) if the API key of this one is revoked meanwhile.
        """
        page = await self._feed.read(after, limit)
        if page.changes or wait <= 0 or self._stopping.is_set():
            return page.changes
        with self._polls.admitted(caller.id):
            began = self._monotonic()
            try:
                while (left := began + wait - self._monotonic()) > 0 and not self._stopping.is_set():
                    try:
                        async with asyncio.timeout(left):
                            newest = await self._looks.do("newest", self._look)
                    except TimeoutError:
                        break
                    caller.refuse_revoked()
                    if newest != page.newest:
                        async with self._reads:
                            page = await self._feed.read(page.last, limit)  # `last` is also after unreadable entries
                        if page.changes:
                            break
            finally:
                caller.charge_on_credit(int((self._monotonic() - began) / WAIT_PER_REQUEST))
        return page.changes

    async def aclose(self) -> None:
        """End a look that is under way."""
        await self._looks.aclose()

    async def _look(self) -> ChangeId | None:
        """The newest change in POLL_PAUSE seconds, or at once when the process stops."""
        try:
            async with asyncio.timeout(POLL_PAUSE):
                await self._stopping.wait()
        except TimeoutError:
            pass
        return await self._feed.newest()
