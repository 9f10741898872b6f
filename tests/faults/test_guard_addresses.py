"""Every known spelling of an internal address, alone and as a URL's host: no connection is ever made."""

from ipaddress import ip_address

import pytest

from app.fetch.guard import AddressGuard
from robots_core.origin import BadUrl, read_target
from robots_core.robots.access import Blocked, Cause, Fetched, Unreachable
from tests.faults.fetching import PUBLIC, SITE, Wire, fetcher
from tests.origins import Names, Reply, redirect, serve

ADMITTED = [
    ("1.1.1.1", "public"),
    ("8.8.8.8", "public"),
    ("9.255.255.255", "below 10.0.0.0/8"),
    ("11.0.0.0", "above 10.0.0.0/8"),
    ("100.63.255.255", "below the carriers' space"),
    ("100.128.0.0", "above the carriers' space"),
    ("126.255.255.255", "below loopback"),
    ("128.0.0.0", "above loopback"),
    ("168.63.129.15", "beside Azure's platform"),
    ("168.63.129.17", "beside Azure's platform"),
    ("169.253.255.255", "below link-local"),
    ("169.255.0.0", "above link-local"),
    ("172.15.255.255", "below 172.16.0.0/12"),
    ("172.32.0.0", "above 172.16.0.0/12"),
    ("192.0.1.0", "between the IETF's assignments and TEST-NET-1"),
    ("192.0.3.0", "above TEST-NET-1"),
    ("192.88.98.255", "below the 6to4 relays"),
    ("192.167.255.255", "below 192.168.0.0/16"),
    ("192.169.0.0", "above 192.168.0.0/16"),
    ("198.17.255.255", "below benchmarking"),
    ("198.20.0.0", "above benchmarking"),
    ("203.0.114.0", "above TEST-NET-3"),
    ("223.255.255.255", "the last one before multicast"),
    ("2001:200::1", "the first one past the IETF's assignments"),
    ("2001:4860:4860::8888", "public"),
    ("2003::1", "above 6to4"),
    ("2606:4700::1111", "public"),
    ("2620:4f:7fff::1", "below AS112"),
    ("3ffe:ffff::1", "below the documentation range"),
    ("2606:4700::5efe:8.8.8.8", "ISATAP of a public address"),
    ("::ffff:8.8.8.8", "mapped, public inside"),
    ("64:ff9b::8.8.8.8", "NAT64, public inside: how an IPv6-only network sees the web"),
]

