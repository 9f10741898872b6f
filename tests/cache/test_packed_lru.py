"""Packed entries are not visited by the garbage collector, and equal those that were stored."""

import gc
from dataclasses import replace

import robots_core.origin
from app.cache.freshness import Failing, Snapshot
from app.cache.packed_lru import OVERHEAD, Entry, PackedLRU
from robots_core.origin import Origin, read_target
from robots_core.robots.access import Blocked, Cause, Successful, Unavailable, Unreachable, Validators

NOW = 1_800_000_000.0
DOWN = Unreachable(Cause.DNS)
SNAPSHOTS = [
    Snapshot(Successful(200, b"User-agent: *\n", True, "text/plain"), NOW, "https://b.example/robots.txt"),
    Snapshot(Successful(200, b""), NOW, None, Validators('"a"', "Sun, 22 Nov 2026 00:00:00 GMT"), 60.0, None, 17),
    Snapshot(Successful(200, b"x"), NOW, failing=Failing(NOW, NOW + 1, 3, Unreachable(Cause.SERVER_ERROR, 503, 9))),
    Snapshot(Unavailable(404), NOW),
    Snapshot(Unavailable(301, Cause.REDIRECT_LOOP), NOW),
    Snapshot(DOWN, NOW, failing=Failing(NOW, NOW, 1, DOWN)),
    Snapshot(Blocked("10.0.0.1"), NOW),
]


def entry(snapshot: Snapshot, saved: bool, validated_at: float | None) -> Entry:
    return Entry(snapshot, saved, False, validated_at, 0)


def origin(number: int = 0) -> Origin:
    return read_target(f"https://host-{number}.example/").origin


def kept(limit: int = 10_000) -> PackedLRU:
    return PackedLRU(limit)


def test_many_origins_add_no_objects_for_the_collector() -> None:
    lru = kept(10**9)
    gc.collect()
    before = len(gc.get_objects())
    for number in range(2000):
        lru.put(origin(number), entry(replace(SNAPSHOTS[number % len(SNAPSHOTS)]), True, NOW))
    robots_core.origin._cached_origin.cache_clear()
    gc.collect()
    gc.collect()  # a nested tuple is untracked one collection later
    assert len(gc.get_objects()) - before < 100
    assert lru.usage[1] == 2000


def test_an_entry_decodes_to_an_equal_one() -> None:
    lru = kept()
    for number, snapshot in enumerate(SNAPSHOTS):
        lru.put(origin(number), entry(replace(snapshot), number % 2 == 0, None))
    for number, snapshot in enumerate(SNAPSHOTS):
        assert lru.get(origin(number)) == entry(snapshot, number % 2 == 0, None)


def test_a_snapshot_in_use_stays_the_same_object() -> None:
    lru = kept()
    snapshot = replace(SNAPSHOTS[0])
    lru.put(origin(), entry(snapshot, True, NOW))
    lru.put(origin(), entry(snapshot, False, None))
    for kept_entry in (lru.get(origin()), lru.peek(origin())):
        assert kept_entry is not None
        assert kept_entry.snapshot is snapshot
        assert not kept_entry.saved
    other = replace(snapshot, fetched_at=NOW + 1)
    lru.put(origin(), entry(other, True, NOW))
    found = lru.get(origin())
    assert found is not None
    assert found.snapshot is other
    del found, other
    again = lru.get(origin())
    assert again is not None
    assert again.snapshot.fetched_at == NOW + 1


def test_a_dropped_or_evicted_entry_is_gone() -> None:
    lru = kept(limit=2 * OVERHEAD + 500)
    snapshots = [replace(SNAPSHOTS[0]) for _ in range(3)]
    for number, snapshot in enumerate(snapshots):
        lru.put(origin(number), entry(snapshot, True, NOW))
    assert lru.get(origin(0)) is None
    lru.drop(origin(1))
    lru.drop(origin(9))
    assert lru.get(origin(1)) is None
    assert lru.usage[1] == 1
    assert OVERHEAD < lru.usage[0] < OVERHEAD + 250
