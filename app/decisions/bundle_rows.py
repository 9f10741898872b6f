"""The rows of a bundle: the robots.txt of origins, now or in the past, by which others decide without this service."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import NamedTuple

from app.cache.freshness import known_at
from app.decisions.cached_files import CachedFiles
from robots_core.content import version_id
from robots_core.origin import Origin
from robots_core.robots.access import Access

ROW_WAIT = 10.0
"""Seconds that a row may wait for a fetch, by default."""


class RowQuestion(NamedTuple):
    """Which file is wanted: that of `origin` now, or as it was at `as_of`, which is never fetched.

    `fetch`: fetch one that is missing or due, which takes `wait` seconds at most; a copy older than `max_age` seconds
    is due, too. `caller`: see Question.
    """

    origin: Origin
    as_of: datetime | None = None
    fetch: bool = False
    max_age: float | None = None
    wait: float = ROW_WAIT
    caller: str = ""


class BundleRow(NamedTuple):
    """What is known of an origin: what the fetch found, and the id of its version, None if the fetch failed.

    `valid_from` and `valid_until` are Unix seconds: when this content was found first, and when it is due to be fetched
    again, or in the past, the last instant at which it is known to have been in use.
    """

    origin: Origin
    access: Access
    valid_from: float
    valid_until: float
    version: str | None


class NothingKnown(Exception):
    """Nothing is known of an origin now; the message names it, and says what to do."""

    def __init__(self, question: RowQuestion) -> None:
        robots_url = question.origin.robots_url
        if question.fetch:
            super().__init__(f"{robots_url} is still being fetched; ask again.")
        else:
            super().__init__(f"{robots_url} is not stored; ask with fetch to have it fetched.")


class BundleRows:
    """Finds the rows of bundles. Operators' overrides do not apply, no visit is counted, and nothing is decided."""

    def __init__(self, files: CachedFiles) -> None:
        self._files = files

    async def now(self, question: RowQuestion) -> BundleRow:
        """The row as of now. Raises NothingKnown, Busy if it cannot be fetched, and StoreDown."""
        origin, _, fetch, max_age, wait, caller = question
        found = await self._files.found(origin, fetch=fetch, max_age=max_age, wait=wait, caller=caller)
        snapshot, fresh = found.snapshot, found.freshness
        if snapshot is None or fresh is None:
            raise NothingKnown(question)
        access = snapshot.access
        return BundleRow(origin, access, snapshot.held_since, fresh.recheck_at, version_id(access))

    @asynccontextmanager
    async def past(self, origin: Origin) -> AsyncIterator[Callable[[RowQuestion], Awaitable[BundleRow]]]:
        """Within the block, find rows of an origin's past. It raises StoreDown, and a question NoVersion."""
        async with self._files.past(origin) as files:

            async def find(question: RowQuestion) -> BundleRow:
                at = question.as_of or datetime.now(UTC)
                version = await files.version(at)
                snapshot = await asyncio.to_thread(version.read)  # it is stored compressed
                if snapshot is None:
                    raise files.no_version(at)
                until = max(float(version.last_seen), at.timestamp())
                access = known_at(snapshot, at.timestamp()).access
                return BundleRow(origin, access, version.first_seen, until, version_id(access))

            yield find
