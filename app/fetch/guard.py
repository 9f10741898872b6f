"""Which addresses and ports a fetch may reach: tables, no I/O (spec A32).

The service fetches from hosts that strangers choose, and a host name may resolve to anything: loopback, another pod,
the metadata service that hands out a cloud's credentials. So every address is checked against the tables below before
a connection is made. `ipaddress.is_global` would not do: it is True for NAT64 and 6to4 addresses that carry a private
IPv4 address, and does not know the addresses of clouds.

The ranges are those of the IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890, RFC 8190), each with the
document that the registry names; multicast, the site-local range and two old forms that carry an IPv4 address, which
the registries leave out; and those that clouds document as theirs.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from itertools import accumulate
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True)
class Refused:
    """A range that is not fetched from: what it is, and the document that says so."""

    network: Network
    what: str
    source: str


def _table(*rows: tuple[str, str, str]) -> tuple[Refused, ...]:
    return tuple(Refused(ip_network(network), what, source) for network, what, source in rows)


RANGES = _table(
    ("0.0.0.0/8", "this network; 0.0.0.0 is the local host on many systems", "RFC 791 3.2, RFC 1122 3.2.1.3"),
    ("10.0.0.0/8", "private use", "RFC 1918 3"),
    ("100.64.0.0/10", "shared space behind a carrier's NAT", "RFC 6598 7"),
    ("127.0.0.0/8", "loopback", "RFC 1122 3.2.1.3"),
    ("169.254.0.0/16", "link-local", "RFC 3927 2.1"),
    ("172.16.0.0/12", "private use", "RFC 1918 3"),
    # The registry calls 192.0.0.9 and .10, and the anycast ranges below, globally reachable. They are not addresses of
    # web sites, though: each means the nearest machine that offers a service, which may be one of our own network.
    ("192.0.0.0/24", "IETF protocol assignments", "RFC 6890 2.1"),
    ("192.0.0.0/29", "IPv4 service continuity: the inside of DS-Lite and 464XLAT", "RFC 7335"),
    ("192.0.0.8/32", "dummy address", "RFC 7600"),
    ("192.0.0.9/32", "Port Control Protocol anycast: the nearest NAT", "RFC 7723"),
    ("192.0.0.10/32", "TURN anycast: the nearest relay", "RFC 8155"),
    ("192.0.0.170/31", "NAT64 and DNS64 discovery", "RFC 7050 2.2, RFC 8880"),
    ("192.0.2.0/24", "documentation (TEST-NET-1)", "RFC 5737 3"),
    ("192.31.196.0/24", "AS112 anycast: the nearest DNS sink", "RFC 7535"),
    ("192.52.193.0/24", "AMT anycast: the nearest multicast relay", "RFC 7450"),
    ("192.88.99.0/24", "6to4 relay anycast, deprecated", "RFC 7526"),
    ("192.168.0.0/16", "private use", "RFC 1918 3"),
    ("192.175.48.0/24", "AS112 anycast, direct delegation", "RFC 7534"),
    ("198.18.0.0/15", "benchmarking", "RFC 2544 C.2.2"),
    ("198.51.100.0/24", "documentation (TEST-NET-2)", "RFC 5737 3"),
    ("203.0.113.0/24", "documentation (TEST-NET-3)", "RFC 5737 3"),
    ("224.0.0.0/4", "multicast", "RFC 5771"),
    ("240.0.0.0/4", "reserved", "RFC 1112 4"),
    ("255.255.255.255/32", "limited broadcast", "RFC 919 7, RFC 8190"),
    ("::/128", "unspecified", "RFC 4291 2.5.2"),
    ("::1/128", "loopback", "RFC 4291 2.5.3"),
    ("::/96", "IPv4-compatible, deprecated, carries an IPv4 address", "RFC 4291 2.5.5.1"),
    ("::ffff:0:0:0/96", "IPv4-translated, carries an IPv4 address", "RFC 2765 2.1"),
    ("64:ff9b:1::/48", "NAT64 of a local network, carries an IPv4 address", "RFC 8215"),
    ("100::/64", "discard", "RFC 6666"),
    ("100:0:0:1::/64", "dummy prefix", "RFC 9780"),
    ("2001::/23", "IETF protocol assignments", "RFC 2928"),
    ("2001::/32", "Teredo, carries two IPv4 addresses", "RFC 4380 4"),
    ("2001:1::1/128", "Port Control Protocol anycast: the nearest NAT", "RFC 7723"),
    ("2001:1::2/128", "TURN anycast: the nearest relay", "RFC 8155"),
    ("2001:1::3/128", "service registration anycast: the nearest registrar", "RFC 9665"),
    ("2001:2::/48", "benchmarking", "RFC 5180"),
    ("2001:3::/32", "AMT anycast: the nearest multicast relay", "RFC 7450"),
    ("2001:4:112::/48", "AS112 anycast: the nearest DNS sink", "RFC 7535"),
    ("2001:10::/28", "ORCHID: identifiers, deprecated", "RFC 4843"),
    ("2001:20::/28", "ORCHIDv2: identifiers, not addresses", "RFC 7343"),
    ("2001:30::/28", "remote identifiers of aircraft (DRIP)", "RFC 9374"),
    ("2001:db8::/32", "documentation", "RFC 3849"),
    ("2002::/16", "6to4, deprecated, carries an IPv4 address", "RFC 3056 2, RFC 7526"),
    ("2620:4f:8000::/48", "AS112 anycast, direct delegation", "RFC 7534"),
    ("3fff::/20", "documentation", "RFC 9637"),
    ("5f00::/16", "segment identifiers of SRv6", "RFC 9602"),
    ("fc00::/7", "unique local", "RFC 4193 3.1"),
    ("fe80::/10", "link-local", "RFC 4291 2.5.6"),
    ("fec0::/10", "site-local, deprecated", "RFC 3879 4"),
    ("ff00::/8", "multicast", "RFC 4291 2.7"),
)
"""The refused ranges. A narrower row inside a wider one is for the reader."""

PLATFORMS = _table(
    ("100.100.100.200/32", "Alibaba Cloud instance metadata", "Alibaba Cloud ECS: Instance metadata"),
    ("168.63.129.16/32", "Azure platform (WireServer), in public space", "Azure: What is IP address 168.63.129.16?"),
    ("169.254.0.23/32", "Tencent Cloud instance metadata", "Tencent Cloud CVM: Instance metadata"),
    ("169.254.42.42/32", "Scaleway instance metadata", "Scaleway: Instance metadata"),
    ("169.254.169.123/32", "AWS time", "AWS EC2: Time Sync Service"),
    ("169.254.169.252/32", "metadata server of a GKE node", "Google GKE: About Workload Identity"),
    ("169.254.169.253/32", "AWS DNS", "AWS VPC: DNS attributes"),
    ("169.254.169.254/32", "instance metadata of most clouds", "AWS EC2, Azure, Google Cloud, OpenStack: metadata"),
    ("169.254.170.2/32", "credentials of an AWS ECS task", "AWS ECS: Task IAM role"),
    ("169.254.170.23/32", "credentials of an AWS EKS pod", "AWS EKS: Set up the Pod Identity Agent"),
    ("192.0.0.192/32", "Oracle Cloud Classic instance metadata", "Oracle Cloud Classic: Instance metadata"),
    ("fd00:42::42/128", "Scaleway instance metadata", "Scaleway: Instance metadata"),
    ("fd00:100::100:200/128", "Alibaba Cloud instance metadata", "Alibaba Cloud ECS: Instance metadata"),
    ("fd00:a9fe:a9fe::1/128", "Akamai (Linode) instance metadata", "Akamai Cloud: Metadata service API"),
    ("fd00:c1::a9fe:a9fe/128", "Oracle Cloud instance metadata", "Oracle Cloud: Instance metadata over IPv6"),
    ("fd00:ec2::/32", "AWS: metadata (::254), credentials (::23), DNS, time", "AWS EC2: Instance metadata over IPv6"),
    ("fd20:ce::254/128", "Google Cloud instance metadata", "Google Cloud: Metadata of IPv6-only instances"),
    ("fe80::a9fe:a9fe/128", "OpenStack and Akamai instance metadata", "OpenStack Neutron: Metadata over IPv6"),
)
"""Where clouds serve secrets to an instance. A setting admits one of these only by a range that is no wider."""


GLOBAL_UNICAST = IPv6Network("2000::/3")
"""The only part of IPv6 that IANA assigns unicast addresses from: except for NAT64, nothing else is public
(RFC 4291 2.4)."""

NAT64 = IPv6Network("64:ff9b::/96")
"""IPv4 as seen from an IPv6-only network: names without an IPv6 address resolve to this range, and the network's
translator connects to the IPv4 address inside (RFC 6052 2.1). As public as that address is."""


class _Ranges:
    """Networks of one IP version, indexed, since all addresses of a name are looked up and it may have hundreds."""

    def __init__(self, networks: Iterable[Network]) -> None:
        ordered = sorted((int(network[0]), int(network[-1])) for network in networks)
        self._first = [first for first, _ in ordered]
        self._last = list(accumulate((last for _, last in ordered), max))  # a wide range reaches over those inside it

    def __contains__(self, address: Address) -> bool:
        number = int(address)
        at = bisect_right(self._first, number) - 1
        return at >= 0 and number <= self._last[at]


_REFUSED_IPV4 = _Ranges(row.network for row in RANGES + PLATFORMS if row.network.version == 4)
_REFUSED_IPV6 = _Ranges(row.network for row in RANGES + PLATFORMS if row.network.version == 6)


_CARRYING = (IPv6Network("::/96"), IPv6Network("::ffff:0:0:0/96"), NAT64)
"""Ranges whose addresses end in an IPv4 address (RFC 4291 2.5.5.1, RFC 2765 2.1, RFC 6052 2.1)."""

_ISATAP = (bytes.fromhex("00005efe"), bytes.fromhex("02005efe"))
"""What stands before the IPv4 address at the end of an interface identifier of ISATAP (RFC 5214 6.1)."""

LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")
"""The range from which networks may take the prefix of their own NAT64 (RFC 8215)."""

_PLACES = ((6, 7, 9, 10), (7, 9, 10, 11), (9, 10, 11, 12), (12, 13, 14, 15))
"""The bytes of an IPv4 address after prefixes of 48, 56, 64 and 96 bits (RFC 6052 2.2)."""


def unmapped(address: Address) -> Address:
    """The address that a connection to `address` reaches: for ::ffff:a.b.c.d that is a.b.c.d (RFC 4291 2.5.5.2)."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def carried(address: IPv6Address) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses that routers may translate `address` to: if one is refused, the address is, even if a setting
    admits its range.

    Teredo has those of the server and of the client (RFC 4380 4), 6to4 (RFC 3056 2) and the other forms have one.

    The NAT64 of a local network (RFC 8215, or a prefix of its own) is not among them: only the network knows its
    prefix, which determines where the IPv4 address is (RFC 6052 2.2). Its translator has to refuse private addresses
    itself, except for those of PLATFORMS, which `translated` finds.
    """
    inner = [*(address.teredo or ()), address.sixtofour]
    carrying = int(address) > 1 and any(address in network for network in _CARRYING)  # `::` and `::1` carry none
    if carrying or address.packed[8:12] in _ISATAP:
        inner.append(IPv4Address(address.packed[12:]))
    return tuple(it for it in inner if it is not None)


def translated(address: IPv6Address) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses that a local NAT64 may translate an address in LOCAL_NAT64 to, for any of its prefixes."""
    if address not in LOCAL_NAT64:
        return ()
    return tuple(IPv4Address(bytes(address.packed[place] for place in places)) for places in _PLACES)


