"""The caller's URL, parsed once on entry: all other code has a Target and not a `str` (spec A2, A3, A31, D6)."""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import NamedTuple

import idna

URL_LIMIT = 16 * 1024
"""Bytes of the longest URL that is read (spec A31)."""

DEFAULT_PORTS = {"http": 80, "https": 443}

_KNOWN_ORIGINS = 16_384
_LONGEST_KNOWN = 256
"""How many prefixes of URLs are cached with their origins, and the characters of the longest: 10 MB at most."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_PORT = re.compile(r"[0-9]{0,5}")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LONGEST_NAME = 253  # RFC 1035 2.3.4, without the root's dot


class BadUrl(ValueError):
    """A URL that no robots.txt can speak for; the text names the URL and what was expected of it."""


class OtherScheme(BadUrl):
    """A URL that can be read, and is neither http nor https."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A robots.txt's whole scope: scheme, host (lower-case A-labels or an IP literal) and port (spec A2, A3)."""

    scheme: str
    host: str
    port: int
    # Written out once: an origin is made when it is first named, and asked for its key at every question about it.
    key: str = field(init=False, repr=False, compare=False)
    """`scheme://host[:port]`, by which one origin is known everywhere."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", f"{self.scheme}://{self.authority}")

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def uri_host(self) -> str:
        """The host as a URL writes it: an IPv6 address in brackets (RFC 3986 3.2.2)."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def authority(self) -> str:
        """`host[:port]`, the port named only where it is not the scheme's own."""
        return self.uri_host if self.port == DEFAULT_PORTS[self.scheme] else f"{self.uri_host}:{self.port}"

    @property
    def robots_url(self) -> str:
        """Where the file is (RFC 9309 2.3)."""
        return f"{self.key}/robots.txt"


class Target(NamedTuple):
    """What is asked about: the origin that decides, and `path`, the rest of the URL that rules are matched against.

    `path` starts with `/`, holds the query, and is as the caller wrote it: dot segments and `//` are not folded,
    since the crawler will send what it asked about (spec D6).
    """

    origin: Origin
    path: str

    @property
    def url(self) -> str:
        """The URL as it was understood: no user-info, no fragment, no default port."""
        return self.origin.key + self.path


def read_target(url: str) -> Target:
    """Read an absolute http or https URL of at most URL_LIMIT bytes; BadUrl says what is wrong with any other."""
    # A fleet asks about the same origins repeatedly, and parsing one costs more than a cache lookup.
    ends = url.find("/", 8)  # nothing shorter has a host
    if 0 < ends <= _LONGEST_KNOWN and len(url) <= URL_LIMIT and url.isascii():
        origin = _known_origin(url[:ends])
        if origin is not None:
            return Target(origin, _path(url[ends:]))
    return _read_target(url)


@lru_cache(_KNOWN_ORIGINS)
def _known_origin(beginning: str) -> Origin | None:
    """The origin of a URL's beginning up to its path; None where it is none, or holds more."""
    try:
        return None if "?" in beginning or "#" in beginning else _read_target(beginning).origin
    except BadUrl:
        return None  # the error is reported for the whole URL


def _path(rest: str) -> str:
    path = rest.partition("#")[0] if "#" in rest else rest
    return path if path.startswith("/") else "/" + path


def _read_target(url: str) -> Target:
    shown = repr(url if len(url) <= 200 else url[:200] + "…")
    try:
        size = len(url.encode())
    except UnicodeEncodeError:
        raise BadUrl(f"{shown} holds a lone surrogate, which no URL can hold") from None
    if size > URL_LIMIT:
        raise BadUrl(f"{shown} is {size} bytes long; a URL may have {URL_LIMIT}")
    written = _SCHEME.match(url)
    if written is None:
        raise BadUrl(f"{shown} is not an absolute URL: it should start with http:// or https://")
    scheme = written[1].lower()
    if scheme not in DEFAULT_PORTS:
        raise OtherScheme(f"{shown} has the scheme {scheme!r}; only http and https have a robots.txt that is read here")
    rest = url[written.end() :]
    if not rest.startswith("//"):
        raise BadUrl(f"{shown} has no host, so no robots.txt speaks for it")
    authority, rest = _split_authority(rest[2:])
    if "\\" in authority:
        # Browsers end the host at a backslash, others go on: http://127.0.0.1\@example.com/ names either of two hosts.
        raise BadUrl(f"{shown} has a backslash before its path, and clients disagree on what host that makes")
    host, port = _split_port(authority.rpartition("@")[2], shown)
    return Target(Origin(scheme, _read_host(host, shown), _read_port(port, scheme, shown)), _path(rest))


def _split_authority(rest: str) -> tuple[str, str]:
    end = next((at for at, character in enumerate(rest) if character in "/?#"), len(rest))
    return rest[:end], rest[end:]


def _split_port(hostport: str, shown: str) -> tuple[str, str]:
    if hostport.startswith("["):
        host, closed, port = hostport.partition("]")
        if not closed or (port and not port.startswith(":")):
            raise BadUrl(f"{shown} has a host that opens with '[' but is not an IPv6 literal")
        return host + "]", port[1:]
    host, _, port = hostport.partition(":")
    return host, port


def _read_port(port: str, scheme: str, shown: str) -> int:
    if port == "":
        return DEFAULT_PORTS[scheme]
    if not _PORT.fullmatch(port) or not 1 <= int(port) <= 65535:
        raise BadUrl(f"{shown} has the port {port[:20]!r}; a port is a number from 1 to 65535")
    return int(port)


def _read_host(host: str, shown: str) -> str:
    if host.startswith("["):
        return _read_ipv6(host[1:-1], shown)
    name = host.removesuffix(".").lower()
    if not name:
        raise BadUrl(f"{shown} has no host, so no robots.txt speaks for it")
    if not name.isascii():
        name = _to_ascii(name, shown)
    labels = name.split(".")
    if len(name) > _LONGEST_NAME or not all(_LABEL.fullmatch(label) for label in labels):
        raise BadUrl(f"{shown} has the host {host[:260]!r}, which is not a host name")
    if _NUMBER.fullmatch(labels[-1]):
        return _read_ipv4(name, shown)
    return name


def _to_ascii(name: str, shown: str) -> str:
    # The bound comes first: IDNA's tables cost more than a comparison, and no name this long could be valid.
    if len(name) > _LONGEST_NAME:
        raise BadUrl(f"{shown} has a host of {len(name)} characters; a host name has at most {_LONGEST_NAME}")
    try:
        return idna.encode(name, uts46=True, transitional=False).decode("ascii").lower().removesuffix(".")
    except (idna.IDNAError, UnicodeError) as error:
        raise BadUrl(f"{shown} has the host {name!r}, which is not a valid internationalised name: {error}") from None


def _read_ipv4(name: str, shown: str) -> str:
    # `2130706433`, `0x7f.1` and `0177.0.0.1` are read differently from one resolver to the next: one spelling only.
    try:
        return str(IPv4Address(name))
    except AddressValueError:
        raise BadUrl(f"{shown} has the host {name!r}; an IPv4 address is four decimal numbers from 0 to 255") from None


def _read_ipv6(literal: str, shown: str) -> str:
    try:
        address = IPv6Address(literal)
    except AddressValueError:
        address = None
    if address is None or address.scope_id is not None:
        raise BadUrl(f"{shown} has the host '[{literal[:80]}]', which is not an IPv6 address without a zone")
    return str(address)
