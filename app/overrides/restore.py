"""Restore the overrides that a store has lost from those that this process knows."""

import logging
from collections.abc import Mapping
from contextlib import suppress

from app.overrides.redis_overrides import ChangedMeanwhile, ManyOverrides, OverridesVersion, RedisOverrides, Row

_log = logging.getLogger(__name__)


class Restorer:
    """Writes lost overrides back. They are remembered until they are written, since the store may fail meanwhile."""

    def __init__(self, store: RedisOverrides) -> None:
        self._store = store
        self._pending: dict[str, Row] = {}

    async def note_loss(self, rows: Mapping[str, Row]) -> None:
        """Restore those of the rows that the store lacks, or has in an older state; raises StoreDown."""
        stored = await self._store.rows(rows)
        self._pending = {id_: row for id_, row in rows.items() if _is_older(stored.get(id_), row)}
        _log.warning("The store has lost overrides; the %d that are known here are restored", len(self._pending))

    async def restore(self) -> bool:
        """Write what is pending; whether there was anything. Raises StoreDown."""
        pending = list(self._pending.items())
        for id_, row in pending:
            with suppress(ChangedMeanwhile, ManyOverrides):
                await self._store.put(row.override, row.updated_by, row.updated_at)
            del self._pending[id_]
        return bool(pending)


def has_lost(version: OverridesVersion | None, known: OverridesVersion | None) -> bool:
    """Whether a store with this version has lost changes that led to the `known` one.

    It was emptied, has evicted the overrides, or was replaced by a replica that lagged; that must not open what was
    closed. An override that was removed in the seconds that were lost is restored, too: an operator can see it, and
    has to remove it again.
    """
    return known is not None and (version is None or not version.follows(known))


def _is_older(stored: Row | None, row: Row) -> bool:
    return stored is None or stored.updated_at < row.updated_at
