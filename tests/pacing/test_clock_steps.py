"""Queues and backoffs keep their pace when the store's clock is set, back or forward."""

import math
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from app.pacing.local_pacer import LocalPacer
from app.pacing.pacer import Pacer
from app.pacing.redis_pacer import RedisPacer, keys_of
from app.pacing.schedule import PaceWindow
from app.pacing.slots import PaceKey, Slot, SlotRequest
from app.store.connect import Client
from app.store.guarded_client import GuardedClient
from app.store.store_clock import StoreClocks
from tests.engines import Node, client_of
from tests.pacing.server_clock import ServerClock, clocked

KEYS = [PaceKey.of(f"{number}.example.com", "ExampleBot") for number in range(10)]
MINUTE, SECOND = (PaceWindow(math.inf, 60.0),), (PaceWindow(math.inf, 1.0),)
HOUR, DAY = 3600, 86_400


@pytest.fixture(scope="module")
def clocked_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerClock, Node]]:
    with clocked(tmp_path_factory.mktemp("clock")) as both:
        yield both


@pytest.mark.parametrize("ahead", [HOUR, 600], ids=["an hour", "ten minutes"])
async def test_a_clock_set_back_makes_no_queue_longer(clocked_server: tuple[ServerClock, Node], ahead: int) -> None:
    clock, server = clocked_server
    clock.set(server, ahead)
    server.ask("FLUSHALL")
    steps = []
    async with client_of(server) as client:
        pace = RedisPacer(GuardedClient(client, monotonic=lambda: 0.0, timeout=20.0))
        pacer = Pacer(
            pace, LocalPacer(1), StoreClocks(time.time, time.monotonic), clock_stepped=lambda: steps.append(1)
        )
        key, other, slow, pushed = KEYS[:4]
        queued = [await pacer.reserve(SlotRequest(key, SECOND, "w", max_wait=60)) for _ in range(10)]
        assert isinstance(queued[-1].result, Slot)
        assert (await pacer.reserve(SlotRequest(other, MINUTE, "w"))).result.wait == 0
        await pace.back_off(pushed, 120)
        assert steps == []
        clock.set(server, 0)
        # Granted slots are respected, and no wait grows by the clock's step.
        after = await pacer.reserve(SlotRequest(key, SECOND, "w", max_wait=60))
        assert isinstance(after.result, Slot)
        assert 5 < after.result.wait <= 10
        assert 30 < (await pacer.reserve(SlotRequest(other, MINUTE, "w", max_wait=90))).result.wait <= 60
        assert (await pacer.reserve(SlotRequest(slow, MINUTE, "w"))).result.wait == 0
        assert 60 < (await pacer.reserve(SlotRequest(pushed, SECOND, "w", max_wait=200))).result.wait <= 121
        assert len(steps) == 2
        again = await pacer.reserve(SlotRequest(key, SECOND, "w", max_wait=60))
        assert again.result.wait - after.result.wait == pytest.approx(1, abs=0.5)
        assert len(steps) == 2
        await pacer.aclose()


async def test_a_process_with_the_old_clock_closes_no_queue(clocked_server: tuple[ServerClock, Node]) -> None:
    clock, server = clocked_server
    clock.set(server, HOUR)
    server.ask("FLUSHALL")
    async with client_of(server) as client:
        pace = RedisPacer(GuardedClient(client, monotonic=lambda: 0.0, timeout=20.0))
        pacer = Pacer(pace, LocalPacer(1), StoreClocks(time.time, time.monotonic))
        await pacer.reserve(SlotRequest(KEYS[0], SECOND, "w", max_wait=60))
        clock.set(server, 0)
        server.ask("FLUSHALL")  # as if a replica without this state had taken over
        assert (await pacer.reserve(SlotRequest(KEYS[0], SECOND, "w", max_wait=60))).result.wait < 6
        await pacer.aclose()


# Forward.


@dataclass
class Process:
    """A process, and the queues that it found moved."""

    pacer: Pacer
    store: RedisPacer
    steps: list[int] = field(default_factory=list)

    async def go_at(self, key: PaceKey) -> float:
        """The instant of the next slot, by the store's clock."""
        result = (await self.pacer.reserve(SlotRequest(key, SECOND, "w", max_wait=1e6))).result
        assert isinstance(result, Slot)
        return result.go_at

    async def wait(self, key: PaceKey, max_wait: float = 1e6, windows: tuple[PaceWindow, ...] = SECOND) -> float:
        """The wait for the next slot."""
        return (await self.pacer.reserve(SlotRequest(key, windows, "w", max_wait=max_wait))).result.wait


def process_on(client: Client) -> Process:
    clocks, steps = StoreClocks(time.time, time.monotonic), list[int]()
    store = RedisPacer(GuardedClient(client, monotonic=time.monotonic, timeout=20.0), clocks=clocks)
    return Process(Pacer(store, LocalPacer(1), clocks, clock_stepped=lambda: steps.append(1)), store, steps)


@asynccontextmanager
async def two_processes(server: Node) -> AsyncIterator[list[Process]]:
    """Two processes, which have reached the server."""
    async with client_of(server) as client:
        both = [process_on(client) for _ in range(2)]
        for number, one in enumerate(both):
            await one.wait(KEYS[number])
        yield both
        for one in both:
            await one.pacer.aclose()


STEPS = [3, 40, HOUR, 2 * DAY]


