"""What the cache knows of an origin; no I/O, so that what only reads it needs none."""

from enum import StrEnum
from typing import NamedTuple

from app.cache.freshness import Freshness, Snapshot


class Source(StrEnum):
    """Where an answer's snapshot comes from; INGESTED: a caller sent it, wherever it was since."""

    MEMORY = "memory"
    STORE = "store"
    FETCHED = "fetched"
    REVALIDATED = "revalidated"
    INGESTED = "ingested"
    HISTORY = "history"
    NONE = "none"


class CacheResult(NamedTuple):
    """What is known about an origin now; `snapshot` and `freshness` are None before the first fetch has ended."""

    snapshot: Snapshot | None
    freshness: Freshness | None
    source: Source


def found(snapshot: Snapshot, freshness: Freshness | None, source: Source) -> CacheResult:
    """What is known by this snapshot; `source` is where it was, which counts unless a caller sent it."""
    return CacheResult(snapshot, freshness, source if snapshot.ingested is None else Source.INGESTED)
