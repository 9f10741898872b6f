"""The table of addresses, address by address, and the ports."""

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.fetch.guard import GLOBAL_UNICAST, REFUSED, AddressGuard, PortPolicy, Refused

PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "168.63.129.15",
    "168.63.129.17",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "191.255.255.255",
    "192.0.1.0",
    "192.0.3.0",
    "192.88.98.255",
    "192.88.100.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "198.51.99.255",
    "198.51.101.0",
    "203.0.112.255",
    "203.0.114.0",
    "223.255.255.255",
    "2001:200::1",
    "2001:db7:ffff::1",
    "2001:db9::1",
    "2001:4860:4860::8888",
    "2003::1",
    "2606:4700::1111",
    "2a00:1450:4001::1",
    "3ffe:ffff::1",
    "::ffff:8.8.8.8",
]

CLOSED = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.0",
    "10.255.255.255",
    "100.64.0.0",
    "100.100.100.200",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.255",
    "168.63.129.16",
    "169.254.0.1",
    "169.254.169.254",
    "172.16.0.0",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.0",
    "192.168.255.255",
    "198.18.0.0",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::8.8.8.8",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:168.63.129.16",
    "::ffff:0:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::10.0.0.1",
    "64:ff9b:1:ffff:ffff:ffff:ffff:ffff",
    "100::1",
    "100:0:0:1::1",
    "1fff:ffff::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:2::1",
    "2001:20::1",
    "2001:1ff:ffff::1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "2002:808:808::1",
    "3fff::1",
    "3fff:fff:ffff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fdff:ffff::1",
    "fe80::1",
    "fe80::a9fe:a9fe",
    "febf::1",
    "fec0::1",
    "feff::1",
    "ff02::1",
    "ff0e::1",
    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_admitted(address: str) -> None:
    assert AddressGuard().admits(ip_address(address))


@pytest.mark.parametrize("address", CLOSED)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert not AddressGuard().admits(ip_address(address))


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: str(row.network))
def test_every_row_refuses_its_whole_range_and_names_its_source(row: Refused) -> None:
    guard = AddressGuard()
    assert row.what
    assert row.source
    assert not guard.admits(row.network[0])
    assert not guard.admits(row.network[-1])


@given(st.ip_addresses(v=6))
def test_ipv6_beyond_global_unicast_is_refused_unless_it_is_a_public_ipv4_in_disguise(address: object) -> None:
    judged = ip_address(str(address))
    if AddressGuard().admits(judged):
        assert judged in GLOBAL_UNICAST or str(judged).startswith("::ffff:")


@given(st.ip_addresses(v=4))
def test_a_mapped_address_is_judged_as_the_ipv4_address_it_is(address: object) -> None:
    guard = AddressGuard([ip_network("10.1.0.0/16")])
    assert guard.admits(ip_address(f"::ffff:{address}")) == guard.admits(ip_address(str(address)))


def test_a_setting_admits_its_own_range_and_no_neighbour() -> None:
    guard = AddressGuard([ip_network("127.0.0.1/32"), ip_network("fd00:1::/32")])
    assert guard.admits(ip_address("127.0.0.1"))
    assert guard.admits(ip_address("::ffff:127.0.0.1"))
    assert guard.admits(ip_address("fd00:1::5"))
    assert not guard.admits(ip_address("127.0.0.2"))
    assert not guard.admits(ip_address("fd00:2::5"))
    assert guard.admits(ip_address("8.8.8.8"))


@pytest.mark.parametrize("address", ["fe80::1%eth0", "2606:4700::1111%1", "::ffff:8.8.8.8%1"])
def test_an_address_with_a_zone_is_refused_whatever_is_admitted(address: str) -> None:
    assert not AddressGuard([ip_network("::/0"), ip_network("0.0.0.0/0")]).admits(ip_address(address))


def test_ports_of_the_web_and_the_asked_port_are_admitted_and_no_other() -> None:
    policy = PortPolicy()
    assert all(policy.admits(port, 443) for port in (80, 443, 8080, 8443))
    assert not any(policy.admits(port, 443) for port in (1, 22, 25, 3306, 6379, 8000, 65535))
    assert policy.admits(8000, asked_port=8000)
    assert not policy.admits(8001, asked_port=8000)


def test_a_setting_admits_further_ports_or_every_port() -> None:
    assert PortPolicy(extra=frozenset({8000})).admits(8000, 443)
    assert not PortPolicy(extra=frozenset({8000})).admits(22, 443)
    assert PortPolicy(every=True).admits(22, 443)
