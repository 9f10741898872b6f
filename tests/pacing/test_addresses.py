"""Hosts of one address have one lane: looked up once for all, and given up where no name server answers."""

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import ip_address

import pytest

from app.pacing import addresses
from app.pacing.addresses import KEPT, Address, Addresses
from app.robots.access import Busy
from tests.origins import Names


class Watch:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def place(known: Addresses, host: str) -> str | None:
    lane = await known.lane(host)
    assert lane is None or lane.token is None
    return None if lane is None else lane.place


async def test_the_least_of_several_addresses_is_the_lane() -> None:
    names = Names({"a.test": ["192.0.2.9", "2001:db8::1", "192.0.2.10"], "b.test": ["192.0.2.10", "192.0.2.9"]})
    known = Addresses(names, Watch())
    assert await place(known, "a.test") == await place(known, "b.test") == "address:192.0.2.9"
    assert await place(known, "2001:db8::7") == "address:2001:db8::7"
    assert names.asked == ["a.test", "b.test"]


async def test_an_address_is_believed_for_a_while_and_so_is_that_there_is_none() -> None:
    names, watch = Names({"a.test": ["192.0.2.9"]}), Watch()
    known = Addresses(names, watch)
    for _ in range(3):
        assert await place(known, "a.test") == "address:192.0.2.9"
        assert await place(known, "none.test") is None
    assert names.asked == ["a.test", "none.test"]
    watch.now = KEPT
    await asyncio.gather(*(place(known, "a.test") for _ in range(20)))
    assert names.asked == ["a.test", "none.test", "a.test"]


@pytest.mark.parametrize("error", [Busy(1), socket.gaierror(), TimeoutError()])
async def test_a_resolver_that_fails_has_no_lane(error: Exception) -> None:
    async def fails(name: str) -> Sequence[Address]:
        raise error

    assert await place(Addresses(fails, Watch()), "a.test") is None


async def test_a_resolver_that_says_nothing_is_not_waited_for_without_end() -> None:
    answer = asyncio.Event()

    async def slow(name: str) -> Sequence[Address]:
        await answer.wait()
        return [ip_address("192.0.2.1")]

    known = Addresses(slow, Watch())
    async with asyncio.timeout(addresses.PATIENCE * 20):
        assert await place(known, "a.test") is None
    answer.set()
    assert await place(known, "a.test") == "address:192.0.2.1"
    await known.aclose()
