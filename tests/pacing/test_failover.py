"""Two processes keep one pace, and one line, while a replica takes over: the last slot of either counts."""

import asyncio
import math
import random
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise

from app.pacing.local_pacer import LocalPacer
from app.pacing.membership import Rank
from app.pacing.pacer import Pacer
from app.pacing.redis_pacer import RedisPacer
from app.pacing.schedule import PaceWindow
from app.pacing.slots import PaceKey, Slot, SlotRequest
from app.store.connect import connect
from app.store.guarded_client import GuardedClient
from app.store.store_clock import StoreClocks
from tests.engines import cluster_url, clustered, sentinel_url, watched
from tests.faults.until import until_so

MAX_KEYS = [PaceKey.of(f"{number}.example.com", "ExampleBot") for number in range(9)]
SECOND, HALF = (PaceWindow(math.inf, 1.0),), (PaceWindow(math.inf, 0.5),)
PROCESSES = 2


class Log:
    """The slots of each key, and whether they came from the store."""

    def __init__(self) -> None:
        self.slots: dict[PaceKey, list[tuple[float, bool]]] = defaultdict(list)

    def count(self, *, degraded: bool, keys: list[PaceKey]) -> int:
        """The fewest slots of any key."""
        return min(sum(local is degraded for _, local in self.slots[key]) for key in keys)

    def too_close(self) -> list[tuple[str, tuple[float, bool], tuple[float, bool]]]:
        return [
            (key.pool, first, second)
            for key, slots in self.slots.items()
            for first, second in pairwise(sorted(slots))
            if second[0] - first[0] < 0.999
        ]


async def ask_on(pacer: Pacer, key: PaceKey, log: Log, enough: asyncio.Event) -> None:
    """Reserve slots at random instants until there are enough."""
    while not enough.is_set():
        grant = await pacer.reserve(SlotRequest(key, SECOND, "w", max_wait=0.8))
        if isinstance(grant.result, Slot):
            log.slots[key].append((grant.result.go_at, grant.degraded))
        await asyncio.sleep(random.uniform(0.02, 0.3))


@asynccontextmanager
async def pacers(url: str) -> AsyncIterator[list[tuple[Pacer, RedisPacer]]]:
    async with AsyncExitStack() as stack:
        made = []
        for number in range(PROCESSES):
            client = connect(url)
            stack.push_async_callback(client.aclose)
            # A failed master refuses at once; the others get time, even on a busy machine.
            calls = GuardedClient(client, monotonic=time.monotonic, timeout=1.0)
            stack.push_async_callback(calls.aclose)
            local = LocalPacer(PROCESSES, lambda number=number: (Rank(number, PROCESSES),))  # type: ignore[misc]
            pace = RedisPacer(calls)
            pacer = Pacer(pace, local, StoreClocks(time.time, time.monotonic))
            stack.push_async_callback(pacer.aclose)
            made.append((pacer, pace))
        yield made


async def test_no_slot_is_too_close_while_a_master_of_a_cluster_is_replaced() -> None:
    log, lost, enough = Log(), list[PaceKey](), asyncio.Event()
    with clustered(1, cluster_require_full_coverage="no", cluster_node_timeout="4000") as fleet:
        async with pacers(cluster_url(fleet)) as both, asyncio.TaskGroup() as group:
            for pacer, _ in both:
                for key in MAX_KEYS:
                    group.create_task(ask_on(pacer, key, log, enough))
            await until_so(lambda: log.count(degraded=False, keys=MAX_KEYS) >= 3)
            fleet.copied()
            fleet.masters[0].kill()
            lost += [key for key in MAX_KEYS if both[0][1].shard_of(key) == 0]
            assert 0 < len(lost) < len(MAX_KEYS)
            await until_so(lambda: log.count(degraded=True, keys=lost) >= 1)
            given = {key: len(log.slots[key]) for key in lost}
            await until_so(
                lambda: all(sum(not local for _, local in log.slots[key][given[key] :]) >= 3 for key in lost)
            )
            # A call that is cancelled may have the connection to a node that redis-py has forgotten, and leave it open.
            enough.set()
    assert log.too_close() == []
    assert not any(local for key in set(MAX_KEYS) - set(lost) for _, local in log.slots[key][:])


class Crowd:
    """Callers of one key. The slots of each caller are by the instant at which they begin, and so is its first call."""

    def __init__(self) -> None:
        self.asked: dict[str, float] = {}
        self.slots: dict[str, list[tuple[float, bool]]] = defaultdict(list)
        self.enough = asyncio.Event()

    async def crawl(self, pacer: Pacer, caller: str) -> None:
        """Ask when told to, up to the end."""
        self.asked[caller] = time.time()
        while not self.enough.is_set():
            grant = await pacer.reserve(SlotRequest(MAX_KEYS[0], HALF, caller, max_wait=1.5))
            result = grant.result
            if isinstance(result, Slot):
                self.slots[caller].append((result.go_at, grant.degraded))
                await asyncio.sleep(result.wait + 0.1)
            else:
                await asyncio.sleep(result.retry_after)

    def count(self, *, degraded: bool) -> int:
        return sum(local is degraded for slots in self.slots.values() for _, local in slots)


async def test_a_newcomer_has_a_page_within_two_rounds_of_a_failover() -> None:
    crowd, size = Crowd(), 8
    with watched(1, 1) as fleet:
        async with pacers(sentinel_url(fleet)) as both, asyncio.TaskGroup() as group:
            for number in range(size):
                group.create_task(crowd.crawl(both[number % PROCESSES][0], f"w{number}"))
            await until_so(lambda: crowd.count(degraded=False) >= 2 * size)
            fleet.copied()
            fleet.replicas[0].stop()  # so that it does not take over before both work alone
            fleet.masters[0].kill()
            await until_so(lambda: crowd.count(degraded=True) >= size)
            before = crowd.count(degraded=False)
            fleet.replicas[0].process.resume()
            await until_so(lambda: crowd.count(degraded=False) > before)
            group.create_task(crowd.crawl(both[0][0], "new"))
            await until_so(lambda: bool(crowd.slots["new"]))
            crowd.enough.set()
    goes = sorted(go for slots in crowd.slots.values() for go, _ in slots)
    assert all(later - go > 0.499 for go, later in pairwise(goes))
    first = crowd.slots["new"][0][0]
    assert sum(crowd.asked["new"] < go < first for go in goes) < 2 * (size + 1)
