"""Each process's replica of the overrides: complete, in memory, and at most a few seconds behind the store."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Protocol

from app.background import periodically
from app.overrides.redis_overrides import ChangedMeanwhile, Entry, ManyOverrides, Row, State, Version
from app.overrides.table import Override, Table
from app.redis.guarded_client import COOLDOWN, StoreDown

EVERY = 3.0
"""Seconds between two reads of the store's version: a process may be this far behind the others."""

KEPT = 86_400.0
"""Seconds for which an override that has expired is still listed."""

_REMOVED_AT_ONCE = 20

_log = logging.getLogger(__name__)


class OverrideStore(Protocol):
    """Where the overrides are. Every method is bounded in time, and raises StoreDown where it cannot be had."""

    async def state(self) -> State:
        """What version the overrides have, and what was changed last."""

    async def ids(self) -> Collection[str]:
        """The ids of all rows."""

    async def rows(self, ids: Collection[str]) -> Mapping[str, Row | None]:
        """The rows of these ids, without those that are not there; None for one that is not ours."""

    async def put(self, override: Override, by: str, at: float) -> bool:
        """Set the override; whether it is a new one. Raises ManyOverrides and ChangedMeanwhile."""

    async def remove(self, id_: str, by: str, at: float) -> bool:
        """Remove the override; whether there was one. Raises ChangedMeanwhile."""

    async def audit(self, start: int, count: int) -> Sequence[Entry]:
        """So many changes, newest first, from the one that `start` newer ones precede."""


class Overrides:
    """The overrides in force: `table` is for every decision to look into, `rows` are the same by id, with who set them.

    While the store is down the last known ones stay in force: an outage of Redis does not open what an operator closed.
    `known` is false until they have been read once; `lost` is true while the store has none, once had some, and this
    process never knew them. Methods raise what those of OverrideStore do.
    """

    def __init__(self, store: OverrideStore, clock: Callable[[], float]) -> None:
        self.table = Table()
        self.rows: dict[str, Row] = {}
        self.known = False
        self.lost = False
        self._store = store
        self._clock = clock
        self._version: Version | None = None
        self._syncing = asyncio.Lock()
        self._foreign: set[str] = set()
        self._to_restore: dict[str, Row] = {}

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
        """Read what has changed in the store."""
        async with self._syncing:
            state = await self._store.state()
            if await self._restore(state.version):
                state = await self._store.state()
            # Without one that can be read, there may be overrides all the same: somebody may have written over it.
            if state.version is None or state.version != self._version:
                await self._learn(state)
            self._note_loss(state)
            self.known = True

    @asynccontextmanager
    async def syncing(self, every: float = EVERY) -> AsyncIterator[None]:
        """While the block lasts, read changes every so many seconds; the block begins after the first read."""
        await self._try_to_sync()
        if not self.known:
            # Connecting may take longer than a call may, and then goes on behind: this one finds the connection.
            await asyncio.sleep(COOLDOWN)
            await self._try_to_sync()
        if not self.known:
            _log.warning(
                "The overrides are unknown, because the store could not be read. They come into force once it can."
            )
        async with periodically(self._sync_and_clean, every):
            yield

    async def _sync_and_clean(self) -> None:
        await self._try_to_sync()
        await self._remove_expired()

    async def _try_to_sync(self) -> None:
        with suppress(StoreDown):
            await self.sync()

    async def _learn(self, state: State) -> None:
        """Take what has changed up to this state, or after it: what is changed meanwhile is read again next time."""
        changed = state.changed_since(self._version)
        ids = await self._store.ids() if changed is None else changed
        found = await self._store.rows(ids)
        gone = (self.rows.keys() if changed is None else set(changed)) - found.keys()
        if gone and not await self._stands(state):
            return  # not removed, but lost while they were read: that is found out next time
        # A row that has become unreadable stays in force as it was: overwriting a row must not open what it closed.
        foreign = {id_ for id_, row in found.items() if row is None}
        self._note_foreign(foreign - self._foreign)
        self._foreign = foreign | (set() if changed is None else self._foreign - found.keys() - gone)
        rows = {id_: row for id_, row in found.items() if row is not None and row != self.rows.get(id_)}
        self.rows.update(rows)
        for id_ in gone:
            self.rows.pop(id_, None)
        if rows or gone:
            self.table = self.table.changed({id_: row.override for id_, row in rows.items()} | dict.fromkeys(gone))
        self._version = state.version

    async def _stands(self, state: State) -> bool:
        """Whether what was read belongs to this state, or to one that came of it by changes alone."""
        now = (await self._store.state()).version
        return now == state.version or (now is not None and state.version is not None and now.follows(state.version))

    def _note_foreign(self, ids: set[str]) -> None:
        if ids:
            _log.warning(
                "Overrides in the store are ignored, since they cannot be read: %s", ", ".join(sorted(ids)[:10])
            )

    def _note_loss(self, state: State) -> None:
        lost = state.lost and not self.rows
        if lost and not self.lost:
            _log.error("The store has lost all overrides, and this process does not know them: none is in force.")
        self.lost = lost

    async def _restore(self, version: Version | None) -> bool:
        """Restore the overrides that the store has lost; whether there were any."""
        # A version follows the one before it. If not, the store was emptied, has evicted the overrides, or was replaced
        # by a replica that lagged, and that must not open what was closed. Rows to restore are remembered until they
        # are written, since the store may fail again meanwhile. An override that was removed in the very seconds that
        # were lost comes back, too: an operator can see it, and has to remove it again.
        if self._version is not None and (version is None or not version.follows(self._version)):
            kept = await self._store.rows(self.rows)
            self._to_restore = {id_: row for id_, row in self.rows.items() if _is_older(kept.get(id_), row)}
            self._version = None
            _log.warning("The store has lost overrides; the %d that are known here are restored", len(self._to_restore))
        owed = list(self._to_restore.items())
        for id_, row in owed:
            with suppress(ChangedMeanwhile, ManyOverrides):
                await self._store.put(row.override, row.updated_by, row.updated_at)
            del self._to_restore[id_]
        return bool(owed)

    async def _remove_expired(self) -> None:
        now = self._clock()
        over = [id_ for id_, row in self.rows.items() if row.override.expired(now - KEPT)][:_REMOVED_AT_ONCE]
        for id_ in over:
            with suppress(ChangedMeanwhile, StoreDown):
                if await self._store.remove(id_, "expiry", now):
                    _log.info("The override %s expired a day ago, and was removed", id_)


def _is_older(kept: Row | None, row: Row) -> bool:
    return kept is None or kept.updated_at < row.updated_at
