"""Work of a request waits for one piece of each other request, not for all of them."""

import asyncio
from collections import Counter

import pytest

from app.loop.request import REQUEST_ID
from app.loop.request_shares import RequestShares


async def begun_for_requests(cancelled: int) -> list[str]:
    """The order in which 300 pieces of one request and one of another begin, of which the first ones are cancelled."""
    shares = RequestShares(2)
    begun: list[str] = []

    async def work(request: str) -> None:
        REQUEST_ID.set(request)
        async with shares:
            begun.append(request)
            await asyncio.sleep(0)

    async with shares, shares:
        tasks = [asyncio.create_task(work("list")) for _ in range(300)]
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(work("page")))
        await asyncio.sleep(0)
        for task in tasks[:cancelled]:
            task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    async with shares, shares:  # nothing is left of them
        pass
    return begun


@pytest.mark.parametrize("cancelled", [0, 1, 2, 299])
async def test_work_of_a_request_does_not_wait_for_all_of_another(cancelled: int) -> None:
    begun = await begun_for_requests(cancelled)
    assert Counter(begun) == {"list": 300 - cancelled, "page": 1}
    assert begun.index("page") < 2


async def test_work_that_is_cancelled_as_it_is_admitted_passes_its_place_on() -> None:
    shares = RequestShares(1)

    async def work() -> None:
        async with shares:
            pass

    async with shares:
        first, second = (asyncio.create_task(work()) for _ in range(2))
        await asyncio.sleep(0)
    first.cancel()  # its turn has come, and it did not run yet
    await second
    assert first.cancelled()
