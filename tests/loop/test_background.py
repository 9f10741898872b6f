"""Cancelling tasks until they end, and calling what is called again and again."""

import asyncio
from functools import partial

import pytest
from redis.asyncio import Redis

from app.cache.invalidation import InvalidationListener
from app.loop.background import BackgroundTask, cancel_and_wait, periodically
from app.store.connect import connect, subscriber


class Stubborn:
    """A task that ignores its first cancellations."""

    def __init__(self, ignored: int) -> None:
        self.cancelled = 0
        self.ignored = ignored

    async def __call__(self) -> None:
        while True:
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                self.cancelled += 1
                if self.cancelled > self.ignored:
                    raise


async def test_a_task_is_cancelled_until_it_ends() -> None:
    polite, stubborn = Stubborn(0), Stubborn(2)
    tasks = [asyncio.create_task(polite()), asyncio.create_task(stubborn())]
    await asyncio.sleep(0)
    await cancel_and_wait(tasks)
    assert (polite.cancelled, stubborn.cancelled) == (1, 3)
    assert all(task.cancelled() for task in tasks)


async def test_a_task_that_has_ended_is_not_cancelled() -> None:
    async def fail() -> None:
        raise LookupError

    task = asyncio.create_task(fail())
    await asyncio.wait([task])
    await cancel_and_wait([task])
    assert isinstance(task.exception(), LookupError)


@pytest.mark.parametrize("at_once", [False, True])
async def test_work_may_be_called_before_the_block_begins(at_once: bool) -> None:
    calls: list[None] = []

    async def work() -> None:
        calls.append(None)
        raise LookupError

    async with periodically(BackgroundTask.GAUGES, work, 3600.0, ignoring=LookupError, at_once=at_once):
        assert len(calls) == at_once
    with pytest.raises(LookupError):
        async with periodically(BackgroundTask.GAUGES, work, 3600.0, at_once=True):
            pytest.fail("the block began")


async def test_a_listener_can_be_cancelled_at_any_step_of_subscribing(store_url: str, store_client: Redis) -> None:
    for steps in range(40):
        client = connect(store_url)
        listener = InvalidationListener(partial(subscriber, client), "me", lambda event, origin: None, lambda: None)
        async with listener.listening():
            for _ in range(steps):
                await asyncio.sleep(0)
        await client.aclose()
