"""The end of a fetcher: what runs is finished, and nothing is started."""

import asyncio

import pytest

from robots_core.robots.access import Busy, Unavailable
from tests.faults.fetching import PUBLIC, SITE, Wire, fetcher
from tests.origins import Exchange, Names, serve, text


async def test_closing_waits_for_running_fetches_and_starts_none() -> None:
    go = asyncio.Event()

    async def hold(exchange: Exchange) -> None:
        await go.wait()
        await exchange.send(text(404))

    async with serve(hold) as origin:
        our = fetcher(Names({SITE: [PUBLIC]}), Wire({PUBLIC: origin}))
        fetch = asyncio.create_task(our.fetch(origin.named(SITE)))
        await origin.wait_for_requests(1)
        closing = asyncio.create_task(our.aclose())
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await our.fetch(origin.named(SITE))
        assert not closing.done()
        go.set()
        await closing
        assert (await fetch).access == Unavailable(404)
