"""Each process's own copy of the overrides: whole, in memory, and never more than a few seconds behind the store's."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Protocol

from app.overrides.store import ChangedMeanwhile, Entry, ManyOverrides, Place, Row, Version
from app.overrides.table import Override, Table
from app.store.calls import REST, StoreDown
from app.store.ending import meanwhile

EVERY = 3.0
"""Seconds between two looks at the version in the store: by so much a process may be behind the others."""

KEPT = 86_400.0
"""Seconds for which an override that has expired is still listed."""

_ATTEMPTS = 3
_REMOVED_AT_ONCE = 20

_log = logging.getLogger(__name__)


class OverrideStore(Protocol):
    """Where the overrides are. Every method is bounded in time, and raises StoreDown where it cannot be had."""

    async def version(self) -> Version | None:
        """The version of the whole, None where there has never been one."""

    async def index(self) -> Mapping[str, Place]:
        """Where each row stands, by id."""

    async def rows(self, places: Mapping[str, Place]) -> Mapping[str, Row | None]:
        """The rows of these places; None for one that has changed since, or that is not ours."""

    async def put(self, override: Override, by: str, at: float) -> bool:
        """Set the override; whether it is a new one. Raises ManyOverrides and ChangedMeanwhile."""

    async def remove(self, id_: str, by: str, at: float) -> bool:
        """Remove the override; whether there was one. Raises ChangedMeanwhile."""

    async def audit(self, start: int, count: int) -> Sequence[Entry]:
        """So many changes, newest first, from the one that `start` newer ones precede."""


class Overrides:
    """The overrides in force: `table` is for every decision to look into, `rows` are the same by id, with who set them.

    While the store is down the last known stay in force: what an operator closed does not open because Redis is gone.
    `known` is false until the store has told them once. Methods raise what those of OverrideStore do.
    """

    def __init__(self, store: OverrideStore, clock: Callable[[], float]) -> None:
        self.table = Table()
        self.rows: Mapping[str, Row] = {}
        self.known = False
        self._store = store
        self._clock = clock
        self._version: Version | None = None
        self._places: Mapping[str, Place] = {}
        self._syncing = asyncio.Lock()
        self._foreign: set[str] = set()
        self._owed: dict[str, Row] = {}

    async def put(self, override: Override, by: str) -> bool:
        """Set the override, here at once and elsewhere within EVERY seconds; whether it is a new one."""
        new = await self._store.put(override, by, self._clock())
        _log.info("%s set the override %s: %s %s", by, override.id, override.action_name, override.scope_text)
        await self.sync()
        return new

    async def remove(self, id_: str, by: str) -> bool:
        """Remove the override, here at once and elsewhere within EVERY seconds; whether there was one."""
        found = await self._store.remove(id_, by, self._clock())
        if found:
            _log.info("%s removed the override %s", by, id_)
        await self.sync()
        return found

    async def audit(self, start: int, count: int) -> Sequence[Entry]:
        """So many changes, newest first, from the one that `start` newer ones precede."""
        return await self._store.audit(start, count)

    async def sync(self) -> None:
        """Learn what has changed in the store."""
        async with self._syncing:
            for _ in range(_ATTEMPTS):
                version = await self._store.version()
                await self._give_back(version)
                # Without one that can be read, there may be overrides all the same: somebody may have written over it.
                if (version is not None and version == self._version) or await self._learn(version):
                    break
            self.known = True

    @asynccontextmanager
    async def followed(self, every: float = EVERY) -> AsyncIterator[None]:
        """While the block lasts, look for changes every so many seconds; it begins after the first look."""
        await self._look()
        if not self.known:
            # Connecting may take longer than a call may, and then goes on behind: this one finds the connection.
            await asyncio.sleep(REST)
            await self._look()
        if not self.known:
            _log.warning("No overrides are known: the store did not tell them. They come into force once it does.")
        async with meanwhile(self._follow(every)):
            yield

    async def _follow(self, every: float) -> None:
        while True:
            await asyncio.sleep(every)
            await self._look()
            await self._clean()

    async def _look(self) -> None:
        with suppress(StoreDown):
            await self.sync()

    async def _learn(self, version: Version | None) -> bool:
        """Take what the store has now; whether that is the whole of one version."""
        index = await self._store.index()
        told = await self._store.rows({id_: place for id_, place in index.items() if self._places.get(id_) != place})
        # Every change counts the version up in the same moment: where it still stands, all of this belongs together.
        # Else what is missing has changed under our hands, and what was known of it stays until the next attempt.
        whole = await self._store.version() == version
        rows = {id_: row for id_ in index if (row := told.get(id_) or self._kept(id_, told, whole)) is not None}
        if whole:
            self._note_foreign(index.keys() - rows.keys())
        self._places = {id_: place for id_, place in index.items() if whole or told.get(id_, rows.get(id_)) is not None}
        self._version = version if whole else self._version
        self.rows = rows
        self.table = Table(row.override for row in rows.values())
        return whole

    def _kept(self, id_: str, told: Mapping[str, Row | None], whole: bool) -> Row | None:
        return None if whole and id_ in told else self.rows.get(id_)

    def _note_foreign(self, ids: set[str]) -> None:
        new = ids - self._foreign
        if new:
            _log.warning(
                "Overrides in the store are ignored, since they cannot be read: %s", ", ".join(sorted(new)[:10])
            )
        self._foreign = ids

    async def _give_back(self, version: Version | None) -> None:
        """Give the store back what it has lost; nothing where it has not."""
        # A version follows the one before, so a store whose does not was emptied, or threw out what nobody asked for
        # lately, or was replaced by a replica that lagged. What was closed is not to open for that. What is owed is
        # remembered until it is given, since the store may fail again meanwhile. An override that was removed in the
        # very seconds that were lost comes back by this, too: it has to be removed again, which an operator can see.
        if self._version is not None and (version is None or not version.follows(self._version)):
            index = await self._store.index()
            self._owed = {id_: row for id_, row in self.rows.items() if id_ not in index}
            self._version, self._places = None, {}
            _log.warning("The store has lost overrides; it is given back the %d that are known here", len(self._owed))
        for id_, row in list(self._owed.items()):
            with suppress(ChangedMeanwhile, ManyOverrides):
                await self._store.put(row.override, row.updated_by, row.updated_at)
            del self._owed[id_]

    async def _clean(self) -> None:
        now = self._clock()
        over = [id_ for id_, row in self.rows.items() if row.override.expired(now - KEPT)][:_REMOVED_AT_ONCE]
        for id_ in over:
            with suppress(ChangedMeanwhile, StoreDown):
                if await self._store.remove(id_, "expiry", now):
                    _log.info("The override %s expired a day ago, and was removed", id_)
