"""A failed fetch leaves no reference cycle for the garbage collector."""

import asyncio
import gc

import pytest

from tests.faults.fetching import PUBLIC, SITE, Wire, fetcher
from tests.origins import Exchange, Names, Reply, serve, text


async def stall(exchange: Exchange) -> None:
    await exchange.stall()


@pytest.mark.parametrize(
    ("reply", "listens"),
    [(text(500), True), (b"\0\1 not HTTP\r\n\r\n", True), (b"", True), (stall, True), (text(200), False)],
    ids=["500", "not HTTP", "nothing", "stall", "refused"],
)
async def test_a_fetch_that_fails_leaves_no_cycle(reply: Reply, listens: bool, garbage: list[object]) -> None:
    async with serve(reply) as origin:
        fetch = fetcher(Names({SITE: [PUBLIC]}), Wire({PUBLIC: origin} if listens else {}), timeout=0.5).fetch
        await fetch(origin.named(SITE))
    await asyncio.sleep(0)
    gc.collect()
    assert [found for found in garbage if isinstance(found, BaseException)] == []