REFUSED = [
    ("0.0.0.0", "the local host on many systems"),
    ("0.1.2.3", "this network"),
    ("10.0.0.0", "private"),
    ("10.255.255.255", "private"),
    ("100.64.0.0", "a carrier's NAT"),
    ("100.127.255.255", "a carrier's NAT"),
    ("100.100.100.200", "Alibaba Cloud metadata"),
    ("127.0.0.1", "loopback"),
    ("127.255.255.255", "loopback"),
    ("168.63.129.16", "Azure platform, in public space"),
    ("169.254.0.1", "link-local"),
    ("169.254.42.42", "Scaleway metadata"),
    ("169.254.169.254", "metadata of most clouds"),
    ("169.254.170.2", "AWS ECS credentials"),
    ("169.254.170.23", "AWS EKS credentials"),
    ("172.16.0.0", "private"),
    ("172.31.255.255", "private"),
    ("192.0.0.0", "DS-Lite"),
    ("192.0.0.8", "dummy"),
    ("192.0.0.9", "anycast of the nearest NAT, though registered as globally reachable"),
    ("192.0.0.10", "anycast of the nearest relay, though registered as globally reachable"),
    ("192.0.0.170", "NAT64 discovery"),
    ("192.0.0.192", "Oracle Cloud Classic metadata"),
    ("192.0.2.1", "documentation"),
    ("192.31.196.1", "AS112 anycast"),
    ("192.52.193.1", "AMT anycast"),
    ("192.88.99.1", "6to4 relay"),
    ("192.168.0.0", "private"),
    ("192.168.255.255", "private"),
    ("192.175.48.1", "AS112 anycast"),
    ("198.18.0.0", "benchmarking"),
    ("198.19.255.255", "benchmarking"),
    ("198.51.100.1", "documentation"),
    ("203.0.113.1", "documentation"),
    ("224.0.0.1", "multicast"),
    ("239.255.255.255", "multicast"),
    ("240.0.0.1", "reserved"),
    ("255.255.255.255", "broadcast"),
    ("::", "unspecified"),
    ("::1", "loopback"),
    ("::2", "IPv4-compatible"),
    ("::127.0.0.1", "IPv4-compatible"),
    ("::8.8.8.8", "IPv4-compatible, whatever is inside"),
    ("::ffff:127.0.0.1", "mapped loopback"),
    ("::ffff:0.0.0.0", "mapped local host"),
    ("::ffff:10.0.0.1", "mapped private"),
    ("::ffff:100.64.0.1", "mapped carrier's NAT"),
    ("::ffff:169.254.169.254", "mapped metadata"),
    ("::ffff:168.63.129.16", "mapped Azure platform"),
    ("::ffff:0:8.8.8.8", "IPv4-translated, whatever is inside"),
    ("64:ff9b::10.0.0.1", "NAT64, private inside"),
    ("64:ff9b::127.0.0.1", "NAT64, loopback inside"),
    ("64:ff9b::169.254.169.254", "NAT64, metadata inside"),
    ("64:ff9b::100.100.100.200", "NAT64, metadata inside"),
    ("64:ff9b::1:808:808", "beside the NAT64 prefix"),
    ("64:ff9b:1::10.0.0.1", "local NAT64"),
    ("64:ff9b:1:ffff:ffff:ffff:8.8.8.8", "local NAT64, whatever is inside"),
    ("100::1", "discard"),
    ("100:0:0:1::1", "dummy prefix"),
    ("1fff:ffff::1", "before global unicast"),
    ("2001::1", "Teredo"),
    ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "Teredo, two public addresses inside"),
    ("2001:1::1", "anycast of the nearest NAT"),
    ("2001:1::2", "anycast of the nearest relay"),
    ("2001:1::3", "anycast of the nearest registrar"),
    ("2001:2::1", "benchmarking"),
    ("2001:3::1", "AMT anycast"),
    ("2001:4:112::1", "AS112 anycast"),
    ("2001:10::1", "ORCHID"),
    ("2001:20::1", "ORCHIDv2"),
    ("2001:30::1", "DRIP"),
    ("2001:1ff:ffff::1", "the last of the IETF's assignments"),
    ("2001:db8::1", "documentation"),
    ("2002:7f00:1::1", "6to4, loopback inside"),
    ("2002:a9fe:a9fe::1", "6to4, metadata inside"),
    ("2002:808:808::1", "6to4, whatever is inside"),
    ("2606:4700::5efe:10.0.0.1", "ISATAP, private inside"),
    ("2606:4700::200:5efe:169.254.169.254", "ISATAP, metadata inside"),
    ("2620:4f:8000::1", "AS112 anycast"),
    ("3fff::1", "documentation"),
    ("3fff:fff:ffff::1", "documentation"),
    ("4000::1", "past global unicast"),
    ("5f00::1", "SRv6"),
    ("fc00::1", "unique local"),
    ("fdff:ffff::1", "unique local"),
    ("fd00:42::42", "Scaleway metadata"),
    ("fd00:100::100:200", "Alibaba Cloud metadata"),
    ("fd00:a9fe:a9fe::1", "Akamai metadata"),
    ("fd00:c1::a9fe:a9fe", "Oracle Cloud metadata"),
    ("fd00:ec2::23", "AWS EKS credentials"),
    ("fd00:ec2::254", "AWS metadata"),
    ("fd20:ce::254", "Google Cloud metadata"),
    ("fe80::1", "link-local"),
    ("fe80::a9fe:a9fe", "OpenStack metadata"),
    ("febf::1", "link-local"),
    ("fec0::1", "site-local"),
    ("feff::1", "site-local"),
    ("ff02::1", "multicast"),
    ("ff0e::1", "multicast of global scope"),
    ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "the last one"),
]

