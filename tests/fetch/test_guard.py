"""The address tables, the settings that change them, and ports; tests/faults checks every address."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.fetch.guard import GLOBAL_UNICAST, NAT64, PLATFORMS, RANGES, AddressGuard, PortPolicy, Refused, carried


@pytest.mark.parametrize("row", RANGES + PLATFORMS, ids=lambda row: str(row.network))
def test_every_row_refuses_its_whole_range_and_names_its_source(row: Refused) -> None:
    guard = AddressGuard()
    assert row.what
    assert row.source
    assert not guard.admits(row.network[0])
    assert not guard.admits(row.network[-1])


@pytest.mark.parametrize("row", RANGES, ids=lambda row: str(row.network))
def test_the_neighbours_of_a_range_are_checked_by_themselves(row: Refused) -> None:
    ours = [other.network for other in RANGES + PLATFORMS if other.network.version == row.network.version]
    for neighbour in (int(row.network[0]) - 1, int(row.network[-1]) + 1):
        if 0 <= neighbour < 2**row.network.max_prefixlen:
            address = type(row.network[0])(neighbour)
            in_a_row = any(address in network for network in ours)
            unassigned = address.version == 6 and address not in GLOBAL_UNICAST
            assert AddressGuard().admits(address) == (not in_a_row and not unassigned)


@given(st.ip_addresses(v=6))
def test_ipv6_outside_global_unicast_needs_an_embedded_public_ipv4(address: object) -> None:
    judged = ip_address(str(address))
    if AddressGuard().admits(judged):
        assert judged in GLOBAL_UNICAST or judged in NAT64 or str(judged).startswith("::ffff:")


@given(st.ip_addresses(v=4))
def test_rfc6052_a_nat64_address_is_as_public_as_the_ipv4_address_inside(address: object) -> None:
    inner = IPv4Address(str(address))
    outer = IPv6Address(int(NAT64[0]) | int(inner))
    assert carried(outer) == (inner,)
    for guard in (AddressGuard(), AddressGuard([ip_network("10.0.0.0/8")]), AddressGuard([NAT64])):
        assert guard.admits(outer) == guard.admits(inner)


@given(st.ip_addresses(v=4))
def test_an_ipv4_mapped_address_is_checked_as_ipv4(address: object) -> None:
    guard = AddressGuard([ip_network("10.1.0.0/16")])
    assert guard.admits(ip_address(f"::ffff:{address}")) == guard.admits(ip_address(str(address)))


@pytest.mark.parametrize(
    "address",
    [
        "64:ff9b:1:a9fe:a9:fe00::",  # after a prefix of 48 bits
        "64:ff9b:1:a9:fe:a9fe::",  # 56
        "64:ff9b:1:0:a9:fea9:fe00:0",  # 64
        "64:ff9b:1::a9fe:a9fe",  # 96
        "64:ff9b:1:ffff:ffff:ffff:a9fe:a9fe",
    ],
)
@pytest.mark.parametrize("admitted", ["::/0", "64:ff9b:1::/48"])
def test_rfc6052_metadata_stays_closed_behind_a_local_nat64(address: str, admitted: str) -> None:
    assert not AddressGuard([ip_network(admitted)]).admits(ip_address(address))
    named = [ip_network(admitted), ip_network("169.254.169.254/32")]
    assert AddressGuard(named).admits(ip_address(address))


def test_rfc8215_other_local_nat64_addresses_are_left_to_the_network() -> None:
    guard = AddressGuard([ip_network("64:ff9b:1::/48")])
    for address in ("64:ff9b:1::5db8:d822", "64:ff9b:1:5db8:d8:2200::", "64:ff9b:1::a00:1"):
        assert guard.admits(ip_address(address))
    assert not AddressGuard().admits(ip_address("64:ff9b:1::5db8:d822"))


def test_a_setting_admits_exactly_its_range() -> None:
    guard = AddressGuard([ip_network("127.0.0.1/32"), ip_network("::1/128"), ip_network("fd00:1::/32")])
    assert guard.admits(ip_address("::1"))
    assert guard.admits(ip_address("127.0.0.1"))
    assert guard.admits(ip_address("::ffff:127.0.0.1"))
    assert guard.admits(ip_address("fd00:1::5"))
    assert not guard.admits(ip_address("127.0.0.2"))
    assert not guard.admits(ip_address("fd00:2::5"))
    assert guard.admits(ip_address("8.8.8.8"))


@pytest.mark.parametrize("row", PLATFORMS, ids=lambda row: str(row.network))
def test_a_cloud_metadata_address_is_allowed_by_name_not_by_range(row: Refused) -> None:
    address = row.network[-1]
    everything = [ip_network("0.0.0.0/0"), ip_network("::/0"), row.network.supernet()]
    assert not AddressGuard(everything).admits(address)
    assert AddressGuard([row.network]).admits(address)
    assert AddressGuard([*everything, ip_network(address)]).admits(address)


@pytest.mark.parametrize(
    ("admitted", "carrying"),
    [
        ("64:ff9b::/96", "64:ff9b::10.0.0.1"),
        ("64:ff9b::/96", "64:ff9b::169.254.169.254"),
        ("2002::/16", "2002:a00:1::1"),
        ("2002:a9fe:a9fe::/48", "2002:a9fe:a9fe::1"),
        ("2001::/32", "2001:0:a00:1::f7f7:f7f7"),  # the server is 10.0.0.1, the client 8.8.8.8
        ("2001::/32", "2001:0:808:808::f5ff:fffe"),  # the server is 8.8.8.8, the client 10.0.0.1
        ("fe80::/10", "fe80::5efe:10.0.0.1"),
        ("fe80::/10", "fe80::200:5efe:10.0.0.1"),
        ("::/96", "::10.0.0.1"),
        ("::ffff:0:0:0/96", "::ffff:0:10.0.0.1"),
    ],
)
def test_a_setting_for_ipv6_admits_no_private_ipv4_inside(admitted: str, carrying: str) -> None:
    assert not AddressGuard([ip_network(admitted)]).admits(ip_address(carrying))
    assert AddressGuard([ip_network(admitted), ip_network("0.0.0.0/0")]).admits(ip_address(carrying)) == (
        "169.254.169.254" not in map(str, carried(IPv6Address(carrying)))
    )


@pytest.mark.parametrize(
    ("admitted", "carrying"),
    [("64:ff9b:1::/48", "64:ff9b:1::8.8.8.8"), ("2002::/16", "2002:808:808::1")],
)
def test_a_setting_admits_ipv6_that_carries_public_ipv4(admitted: str, carrying: str) -> None:
    assert AddressGuard([ip_network(admitted)]).admits(ip_address(carrying))


@pytest.mark.parametrize("address", ["fe80::1%eth0", "2606:4700::1111%1", "::ffff:8.8.8.8%1"])
def test_an_address_with_a_zone_is_always_refused(address: str) -> None:
    assert not AddressGuard([ip_network("::/0"), ip_network("0.0.0.0/0")]).admits(ip_address(address))


def test_only_web_ports_and_the_callers_port_are_admitted() -> None:
    policy = PortPolicy()
    assert all(policy.admits(port, 443) for port in (80, 443, 8080, 8443))
    assert not any(policy.admits(port, 443) for port in (1, 22, 25, 3306, 6379, 8000, 65535))
    assert policy.admits(8000, asked_port=8000)
    assert not policy.admits(8001, asked_port=8000)


def test_a_setting_admits_further_ports_or_every_port() -> None:
    assert PortPolicy(extra=frozenset({8000})).admits(8000, 443)
    assert not PortPolicy(extra=frozenset({8000})).admits(22, 443)
    assert PortPolicy(every=True).admits(22, 443)