class AddressGuard:
    """Admits public addresses, and those in `admitted`, whatever RANGES says about them (setting ALLOW_ADDRESSES).

    An admitted range that is wider than one of PLATFORMS does not admit that: an operator who admits fd00::/8 for the
    machines of a network does not mean the metadata service.
    """

    def __init__(self, admitted: Iterable[Network] = ()) -> None:
        self._admitted = tuple(admitted)

    def admits(self, address: Address) -> bool:
        """Whether a connection may be made to `address`, and to every IPv4 address that it is or carries."""
        # A zone names an interface of one machine, so no public name can mean it, and no setting can admit it.
        if isinstance(address, IPv6Address) and address.scope_id is not None:
            return False
        address = unmapped(address)
        if not (_is_public(address) or self._is_admitted(address)):
            return False
        if isinstance(address, IPv4Address):
            return True
        if any(_is_platform(inner) and not self._is_admitted(inner) for inner in translated(address)):
            return False
        return all(self.admits(inner) for inner in carried(address))

    def _is_admitted(self, address: Address) -> bool:
        admitting = [network for network in self._admitted if address in network]
        if not admitting:
            return False
        platform = next((row.network for row in PLATFORMS if address in row.network), None)
        return platform is None or any(network.prefixlen >= platform.prefixlen for network in admitting)


def _is_platform(address: Address) -> bool:
    return any(address in row.network for row in PLATFORMS)


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return address not in _REFUSED_IPV4
    return (address in GLOBAL_UNICAST or address in NAT64) and address not in _REFUSED_IPV6


WEB_PORTS = frozenset({80, 443, 8080, 8443})
"""Ports that a redirect may lead to: those where web servers are, not databases or mail."""


@dataclass(frozen=True, slots=True)
class PortPolicy:
    """Admits WEB_PORTS and `extra` ones, or every port (setting ALLOW_PORTS, `*` for every)."""

    extra: frozenset[int] = frozenset()
    every: bool = False

    def admits(self, port: int, asked_port: int) -> bool:
        """Whether a hop may go to `port`; `asked_port`, that of the caller's URL, is always admitted."""
        return self.every or port == asked_port or port in WEB_PORTS or port in self.extra