INSIDE = [
    # Unambiguous spellings are read as their address, which is refused.
    ("127.0.0.1", "127.0.0.1"),
    ("127.0.0.1.", "127.0.0.1"),
    ("127.0.0.1:80", "127.0.0.1"),
    ("user:secret@127.0.0.1", "127.0.0.1"),
    ("www.example.com@127.0.0.1", "127.0.0.1"),
    ("www.example.com:80@127.0.0.1", "127.0.0.1"),
    ("１２７.０.０.１", "127.0.0.1"),  # full width
    ("𝟏𝟐𝟕.0.0.1", "127.0.0.1"),  # mathematical bold
    ("①②⑦.0.0.1", "127.0.0.1"),  # in circles
    ("127。0。0。1", "127.0.0.1"),  # U+3002
    ("127．0．0．1", "127.0.0.1"),  # U+FF0E
    ("127｡0｡0｡1", "127.0.0.1"),  # U+FF61
    ("[::1]", "::1"),
    ("[0:0:0:0:0:0:0:1]", "::1"),
    ("[0000:0000:0000:0000:0000:0000:0000:0001]", "::1"),
    ("[::]", "::"),
    ("[::ffff:127.0.0.1]", "::ffff:127.0.0.1"),
    ("[::FFFF:7F00:1]", "::ffff:127.0.0.1"),
    ("[::127.0.0.1]", "::127.0.0.1"),
    ("[64:ff9b::127.0.0.1]", "64:ff9b::127.0.0.1"),
    ("[2002:7f00:1::]", "2002:7f00:1::"),
    ("[fe80::1]", "fe80::1"),
    ("0.0.0.0", "0.0.0.0"),
    ("localhost", "127.0.0.1"),
    ("LocalHost.", "127.0.0.1"),
    ("www.localhost", "127.0.0.1"),
    ("ｌｏｃａｌｈｏｓｔ", "127.0.0.1"),  # full width
    ("ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "127.0.0.1"),  # in circles
    ("loc\u00adalhost", "127.0.0.1"),  # a soft hyphen, which IDNA drops
    ("%31%32%37.0.0.1", "127.0.0.1"),  # percent-encoded
    ("loc%61lhost", "127.0.0.1"),
]

NAMES = [
    # Names that resolve: the address decides, not the name.
    ("localhost.localdomain", "127.0.0.1"),
    ("ip6-localhost", "::1"),
    ("127.0.0.1.nip.example", "127.0.0.1"),
    ("metadata", "169.254.169.254"),
    ("metadata.google.internal", "169.254.169.254"),
    ("metadata.google.internal.", "169.254.169.254"),
    ("metadata.goog", "fd20:ce::254"),
    ("instance-data", "169.254.169.254"),
    ("metadata.tencentyun.com", "169.254.0.23"),
    ("kubernetes.default.svc", "10.96.0.1"),
    ("host.docker.internal", "192.168.65.254"),
    ("redis", "172.17.0.2"),
]

UNREADABLE = [
    # Spellings that some parsers read as an address and others as a name: invalid here.
    ("2130706433", "decimal"),
    ("２１３０７０６４３３", "decimal, full width"),
    ("017700000001", "octal"),
    ("0x7f000001", "hexadecimal"),
    ("0X7F000001", "hexadecimal"),
    ("0x7f000001.", "hexadecimal, with a dot"),
    ("0177.0.0.1", "octal"),
    ("0127.0.0.1", "octal, or decimal with a zero"),
    ("127.0.0.01", "octal, or decimal with a zero"),
    ("0x7f.0.0.1", "hexadecimal"),
    ("127.0.0.0x1", "hexadecimal at the end"),
    ("0x7f。1", "hexadecimal, U+3002"),
    ("127.1", "short"),
    ("127.0.1", "short"),
    ("１２７。１", "short, full width"),
    ("0", "short"),
    ("127.0.0.1..", "two dots"),
    ("127.0.0.256", "a part above 255"),
    ("127.0.0.1.1", "five parts"),
    ("١٢٧.0.0.1", "Arabic digits"),
    ("127.0.0.1%00", "escaped"),
    ("127.0.0.1%2f", "escaped"),
    ("lo\u200dcalhost", "a joiner"),
    ("[::1", "no end"),
    ("[[::1]]", "twice"),
    ("[::1].", "a dot behind it"),
    ("[::１]", "full width"),
    ("[127.0.0.1]", "IPv4 in brackets"),
    ("[::1%25lo]", "a zone"),
    ("[::1%lo]", "a zone"),
    ("[fe80::1%25eth0]", "a zone"),
    ("[fe80::1%eth0]", "a zone"),
    ("[::ffff:127.0.0.1%251]", "a zone"),
    ("[::ffff:0x7f.0.0.1]", "hexadecimal in brackets"),
    ("127.0.0.1:80:80", "two ports"),
    ("127.0.0.1 ", "a blank"),
]


@pytest.mark.parametrize(("address", "why"), ADMITTED)
def test_a_public_address_is_admitted(address: str, why: str) -> None:
    assert AddressGuard().admits(ip_address(address)), why


@pytest.mark.parametrize(("address", "why"), REFUSED)
def test_an_address_that_is_not_public_is_refused(address: str, why: str) -> None:
    assert not AddressGuard().admits(ip_address(address)), why


KNOWN = Names({SITE: [PUBLIC]} | {name.removesuffix("."): [address] for name, address in NAMES})


async def led_to(location: str, hops: int) -> Fetched:
    """The result of a fetch whose last redirect leads to `location`; nothing else is connected to."""
    steps: list[Reply] = [redirect(f"/{hop}") for hop in range(1, hops)]
    written = location.encode().decode("latin-1")  # the field's bytes: UTF-8, which `redirect` sends unchanged
    async with serve(*steps, redirect(written)) as origin:
        wire = Wire({PUBLIC: origin})
        fetched = await fetcher(KNOWN, wire).fetch(origin.named(SITE))
        await origin.left()
    assert wire.tried == [PUBLIC] * hops
    return fetched


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(("host", "address"), INSIDE + NAMES)
async def test_spec_a32_internal_host_in_any_spelling_is_blocked(scheme: str, host: str, address: str) -> None:
    wire = Wire({})
    fetched = await fetcher(KNOWN, wire).fetch(read_target(f"{scheme}://{host}/page").origin)
    assert fetched == Fetched(Blocked(str(ip_address(address))))
    assert wire.tried == []


@pytest.mark.parametrize(("host", "address"), INSIDE + NAMES)
async def test_spec_a32_no_hop_of_a_redirect_may_lead_to_a_private_host(host: str, address: str) -> None:
    for hops in (1, 2, 5):
        fetched = await led_to(f"https://{host}/robots.txt", hops)
        assert fetched.access == Unreachable(Cause.REFUSED_REDIRECT, 301)


@pytest.mark.parametrize(("host", "why"), UNREADABLE)
async def test_spec_a31_an_ambiguous_host_is_invalid(host: str, why: str) -> None:
    with pytest.raises(BadUrl):
        read_target(f"http://{host}/page")
    fetched = await led_to(f"http://{host}/robots.txt", 1)
    assert fetched.access == Unreachable(Cause.BAD_RESPONSE, 301), why
