"""What was learnt together is not asked about together again."""

from app.cache.freshness import Snapshot
from app.cache.snapshot_memory import SnapshotMemory
from app.cache.store_clock import StoreClock
from app.cache.tiered_snapshots import TieredSnapshots
from app.origin import Origin, read_target
from app.robots.access import Unavailable

TRUST = 30


class Store:
    """Has the same of every origin."""

    async def get(self, origin: Origin) -> Snapshot:
        return Snapshot(Unavailable(404), 1000.0)


async def test_trust_in_what_was_learnt_together_ends_over_half_of_its_time() -> None:
    now = 1000.0
    snapshots = TieredSnapshots(
        Store(),  # type: ignore[arg-type]
        SnapshotMemory(10_000_000, lambda: now, TRUST),
        lambda: now,
        store_clock=StoreClock(lambda: now),
        on_version_ended=lambda *_: None,
        on_contradiction=lambda: None,
    )
    origins = [read_target(f"https://host-{number}.example/").origin for number in range(300)]
    for origin in origins:
        await snapshots.get(origin)
    ended = []
    for second in range(TRUST + 1):
        now = 1000.0 + second
        trusted = [origin for origin in origins if snapshots.get_trusted(origin) is not None]
        ended.append(len(origins) - len(trusted))
        origins = trusted
    assert sum(ended[: TRUST // 2]) == 0
    assert origins == []
    assert max(ended) < 60  # of 300 in 15 s
