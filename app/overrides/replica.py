"""Each process's replica of the overrides: complete, in memory, and at most a few seconds behind the store."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

from app.loop.background import BackgroundTask, Surviving, periodically
from app.overrides.overrides_file import OfFile
from app.overrides.redis_overrides import (
    AuditEntry,
    ChangedMeanwhile,
    ManyOverrides,
    OverridesState,
    OverridesVersion,
    RedisOverrides,
    Row,
)
from app.overrides.table import Override, Table
from app.store.guarded_client import COOLDOWN, StoreDown

OVERRIDES_EVERY = 3.0
"""Seconds between two reads of the store's version: a process may be this far behind the others."""

EXPIRED_KEPT = 86_400.0
"""Seconds for which an override that has expired is still listed."""

_REMOVED_AT_ONCE = 20

_NO_FILE: OfFile = {}

_log = logging.getLogger(__name__)


class FromFile(Exception):
    """The file has this override, so nothing else may change it."""

    def __init__(self, id_: str) -> None:
        super().__init__(f"The override {id_!r} is in OVERRIDES_FILE: change it there.")


class Overrides:
    """The overrides in force: `table` is what decisions look up; `rows` are those of the store by id, and who set them.

    While the store is down, the last known ones stay in force: an outage of Redis does not open what an operator
    closed. `loaded` is false until they have been read once. `lost` is true while the store has none although it once
    had some, and this process never read them. Methods raise what those of RedisOverrides do.

    `of_file` gives those of the file, which hold together with those of the store. An id that both have is the file's.
    """

    def __init__(
        self, store: RedisOverrides, clock: Callable[[], float], of_file: Callable[[], OfFile] = lambda: _NO_FILE
    ) -> None:
        self.rows: dict[str, Row] = {}
        self.loaded = False
        self.lost = False
        self._of_file = of_file
        self._joined: tuple[Mapping[str, Row], OfFile] = (self.rows, _NO_FILE)
        self._table = Table()
        self._store = store
        self._clock = clock
        self._version: OverridesVersion | None = None
        self._syncing = asyncio.Lock()
        self._foreign: set[str] = set()
        self._to_restore: dict[str, Row] = {}  # until they are written, since the store may fail meanwhile

    @property
    def table(self) -> Table:
        """All overrides in force, by scope; the same object until they change."""
        rows, of_file = self.rows, self._of_file()
        if self._joined[0] is not rows or self._joined[1] is not of_file:
            self._joined = rows, of_file
            self._table = Table({**{id_: row.override for id_, row in rows.items()}, **of_file}.values())
        return self._table

    @property
    def counts(self) -> Mapping[str, int]:
        """How many there are of each source."""
        of_file = len(self._of_file())
        return {"api": len(self.table.by_id) - of_file, "file": of_file}

    @property
    def changes(self) -> int:
        """How often the overrides of the store have been changed; 0 if it knows of no change."""
        return 0 if self._version is None else self._version.number

    def _check(self, id_: str) -> None:
        if id_ in self._of_file():
            raise FromFile(id_)

    async def put(self, override: Override, by: str) -> bool:
        """Set the override, here at once and elsewhere within OVERRIDES_EVERY seconds; whether it is new.

        Raises FromFile.
        """
        self._check(override.id)
        new = await self._store.put(override, by, self._clock())
        _log.info("%s set the override %s: %s %s", by, override.id, override.action, override.scope_text)
        await self.sync()
        return new

    async def remove(self, id_: str, by: str) -> bool:
        """Remove the override, here at once and elsewhere within OVERRIDES_EVERY seconds; whether there was one.

        Raises FromFile.
        """
        self._check(id_)
        found = await self._store.remove(id_, by, self._clock())
        if found:
            _log.info("%s removed the override %s", by, id_)
        await self.sync()
        return found

    async def audit(self, start: int, count: int) -> Sequence[AuditEntry]:
        """At most `count` changes, newest first, after the first `start` ones."""
        return await self._store.audit(start, count)

    async def sync(self) -> None:
        """Read what has changed in the store; raises StoreDown."""
        async with self._syncing:
            state = await self._store.state()
            if _has_lost(state.version, self._version):
                await self._find_lost()
                self._version = None
            if await self._restore():
                state = await self._store.state()
            # If the version cannot be read, there may still be overrides: it may have been overwritten.
            if state.version is None or state.version != self._version:
                await self._learn(state)
            self._note_loss(state)
            if not self.loaded and state.version is None and not state.lost and not self.rows:
                _log.info("The store has no overrides and no audit of any: it is new, or all that it had is lost.")
            self.loaded = True

    @asynccontextmanager
    async def syncing(self, every: float = OVERRIDES_EVERY) -> AsyncIterator[None]:
        """While the block lasts, read changes every so many seconds; the block begins after the first read."""
        await self._try_to_sync()
        if not self.loaded:
            # Connecting may take longer than the timeout of a call, and continues in the background until this call.
            await asyncio.sleep(COOLDOWN)
            await self._try_to_sync()
        if not self.loaded:
            _log.warning(
                "The overrides are unknown, because the store could not be read. They come into force once it can."
            )
        async with periodically(BackgroundTask.OVERRIDES, self._sync_and_clean, every):
            yield

    async def _sync_and_clean(self) -> None:
        await self._try_to_sync()
        await self._remove_expired()

    async def _try_to_sync(self) -> None:
        with suppress(StoreDown):
            await self.sync()

    async def _find_lost(self) -> None:
        """Note which rows the store lacks, or has in an older state; raises StoreDown."""
        stored = await self._store.rows(self.rows)
        self._to_restore = {id_: row for id_, row in self.rows.items() if _is_older(stored.get(id_), row)}
        _log.warning("The store has lost overrides; the %d that are known here are restored", len(self._to_restore))

    async def _restore(self) -> bool:
        """Write lost rows back; whether there was any. Raises StoreDown."""
        lost = list(self._to_restore.items())
        for id_, row in lost:
            with suppress(ChangedMeanwhile, ManyOverrides):
                await self._store.put(row.override, row.updated_by, row.updated_at)
            del self._to_restore[id_]
        return bool(lost)

    async def _learn(self, state: OverridesState) -> None:
        """Read the rows of this state. Later changes may be read too, and are read again next time."""
        found = await self._store.rows(await self._store.ids())
        if self.rows.keys() - found.keys() and not await self._stands(state):
            return  # not removed, but lost meanwhile, which the next call notices
        foreign = {id_ for id_, row in found.items() if row is None}
        self._note_foreign(foreign - self._foreign)
        self._foreign = foreign
        rows: dict[str, Row] = {}
        for id_, row in found.items():
            known = self.rows.get(id_)
            # A row that has become unreadable stays in force as it was: overwriting a row must not open what it closed.
            kept = known if row is None or row == known else row
            if kept is not None:
                rows[id_] = kept
        if rows != self.rows:
            self.rows = rows
        self._version = state.version

    async def _stands(self, state: OverridesState) -> bool:
        """Whether the store still has this state, or a later one that lacks nothing of it."""
        now = (await self._store.state()).version
        return now == state.version or (now is not None and state.version is not None and now.follows(state.version))

    def _note_foreign(self, ids: set[str]) -> None:
        if ids:
            _log.warning(
                "Overrides in the store are ignored, since they cannot be read: %s", ", ".join(sorted(ids)[:10])
            )

    def _note_loss(self, state: OverridesState) -> None:
        lost = state.lost and not self.rows
        if lost and not self.lost:
            _log.error("The store has lost all overrides, and this process has not read them before: none is in force.")
        self.lost = lost

    async def _remove_expired(self) -> None:
        now = self._clock()
        expired = [id_ for id_, row in self.rows.items() if row.override.expired(now - EXPIRED_KEPT)][:_REMOVED_AT_ONCE]
        for id_ in expired:
            with Surviving(BackgroundTask.OVERRIDES, id_), suppress(ChangedMeanwhile, StoreDown):
                if await self._store.remove(id_, "expiry", now):
                    _log.info("The override %s expired a day ago, and was removed", id_)


def _has_lost(version: OverridesVersion | None, known: OverridesVersion | None) -> bool:
    """Whether a store with this version has lost changes that led to the `known` one.

    It was emptied, has evicted the overrides, or was replaced by a replica that lagged; that must not open what was
    closed. An override that was removed in the seconds that were lost is restored, too: an operator can see it, and
    has to remove it again.
    """
    return known is not None and (version is None or not version.follows(known))


def _is_older(stored: Row | None, row: Row) -> bool:
    return stored is None or stored.updated_at < row.updated_at