@pytest.mark.parametrize("step", STEPS)
async def test_a_forward_step_keeps_the_pace(clocked_server: tuple[ServerClock, Node], step: int) -> None:
    clock, server = clocked_server
    clock.set(server, 0)
    server.ask("FLUSHALL")
    async with two_processes(server) as both:
        goes = [await both[number % 2].go_at(KEYS[5]) for number in range(30)]
        clock.set(server, step)
        goes += [await both[number % 2].go_at(KEYS[5]) - step for number in range(30)]
        # Every caller goes when its wait is over, which does not depend on the clock.
        goes.sort()
        assert min(later - first for first, later in pairwise(goes)) > 0.999
        assert goes[-1] - goes[0] < 60 + 15  # and the step lengthens no queue
        assert sum(len(one.steps) for one in both) == 1


@pytest.mark.parametrize("evicted", [False, True])
@pytest.mark.parametrize("step", STEPS)
async def test_a_forward_step_shortens_no_backoff(
    clocked_server: tuple[ServerClock, Node], step: int, evicted: bool
) -> None:
    clock, server = clocked_server
    clock.set(server, 0)
    server.ask("FLUSHALL")
    async with two_processes(server) as (one, other), client_of(server) as client:
        for key in KEYS[2:6]:
            assert await one.store.back_off(key, HOUR) > HOUR - 5  # past the pacer, which would remember it
        if evicted:
            for key in KEYS[2:6]:
                server.ask("DEL", keys_of(key)[2])  # the durable record is left
        clock.set(server, step)
        # The call that meets the step, a later one of the same process, one of another, and a report.
        assert HOUR - 60 < await one.wait(KEYS[2]) <= HOUR + 15
        assert HOUR - 60 < await one.wait(KEYS[3]) <= HOUR + 15
        assert HOUR - 60 < await other.wait(KEYS[4]) <= HOUR + 15
        assert HOUR - 60 < (await other.pacer.back_off(KEYS[5], 0)).value <= HOUR + 15
        newcomer = process_on(client)
        for key in KEYS[2:6]:
            assert HOUR - 60 < await newcomer.wait(key) <= HOUR + 30
        await newcomer.pacer.aclose()


async def test_two_forward_steps_add_up(clocked_server: tuple[ServerClock, Node]) -> None:
    clock, server = clocked_server
    clock.set(server, 0)
    server.ask("FLUSHALL")
    async with two_processes(server) as (one, _):
        await one.store.back_off(KEYS[2], HOUR)
        for step in (1000, 2500):
            clock.set(server, step)
            await one.wait(KEYS[0])
        assert HOUR - 60 < await one.wait(KEYS[2]) <= HOUR + 30


async def test_a_slot_of_before_a_step_is_not_released_into_the_new_queue(
    clocked_server: tuple[ServerClock, Node],
) -> None:
    clock, server = clocked_server
    clock.set(server, 0)
    server.ask("FLUSHALL")
    async with two_processes(server) as (one, _):
        slots = [(await one.pacer.reserve(SlotRequest(KEYS[2], MINUTE, "w", max_wait=600))).result for _ in range(3)]
        assert isinstance(slots[2], Slot)
        clock.set(server, 40)
        assert (await one.pacer.release(KEYS[2], slots[2].name)).value == 0
        assert 170 < await one.wait(KEYS[2], windows=MINUTE) <= 195


@pytest.mark.parametrize("back", [60, HOUR])
async def test_a_backoff_counts_down_after_a_step_back(clocked_server: tuple[ServerClock, Node], back: int) -> None:
    clock, server = clocked_server
    clock.set(server, back)
    server.ask("FLUSHALL")
    async with two_processes(server) as (one, _):
        await one.store.back_off(KEYS[2], 120)
        clock.set(server, 0)
        assert 100 < await one.wait(KEYS[2], max_wait=0) <= 121
        clock.set(server, 50)  # as if 50 s had passed: neither process has a clock that says otherwise
        async with client_of(server) as client:
            newcomer = process_on(client)
            assert 50 < await newcomer.wait(KEYS[2], max_wait=0) <= 75
            await newcomer.pacer.aclose()


async def test_a_call_that_is_run_late_moves_a_queue_once(clocked_server: tuple[ServerClock, Node]) -> None:
    clock, server = clocked_server
    clock.set(server, 0)
    server.ask("FLUSHALL")
    now = time.monotonic()
    async with client_of(server) as client:
        clocks = StoreClocks(time.time, lambda: now)
        store = RedisPacer(GuardedClient(client, monotonic=time.monotonic, timeout=20.0), clocks=clocks)
        pacer = Pacer(store, LocalPacer(1), clocks)
        assert (await pacer.reserve(SlotRequest(KEYS[2], MINUTE, "w"))).result.wait == 0
        late = clocks.of(store.shard_of(KEYS[2]))
        waits = []
        clock.set(server, 30)
        for _ in range(5):
            late.sync_reply(time.time(), now)  # each was sent 30 s before the server runs it
            waits.append((await pacer.reserve(SlotRequest(KEYS[2], MINUTE, "w", max_wait=1000))).result.wait)
        # Without the move, the first would wait for 30 s; if every call moved the queue, each for 30 s more.
        assert waits == pytest.approx([60, 120, 180, 240, 300], abs=10)
        await pacer.aclose()
