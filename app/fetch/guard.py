"""Which addresses and ports a fetch may reach: tables, no I/O (spec A32).

The service fetches from names that strangers choose, and a name may lead anywhere: to its own loopback, to a pod
beside it, to the metadata service that hands out a cloud's credentials. So every address is held against the table
below before a connection is made to it. The table is ours because `ipaddress.is_global` is not meant as a fence: it
answers True for NAT64 and 6to4 addresses that carry a private IPv4 address, and cannot know a cloud's own addresses.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True)
class Refused:
    """One range that is not fetched from: what it is, and who says so."""

    network: Network
    what: str
    source: str


_ROWS = (
    ("0.0.0.0/8", "this network; 0.0.0.0 is the local host on many systems", "RFC 791 3.2"),
    ("10.0.0.0/8", "private use", "RFC 1918"),
    ("100.64.0.0/10", "shared space behind a carrier's NAT", "RFC 6598"),
    ("100.100.100.200/32", "Alibaba Cloud instance metadata", "Alibaba Cloud ECS, Instance metadata"),
    ("127.0.0.0/8", "loopback", "RFC 1122 3.2.1.3"),
    ("168.63.129.16/32", "Azure platform (WireServer), an address in public space", "Azure, What is 168.63.129.16"),
    ("169.254.0.0/16", "link-local", "RFC 3927"),
    ("169.254.169.254/32", "instance metadata of most clouds", "AWS EC2, Instance metadata"),
    ("172.16.0.0/12", "private use", "RFC 1918"),
    ("192.0.0.0/24", "IETF protocol assignments", "RFC 6890 2.1"),
    ("192.0.0.192/32", "Oracle Cloud instance metadata, Classic", "Oracle Cloud, Instance metadata"),
    ("192.0.2.0/24", "documentation (TEST-NET-1)", "RFC 5737"),
    ("192.88.99.0/24", "6to4 relay anycast, deprecated", "RFC 7526"),
    ("192.168.0.0/16", "private use", "RFC 1918"),
    ("198.18.0.0/15", "benchmarking", "RFC 2544"),
    ("198.51.100.0/24", "documentation (TEST-NET-2)", "RFC 5737"),
    ("203.0.113.0/24", "documentation (TEST-NET-3)", "RFC 5737"),
    ("224.0.0.0/4", "multicast", "RFC 5771"),
    ("240.0.0.0/4", "reserved", "RFC 1112 4"),
    ("255.255.255.255/32", "limited broadcast", "RFC 8190"),
    ("::/128", "unspecified", "RFC 4291 2.5.2"),
    ("::1/128", "loopback", "RFC 4291 2.5.3"),
    ("::/96", "IPv4-compatible, carries an IPv4 address", "RFC 4291 2.5.5.1"),
    ("::ffff:0:0:0/96", "IPv4-translated, carries an IPv4 address", "RFC 2765 2.1"),
    ("64:ff9b::/96", "NAT64, carries an IPv4 address", "RFC 6052 2.1"),
    ("64:ff9b:1::/48", "NAT64 of a local network, carries an IPv4 address", "RFC 8215"),
    ("100::/64", "discard", "RFC 6666"),
    ("2001::/32", "Teredo, carries an IPv4 address", "RFC 4380"),
    ("2001::/23", "IETF protocol assignments", "RFC 2928"),
    ("2001:db8::/32", "documentation", "RFC 3849"),
    ("2002::/16", "6to4, carries an IPv4 address", "RFC 3056"),
    ("3fff::/20", "documentation", "RFC 9637"),
    ("5f00::/16", "segment identifiers of SRv6", "RFC 9602"),
    ("fc00::/7", "unique local", "RFC 4193"),
    ("fd00:ec2::254/128", "AWS instance metadata over IPv6", "AWS EC2, Instance metadata"),
    ("fe80::/10", "link-local", "RFC 4291 2.5.6"),
    ("fec0::/10", "site-local, deprecated", "RFC 3879"),
    ("ff00::/8", "multicast", "RFC 4291 2.7"),
)

REFUSED: tuple[Refused, ...] = tuple(Refused(ip_network(network), what, source) for network, what, source in _ROWS)
"""Every range that is refused by name. A narrower row inside a wider one tells a reader what is there."""

GLOBAL_UNICAST = IPv6Network("2000::/3")
"""The only part of IPv6 that IANA assigns unicast addresses from: beyond it nothing is admitted (RFC 4291 2.4)."""

_REFUSED_IPV4 = tuple(row.network for row in REFUSED if isinstance(row.network, IPv4Network))
_REFUSED_IPV6 = tuple(row.network for row in REFUSED if isinstance(row.network, IPv6Network))


def unmapped(address: Address) -> Address:
    """The address that a connection to `address` would reach: for ::ffff:a.b.c.d that is a.b.c.d (RFC 4291 2.5.5.2)."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


class AddressGuard:
    """Public addresses, and those in `admitted`, whatever the table says of them (setting ALLOW_ADDRESSES)."""

    def __init__(self, admitted: Iterable[Network] = ()) -> None:
        self._admitted = tuple(admitted)

    def admits(self, address: Address) -> bool:
        """Whether a connection may be made to `address`; an IPv4-mapped one is judged as the IPv4 address it is."""
        # A zone names an interface of one machine: no name on the web can mean it, and no setting can admit it.
        if isinstance(address, IPv6Address) and address.scope_id is not None:
            return False
        address = unmapped(address)
        return any(address in network for network in self._admitted) or _is_public(address)


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _REFUSED_IPV4)
    return address in GLOBAL_UNICAST and not any(address in network for network in _REFUSED_IPV6)


WEB_PORTS = frozenset({80, 443, 8080, 8443})
"""Ports that a redirect may lead to: those where web servers are, not databases or mail."""


@dataclass(frozen=True, slots=True)
class PortPolicy:
    """WEB_PORTS and the `extra` ones, or every port (setting ALLOW_PORTS, `*` for every)."""

    extra: frozenset[int] = frozenset()
    every: bool = False

    def admits(self, port: int, asked_port: int) -> bool:
        """Whether a hop may go to `port` when the caller's own URL named `asked_port`, which always may."""
        return self.every or port == asked_port or port in WEB_PORTS or port in self.extra
