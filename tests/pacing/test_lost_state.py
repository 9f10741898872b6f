"""What a process knows of a queue or a backoff holds after the store was away, or lost it: every outage, every kind."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest

from app.pacing.local_pacer import LocalPacer
from app.pacing.membership import FleetMembership
from app.pacing.pacer import Pacer
from app.pacing.redis_pacer import RedisPacer
from app.pacing.schedule import PaceWindow
from app.pacing.slots import PaceKey, Slot, SlotRequest, SlotResult
from app.store.connect import connect
from app.store.guarded_client import GuardedClient
from app.store.store_clock import StoreClocks
from tests.faults.until import until, until_so
from tests.pacing.restartable import Restartable, restartable

KEY = PaceKey.of("www.example.com", "ExampleBot")
OTHER = PaceKey.of("other.example", "ExampleBot")
MINUTE = (PaceWindow(math.inf, 60.0),)
RETRY_AFTER = 50_000.0
FASTER = 20.0
"""How many times as fast the clocks of the processes go on, so that a test need not wait for cooldowns."""


def steady() -> float:
    return time.monotonic() * FASTER


async def sleep(seconds: float) -> None:
    await asyncio.sleep(seconds / FASTER)


class Process:
    """A process of the fleet. It counts the backoffs that it gave back."""

    def __init__(self, number: int, calls: GuardedClient) -> None:
        clocks = StoreClocks(time.time, steady)
        self.given_back = 0
        self.pacer = Pacer(
            RedisPacer(calls, clocks=clocks), LocalPacer(2), clocks, sleep, backoff_given_back=self._count
        )
        self.membership = FleetMembership(calls, str(number), self.pacer.on_loss)

    def _count(self) -> None:
        self.given_back += 1

    async def ask(self, key: PaceKey = KEY, max_wait: float = 0.0) -> SlotResult:
        return (await self.pacer.reserve(SlotRequest(key, MINUTE, "w", max_wait=max_wait))).result

    async def works_alone(self) -> bool:
        """Whether it gives slots without the store."""
        grant = await self.pacer.reserve(SlotRequest(OTHER, MINUTE, "w", max_wait=100))
        return grant.degraded and grant.result.wait > 1.5


class Fleet:
    def __init__(self, server: Restartable, processes: list[Process]) -> None:
        self.server = server
        self.first, self.second = processes

    async def answers(self) -> None:
        """Wait until both processes reach the store again."""
        for process in (self.first, self.second):
            await until(
                partial(process.pacer.reserve, SlotRequest(OTHER, MINUTE, "w")), lambda grant: not grant.degraded
            )


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    """Two processes."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(restartable(tmp_path))
        processes = []
        for number in range(2):
            client = connect(server.between.url)
            stack.push_async_callback(client.aclose)
            calls = GuardedClient(client, monotonic=steady, timeout=2.0)
            stack.push_async_callback(calls.aclose)
            processes.append(Process(number, calls))
            stack.push_async_callback(processes[-1].pacer.aclose)
            await processes[-1].membership.announce()
        yield Fleet(server, processes)


# What happens to the store, in two steps: it is away, and it is back.

Step = Callable[[Fleet], Awaitable[None]]


async def killed(fleet: Fleet) -> None:
    """For longer than the time from one announcement to the next."""
    fleet.server.kill()
    await fleet.first.membership.announce()


async def emptied(fleet: Fleet) -> None:
    fleet.server.start()


async def refused(fleet: Fleet) -> None:
    fleet.server.between.refusing = True
    fleet.server.between.cut()


async def accepted(fleet: Fleet) -> None:
    fleet.server.between.refusing = False


async def refused_for_long(fleet: Fleet) -> None:
    await refused(fleet)
    while not await fleet.first.works_alone():
        await sleep(0.5)


async def flushed(fleet: Fleet) -> None:
    fleet.server.node.ask("FLUSHALL")


async def nothing(_fleet: Fleet) -> None: ...


OUTAGES: dict[str, tuple[Step, Step]] = {
    "emptied": (killed, emptied),  # `save` is not called: there is no dump
    "older": (killed, emptied),
    "refused": (refused, accepted),
    "refused for long": (refused_for_long, accepted),
    "flushed": (flushed, nothing),
}


LOSING = {"emptied", "older", "flushed"}


async def before(fleet: Fleet) -> None:
    await fleet.first.pacer.back_off(KEY, RETRY_AFTER)


async def nothing_before(fleet: Fleet) -> None:
    assert isinstance(await fleet.first.ask(), Slot)


async def during(fleet: Fleet) -> None:
    assert (await fleet.first.pacer.back_off(KEY, RETRY_AFTER)).value == RETRY_AFTER


@pytest.mark.parametrize("asked", ["both know", "one knows"])
@pytest.mark.parametrize(
    ("outage", "reported"),
    [(one, "before") for one in OUTAGES] + [(one, "during") for one in OUTAGES if one != "flushed"],
)
async def test_a_backoff_outlives_every_outage(fleet: Fleet, outage: str, reported: str, asked: str) -> None:
    away, back = OUTAGES[outage]
    if outage == "older":
        assert isinstance(await fleet.first.ask(OTHER), Slot)
        fleet.server.save()
    await (before if reported == "before" else nothing_before)(fleet)
    if asked == "both know" and reported == "before":
        assert (await fleet.second.ask()).wait > RETRY_AFTER / 2
    await away(fleet)
    if reported == "during":
        await during(fleet)
    await back(fleet)
    lost = outage in LOSING or reported == "during"
    if asked == "both know":
        await fleet.answers()
        first = await fleet.first.ask()
        assert first.wait > RETRY_AFTER / 2
    else:
        # Nothing is asked of the process that knows: it finds out by itself, and tells the store.
        await until_so_announced(fleet, lambda: fleet.first.given_back > 0 or not lost)
    await fleet.answers()
    second = await fleet.second.ask()
    assert second.wait > RETRY_AFTER / 2
    assert not isinstance(second, Slot)
    assert (fleet.first.given_back + fleet.second.given_back > 0) == lost


async def until_so_announced(fleet: Fleet, condition: Callable[[], bool]) -> None:
    """Announce both processes, as they do every few seconds, until the condition holds."""

    async def announcing() -> None:
        while True:
            await fleet.first.membership.announce()
            await fleet.second.membership.announce()
            await sleep(1.0)

    task = asyncio.create_task(announcing())
    try:
        await until_so(condition)
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.mark.parametrize("outage", OUTAGES)
async def test_a_queue_outlives_every_outage(fleet: Fleet, outage: str) -> None:
    away, back = OUTAGES[outage]
    if outage == "older":
        fleet.server.save()
    waits = [(await fleet.first.ask(max_wait=100_000)).wait for _ in range(100)]
    assert waits[-1] > 5000
    await away(fleet)
    await back(fleet)
    await fleet.answers()
    again = await fleet.first.ask(max_wait=100_000)
    assert again.wait > 4000
    assert (await fleet.second.ask(max_wait=100_000)).wait > again.wait
