"""What the replica of the overrides needs of the store."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from app.overrides.redis_overrides import AuditEntry, OverridesState, Row
from app.overrides.table import Override


class OverrideStore(Protocol):
    """Where the overrides are kept. Every method is bounded in time and raises StoreDown."""

    async def state(self) -> OverridesState:
        """The version of the overrides, and the ids that changed last."""

    async def ids(self) -> Collection[str]:
        """The ids of all rows."""

    async def rows(self, ids: Collection[str]) -> Mapping[str, Row | None]:
        """The rows of these ids that exist; None for one that cannot be read."""

    async def put(self, override: Override, by: str, at: float) -> bool:
        """Set the override; whether it is new. Raises ManyOverrides and ChangedMeanwhile."""

    async def remove(self, id_: str, by: str, at: float) -> bool:
        """Remove the override; whether there was one. Raises ChangedMeanwhile."""

    async def audit(self, start: int, count: int) -> Sequence[AuditEntry]:
        """At most `count` changes, newest first, after the first `start` ones."""
