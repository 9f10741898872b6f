"""Hostile name servers: wrong, changing, excessive or no answers; connections made, and outcomes."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address

import pytest

from app.fetch.client import Fetcher
from app.fetch.network import ADDRESSES_TRIED, MOST_ADDRESSES, SystemResolver
from robots_core.robots.access import Access, Blocked, Cause, Successful, Unreachable
from tests.faults.dns import (
    NXDOMAIN,
    REFUSED,
    SERVFAIL,
    SILENCE,
    Answer,
    NameServer,
    addresses,
    alias,
    name_server,
)
from tests.faults.fetching import PUBLIC, SITE, Wire, fetcher, nothing_left
from tests.faults.until import until_so
from tests.origins import LoopbackOrigin, Reply, redirect, serve, text

FOUND = Successful(200, b"", content_type="text/plain")
PRIVATE = "10.0.0.1"
PRIVATE_6 = "fd00::1"
METADATA = "169.254.169.254"
ELSEWHERE = "other.example"


class World:
    """An origin behind a public address, a name server, and a fetcher that uses it."""

    def __init__(self, origin: LoopbackOrigin, server: NameServer, wire: Wire, fetcher: Fetcher) -> None:
        self.origin = origin
        self.server = server
        self.wire = wire
        self._fetcher = fetcher

    async def fetch(self, name: str = SITE) -> Access:
        access = (await self._fetcher.fetch(self.origin.named(name))).access
        assert isinstance(access, Access)
        return access


@asynccontextmanager
async def world(
    zone: Mapping[str, Sequence[Answer]],
    *replies: Reply,
    timeout: float = 10.0,  # noqa: ASYNC109
    patience: float = 5.0,
) -> AsyncIterator[World]:
    async with nothing_left(), serve(*(replies or [text(200)])) as origin, name_server(zone, patience) as server:
        resolver, wire = SystemResolver(threads=4, lookup=server.look_up), Wire({PUBLIC: origin})
        try:
            yield World(origin, server, wire, fetcher(resolver, wire, timeout=timeout))
        finally:
            await until_so(lambda: server.lookups_under_way == 0)
            resolver.close()
    assert wire.open_now == 0


async def test_public_name_is_looked_up_once_and_fetched() -> None:
    async with world({SITE: [addresses(PUBLIC)]}) as our:
        assert await our.fetch() == FOUND
        assert our.server.questions == [(SITE, "AAAA", "udp"), (SITE, "A", "udp")]
        assert our.wire.tried == [PUBLIC]


@pytest.mark.parametrize("private", [PRIVATE, METADATA, PRIVATE_6, "127.0.0.1", "::1", "::ffff:10.0.0.1"])
async def test_spec_a32_a_rebound_name_is_reached_where_it_was_checked(private: str) -> None:
    async with world({SITE: [addresses(PUBLIC), addresses(private)]}) as our:
        assert await our.fetch() == FOUND
        assert await our.fetch() == Blocked(str(ip_address(private)))
        assert await our.fetch() == Blocked(str(ip_address(private)))
        assert our.wire.tried == [PUBLIC]
        assert len(our.origin.requests) == 1


async def test_spec_a32_a_name_that_rebinds_between_hops_is_refused() -> None:
    async with world({SITE: [addresses(PUBLIC), addresses(METADATA)]}, redirect("/again")) as our:
        assert await our.fetch() == Unreachable(Cause.REFUSED_REDIRECT, 301)
        assert our.wire.tried == [PUBLIC]


async def test_formerly_private_name_is_judged_by_its_new_answer() -> None:
    async with world({SITE: [addresses(PRIVATE), addresses(PUBLIC)]}) as our:
        assert await our.fetch() == Blocked(PRIVATE)
        assert await our.fetch() == FOUND


@pytest.mark.parametrize(
    ("mixed", "first"),
    [
        ((PUBLIC, PRIVATE), PRIVATE),
        ((PRIVATE, PUBLIC), PRIVATE),
        ((PUBLIC, PRIVATE_6), PRIVATE_6),
        ((PUBLIC, "2606:4700::1111", "fe80::1"), "fe80::1"),
        ((PUBLIC, "64:ff9b::10.0.0.1"), "64:ff9b::10.0.0.1"),
    ],
)
async def test_spec_a32_a_mix_of_public_and_private_addresses_is_refused(mixed: tuple[str, ...], first: str) -> None:
    async with world({SITE: [addresses(*mixed)], ELSEWHERE: [addresses(PUBLIC)]}, redirect(f"http://{SITE}/")) as our:
        assert await our.fetch() == Blocked(str(ip_address(first)))
        assert our.wire.tried == []
        assert await our.fetch(ELSEWHERE) == Unreachable(Cause.REFUSED_REDIRECT, 301)
        assert our.wire.tried == [PUBLIC]


@pytest.mark.parametrize("private", [(), (PRIVATE,), (PRIVATE_6,)])
async def test_name_with_too_many_addresses_is_refused(private: tuple[str, ...]) -> None:
    many = [f"93.184.{high}.{low}" for high in range(1, 4) for low in range(1, 250)]
    zone = {
        SITE: [addresses(*many, *private)],
        ELSEWHERE: [addresses(PUBLIC, *many[: MOST_ADDRESSES - 1])],
    }
    async with world(zone) as our:
        assert await our.fetch() == Unreachable(Cause.DNS)
        assert our.wire.tried == []
        await our.fetch(ELSEWHERE)
        assert len(our.wire.tried) == ADDRESSES_TRIED


async def test_a_public_ipv4_address_and_its_nat64_form_may_be_mixed() -> None:
    async with world({SITE: [addresses("64:ff9b::" + PUBLIC, PUBLIC)]}) as our:
        assert await our.fetch() == FOUND
        assert our.wire.tried == [str(ip_address("64:ff9b::" + PUBLIC)), PUBLIC]


@pytest.mark.parametrize("end", [PRIVATE, METADATA, PRIVATE_6])
@pytest.mark.parametrize("length", [1, 8])
async def test_spec_a32_an_alias_is_judged_by_the_address_that_it_ends_at(end: str, length: int) -> None:
    steps = {f"{step}.example": [alias(f"{step + 1}.example")] for step in range(length)}
    zone = {SITE: [alias("0.example")], **steps, f"{length}.example": [addresses(end)]}
    async with world(zone) as our:
        assert await our.fetch() == Blocked(end)
        assert our.wire.tried == []


async def test_an_alias_of_a_public_name_is_followed() -> None:
    zone = {SITE: [alias(ELSEWHERE)], ELSEWHERE: [addresses(PUBLIC)]}
    async with world(zone) as our:
        assert await our.fetch() == FOUND
        assert our.origin.requests[0].split(b"\r\n")[1] == f"Host: {SITE}:{our.origin.port}".encode()


@pytest.mark.parametrize(
    "answer",
    [SERVFAIL, REFUSED, NXDOMAIN, addresses(), alias("nowhere.example")],
    ids=["SERVFAIL", "REFUSED", "NXDOMAIN", "no address", "an alias of nothing"],
)
async def test_spec_a15_a_name_without_an_address_is_unreachable_for_now(answer: Answer) -> None:
    async with world({SITE: [answer, addresses(PUBLIC)], ELSEWHERE: [addresses(PUBLIC)]}) as our:
        assert await our.fetch() == Unreachable(Cause.DNS)
        assert our.wire.tried == []
        assert await our.fetch() == FOUND


async def test_spec_a15_a_loop_of_aliases_has_no_address() -> None:
    async with world({SITE: [alias(ELSEWHERE)], ELSEWHERE: [alias(SITE)]}, patience=0.2) as our:
        assert await our.fetch() == Unreachable(Cause.DNS)


async def test_spec_a15_a_redirect_to_a_name_without_address_is_unreachable() -> None:
    zone = {SITE: [addresses(PUBLIC)], ELSEWHERE: [SERVFAIL]}
    async with world(zone, redirect(f"http://{ELSEWHERE}/")) as our:
        assert await our.fetch() == Unreachable(Cause.DNS)


async def test_of_five_hundred_addresses_three_are_tried() -> None:
    many = [f"93.184.{number // 250}.{number % 250}" for number in range(500)]
    async with world({SITE: [addresses(*many)]}) as our:
        assert await our.fetch() == Unreachable(Cause.CONNECTION)
        assert len(our.wire.tried) == ADDRESSES_TRIED
        assert (SITE, "A", "tcp") in our.server.questions


async def test_spec_a32_one_private_address_among_500_public_ones_is_found() -> None:
    many = [f"93.184.{number // 250}.{number % 250}" for number in range(500)]
    async with world({SITE: [addresses(*many, PRIVATE)]}) as our:
        assert await our.fetch() == Blocked(PRIVATE)
        assert our.wire.tried == []


async def test_silent_name_server_ends_at_the_deadline() -> None:
    async with world({SITE: [SILENCE]}, timeout=0.2, patience=0.4) as our:
        assert await our.fetch() == Unreachable(Cause.TIMEOUT)


async def test_failed_lookup_is_a_dns_failure() -> None:
    async with world({SITE: [SILENCE]}, patience=0.2) as our:
        assert await our.fetch() == Unreachable(Cause.DNS)


async def test_silent_name_server_does_not_delay_other_names() -> None:
    async with world({SITE: [SILENCE], ELSEWHERE: [addresses(PUBLIC)]}, timeout=1.0, patience=0.7) as our:
        assert await our.fetch() == Unreachable(Cause.TIMEOUT)
        assert our.server.lookups_under_way == 1
        assert await our.fetch(ELSEWHERE) == FOUND
