"""A task that is told to end is told until it does."""

import asyncio
from functools import partial

from redis.asyncio import Redis

from app.background import cancel_and_wait
from app.cache.invalidation import InvalidationListener
from app.redis.connect import connect, subscriber


class Stubborn:
    """A task that overhears the first times it is told."""

    def __init__(self, overheard: int) -> None:
        self.told = 0
        self.overheard = overheard

    async def __call__(self) -> None:
        while True:
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                self.told += 1
                if self.told > self.overheard:
                    raise


async def test_a_task_is_told_until_it_ends() -> None:
    polite, stubborn = Stubborn(0), Stubborn(2)
    tasks = [asyncio.create_task(polite()), asyncio.create_task(stubborn())]
    await asyncio.sleep(0)
    await cancel_and_wait(tasks)
    assert (polite.told, stubborn.told) == (1, 3)
    assert all(task.cancelled() for task in tasks)


async def test_what_has_ended_is_left_alone() -> None:
    async def fail() -> None:
        raise LookupError

    task = asyncio.create_task(fail())
    await asyncio.wait([task])
    await cancel_and_wait([task])
    assert isinstance(task.exception(), LookupError)


async def test_news_end_at_whatever_step_of_subscribing_they_are_told_to(store_url: str, store_client: Redis) -> None:
    for steps in range(40):
        client = connect(store_url)
        async with InvalidationListener(partial(subscriber, client), "me", lambda word, origin: None, lambda: None):
            for _ in range(steps):
                await asyncio.sleep(0)
        await client.aclose()
