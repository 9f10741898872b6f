"""Compare a process's memory with the store, for one origin; pure."""

from dataclasses import dataclass, replace

from app.cache.freshness import Snapshot, usable
from app.cache.ordering import Purged, after_purge, is_local, merge
from app.cache.packed_lru import Entry


@dataclass(frozen=True, slots=True)
class Reconciled:
    """The snapshot to keep, None for nothing.

    `from_store`: it is the one in the store. `lacking`: the store lacks part of it. `ended`: snapshots whose content
    may have been replaced. `contradicted`: the store has an answer from an origin that only this process could not
    reach.
    """

    snapshot: Snapshot | None
    from_store: bool = False
    saved: bool = True
    doubtful: bool = False
    lacking: bool = False
    ended: tuple[Snapshot, ...] = ()
    contradicted: bool = False


def reconcile(entry: Entry | None, found: Snapshot | Purged | None, now: float) -> Reconciled:
    """Compare the entry in memory with what the store has; `now` is by the store's clock."""
    if isinstance(found, Snapshot):
        return Reconciled(found, from_store=True) if entry is None else _merged(entry, found, now)
    # A purge would have left a mark. So if the store has none, it was down when this was learned, or has lost it since:
    # it was restarted empty, is full, or the key has a value that cannot be read.
    own = None if entry is None else combine(entry.snapshot, found, now)
    if entry is None or own is None or usable(own, now) is None:
        return Reconciled(None)
    shared = entry._replace(snapshot=own).shared
    return Reconciled(own, saved=entry.saved, doubtful=entry.doubtful, lacking=shared is not None)


def combine(own: Snapshot | None, found: Snapshot | Purged | None, now: float) -> Snapshot | None:
    """What memory and the store know together; `now` is the store's clock."""
    match found:
        case Snapshot():
            return found if own is None else merge(own, found, now)
        case Purged():
            return None if own is None else after_purge(own, found, now)
        case None:
            return own


def as_known(known: Snapshot, found: Snapshot) -> Snapshot:
    """`found`, with the objects of `known` that are equal, since derived values are cached by identity."""
    if found == known:
        return known
    return replace(found, access=known.access) if found.access == known.access else found


def is_doubtful(snapshot: Snapshot, entry: Entry | None) -> bool:
    """Whether its failures may be this process's own: the first one, or those after one that was not confirmed."""
    failing = snapshot.failing
    if failing is None or not is_local(failing.failure):
        return False
    return failing.attempts == 1 or (entry is not None and entry.doubtful)


def _merged(entry: Entry, found: Snapshot, now: float) -> Reconciled:
    merged = merge(entry.snapshot, found, now)
    contradicted = entry.doubtful and merged.failing is None
    if merged == found:
        # Usually the process that found the other content has noted the end of this one. It has not if the store had
        # lost this one before.
        ended = entry.shared if entry.saved else entry.snapshot
        return Reconciled(
            as_known(entry.snapshot, found),
            from_store=True,
            ended=() if ended is None else (ended,),
            contradicted=contradicted,
        )
    same_answer = merged.fetched_at == found.fetched_at and merged.access == found.access
    return Reconciled(
        as_known(entry.snapshot, merged),
        saved=entry.saved,
        doubtful=entry.doubtful,
        lacking=not entry.doubtful or not same_answer,
        ended=(found,),
        contradicted=contradicted,
    )
