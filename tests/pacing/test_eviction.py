"""Politeness outlives what happens to the store: keys that are evicted, and a clock that is set."""

import asyncio
import math
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from app.origin import Origin
from app.pacing.local_pacer import LocalPacer
from app.pacing.pacer import Pacer
from app.pacing.redis_pacer import RedisPacer, keys_of
from app.pacing.schedule import PaceWindow
from app.pacing.slots import PaceKey, QueueState, Reply, Slot, SlotRequest, WaitTooLong
from app.redis.connect import Client, connect
from app.redis.guarded_client import GuardedClient
from tests.engines import QUOTED, Node, node

LANES = [PaceKey.of(Origin("https", f"{number}.example.com", 443), "ExampleBot") for number in range(200)]
MINUTE, SECOND = (PaceWindow(math.inf, 60.0),), (PaceWindow(math.inf, 1.0),)
HOUR = 3600.0
FILE = bytes(1000)


async def client_of(server: Node) -> AsyncIterator[Client]:
    client = connect(f"redis://:{QUOTED}@127.0.0.1:{server.port}")
    yield client
    await client.aclose()


@pytest.fixture(scope="module")
def small() -> Iterator[Node]:
    """A server as README advises it, with little room."""
    with node(maxmemory="12mb", maxmemory_policy="volatile-lru") as server:
        yield server


@pytest.fixture
async def pace(small: Node) -> AsyncIterator[RedisPacer]:
    small.ask("FLUSHALL")
    async for client in client_of(small):
        yield RedisPacer(GuardedClient(client, monotonic=lambda: 0.0, timeout=20.0))


def fill(server: Node) -> None:
    """Far more files than there is room for."""
    pipe = server.admin.pipeline(transaction=False)
    for number in range(30_000):
        pipe.set(f"robots:{{https://{number}.example.org:443}}", FILE, ex=30 * 86_400)
    pipe.execute()
    assert server.ask("INFO", "stats")["evicted_keys"] > 10_000


def present(server: Node, which: int) -> int:
    """Of how many lanes the key of that number in state.lua is left."""
    return sum(int(server.ask("EXISTS", keys_of(lane)[which])) for lane in LANES)


async def asked(pace: RedisPacer, lane: PaceKey, spans: tuple[PaceWindow, ...] = SECOND) -> Reply:
    reply, _ = await pace.reserve(SlotRequest(lane, spans, "w"), QueueState(), hold=0.0, lost=3.0)
    return reply


async def test_back_offs_outlive_the_eviction_of_files(pace: RedisPacer, small: Node) -> None:
    for lane in LANES:
        assert await pace.hold_back(lane, HOUR) > HOUR - 1
    fill(small)
    assert present(small, 2) < len(LANES)  # most of the rest of their state was evicted
    replies = [await asked(pace, lane) for lane in LANES]
    assert all(isinstance(reply, WaitTooLong) and reply.wait > HOUR - 120 for reply in replies)


async def test_last_slots_outlive_the_eviction_of_files(pace: RedisPacer, small: Node) -> None:
    hour = (PaceWindow(math.inf, HOUR),)
    for lane in LANES:
        assert isinstance(await asked(pace, lane, hour), Slot)
    fill(small)
    assert present(small, 3) < len(LANES)
    assert all([isinstance(await asked(pace, lane, hour), WaitTooLong) for lane in LANES])


async def test_what_is_kept_is_bounded_and_goes_when_it_is_over(pace: RedisPacer, small: Node) -> None:
    kept = keys_of(LANES[0])[0]
    for number in range(600):
        # All in one bucket: the place of a lane chooses it.
        await asked(pace, PaceKey(LANES[0].place, f"bot{number}"), MINUTE)
    assert small.ask("HLEN", kept) <= 256
    small.ask("DEL", *keys_of(LANES[0])[:2])
    for number in range(100):
        await asked(pace, PaceKey(LANES[0].place, f"short{number}"), ((PaceWindow(math.inf, 0.05)),))
    await asyncio.sleep(0.1)
    for number in range(10):
        await asked(pace, PaceKey(LANES[0].place, f"next{number}"), MINUTE)
    assert small.ask("HLEN", kept) == small.ask("ZCARD", keys_of(LANES[0])[1]) == 10


# The clock.


class ServerClock:
    """The clock of a server, in seconds beside ours."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.set(0)

    def set(self, seconds: int) -> None:
        self._path.write_text(str(seconds))


@pytest.fixture(scope="module")
def clocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerClock, Node]]:
    """A server, and its clock."""
    directory = tmp_path_factory.mktemp("clock")
    library, step = directory / "clock.so", directory / "step"
    source = Path(__file__).with_name("clock.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    clock = ServerClock(step)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LD_PRELOAD", str(library))
        environment.setenv("CLOCK_FILE", str(step))
        with node() as server:
            yield clock, server


@pytest.mark.parametrize("ahead", [HOUR, 600], ids=["an hour", "ten minutes"])
async def test_a_clock_set_back_stalls_no_queue_longer_than_it_was(
    clocked: tuple[ServerClock, Node], ahead: float
) -> None:
    clock, server = clocked
    clock.set(round(ahead))
    server.ask("FLUSHALL")
    steps = []
    async for client in client_of(server):
        pace = RedisPacer(GuardedClient(client, monotonic=lambda: 0.0, timeout=20.0))
        pacer = Pacer(pace, LocalPacer(1), time.time, time.monotonic, clock_stepped=lambda: steps.append(1))
        lane, other, slow, pushed = LANES[:4]
        queued = [await pacer.turn(SlotRequest(lane, SECOND, "w", max_wait=60)) for _ in range(10)]
        assert isinstance(queued[-1].reply, Slot)
        assert (await pacer.turn(SlotRequest(other, MINUTE, "w"))).reply.wait == 0
        await pace.hold_back(pushed, 120)
        assert steps == []
        clock.set(0)
        # What was given is respected, and nothing waits for as long as the clock was set back.
        after = await pacer.turn(SlotRequest(lane, SECOND, "w", max_wait=60))
        assert isinstance(after.reply, Slot)
        assert 5 < after.reply.wait <= 10
        assert 30 < (await pacer.turn(SlotRequest(other, MINUTE, "w", max_wait=90))).reply.wait <= 60
        assert (await pacer.turn(SlotRequest(slow, MINUTE, "w"))).reply.wait == 0
        assert 60 < (await pacer.turn(SlotRequest(pushed, SECOND, "w", max_wait=200))).reply.wait <= 121
        assert len(steps) == 2
        again = await pacer.turn(SlotRequest(lane, SECOND, "w", max_wait=60))
        assert again.reply.wait - after.reply.wait == pytest.approx(1, abs=0.5)
        assert len(steps) == 2
        await pacer.aclose()


async def test_a_process_that_remembers_the_old_clock_closes_no_queue(clocked: tuple[ServerClock, Node]) -> None:
    clock, server = clocked
    clock.set(round(HOUR))
    server.ask("FLUSHALL")
    async for client in client_of(server):
        pace = RedisPacer(GuardedClient(client, monotonic=lambda: 0.0, timeout=20.0))
        pacer = Pacer(pace, LocalPacer(1), time.time, time.monotonic)
        await pacer.turn(SlotRequest(LANES[0], SECOND, "w", max_wait=60))
        clock.set(0)
        server.ask("FLUSHALL")  # and the state with it, as where a replica takes over that had none of it
        assert (await pacer.turn(SlotRequest(LANES[0], SECOND, "w", max_wait=60))).reply.wait < 6
        await pacer.aclose()
