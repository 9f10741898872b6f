"""What the cache knows of an origin; no I/O, so that what only reads it needs none."""

from dataclasses import dataclass
from enum import StrEnum

from app.cache.freshness import Freshness, Snapshot


class Source(StrEnum):
    """Where an answer's snapshot comes from."""

    MEMORY = "memory"
    STORE = "store"
    FETCHED = "fetched"
    REVALIDATED = "revalidated"
    HISTORY = "history"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class CacheResult:
    """What is known about an origin now; `snapshot` and `freshness` are None before the first fetch has ended."""

    snapshot: Snapshot | None
    freshness: Freshness | None
    source: Source
