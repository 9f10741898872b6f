"""Parse URLs of callers, once and on entry; all other code uses Target, not `str` (spec A2, A3, A31, D6)."""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

URL_LIMIT = 16 * 1024
"""Bytes of the longest URL that is read (spec A31)."""

DEFAULT_PORTS = {"http": 80, "https": 443}

PROFILE_NAME = r"[A-Za-z0-9_-]{1,32}"
"""A pattern of the names of fetch profiles."""

_CACHED_ORIGINS = 16_384
_CACHED_LENGTH = 256
"""Beginnings of URLs that are cached with their origins, and the characters of the longest: 10 MB at most."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_PORT = re.compile(r"[0-9]{0,5}")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PROFILE = re.compile(PROFILE_NAME)
_LONGEST_NAME = 253  # RFC 1035 2.3.4, without the root's dot


class BadUrl(ValueError):
    """An invalid URL. The message quotes it and says what is wrong."""


class OtherScheme(BadUrl):
    """A URL whose scheme is neither http nor https."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The scope of a robots.txt: scheme, host (lower-case A-labels or an IP literal) and port (spec A2, A3).

    `profile` names the fetch profile that the file is fetched with, None for the default. A site may answer each with
    a different file, so the cache keeps them apart. The origin of a URL has none.
    """

    scheme: str
    host: str
    port: int
    profile: str | None = None
    # Computed once, since every question about the origin needs it.
    key: str = field(init=False, repr=False, compare=False)
    """`scheme://host[:port][#profile]`, which identifies the origin in caches, in the store and in answers."""

    def __post_init__(self) -> None:
        profile = "" if self.profile is None else f"#{self.profile}"
        object.__setattr__(self, "key", f"{self.scheme}://{self.authority}{profile}")

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def uri_host(self) -> str:
        """The host as a URL writes it: an IPv6 address in brackets (RFC 3986 3.2.2)."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def authority(self) -> str:
        """`host[:port]`, without the default port of the scheme."""
        return self.uri_host if self.port == DEFAULT_PORTS[self.scheme] else f"{self.uri_host}:{self.port}"

    @property
    def robots_url(self) -> str:
        """The URL of the file (RFC 9309 2.3)."""
        return f"{self.scheme}://{self.authority}/robots.txt"

    def with_profile(self, name: str | None) -> "Origin":
        """This origin with the fetch profile of that name, or with the default one for None."""
        return self if name == self.profile else Origin(self.scheme, self.host, self.port, name)


class Target(NamedTuple):
    """The origin of a URL, and `path`, the rest of it, which rules are matched against.

    `path` starts with `/`, includes the query, and is as the caller wrote it: dot segments and `//` are not normalised,
    since the crawler will request the URL as it is (spec D6).
    """

    origin: Origin
    path: str

    @property
    def url(self) -> str:
        """The URL without user-info, fragment and default port."""
        return self.origin.key + self.path


def read_target(url: str) -> Target:
    """Parse an absolute http or https URL of at most URL_LIMIT bytes. Raises BadUrl."""
    # A fleet asks about the same origins repeatedly, and parsing one costs more than a cache lookup.
    ends = url.find("/", 8)  # any shorter beginning has no host
    if 0 < ends <= _CACHED_LENGTH and len(url) <= URL_LIMIT and url.isascii():
        origin = _cached_origin(url[:ends])
        if origin is not None:
            return Target(origin, url[ends:].partition("#")[0])
    return _read_target(url)


def read_key(key: str) -> Origin | None:
    """The origin with this key; None if there is none."""
    base, mark, profile = key.partition("#")
    if mark and not _PROFILE.fullmatch(profile):
        return None
    try:
        origin = read_target(base).origin.with_profile(profile or None)
    except BadUrl:
        return None
    return origin if origin.key == key else None


def read_suffix(text: str) -> str:
    """Read a host suffix, `example.com` or `.example.com`, in its normal form; raises BadUrl."""
    host = text.removeprefix(".")
    if any(mark in host for mark in "/?#@") or ":" in host.rpartition("]")[2]:
        raise BadUrl("a host suffix has no scheme, no user, no port and no path")
    return read_target(f"http://{host}").origin.host


@lru_cache(_CACHED_ORIGINS)
def _cached_origin(beginning: str) -> Origin | None:
    """The origin of a URL's beginning, up to its path; None if it is invalid or has a query or fragment."""
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
        raise BadUrl(f"{shown} contains a lone surrogate, which is not valid in a URL") from None
    if size > URL_LIMIT:
        raise BadUrl(f"{shown} is {size} bytes long; the limit is {URL_LIMIT}")
    written = _SCHEME.match(url)
    if written is None:
        raise BadUrl(f"{shown} is not an absolute URL: start it with http:// or https://")
    scheme = written[1].lower()
    if scheme not in DEFAULT_PORTS:
        raise OtherScheme(f"{shown} has the scheme {scheme!r}; use http or https")
    rest = url[written.end() :]
    if not rest.startswith("//"):
        raise BadUrl(f"{shown} has no host; write one after the scheme, as in https://example.com/")
    authority, rest = _split_authority(rest[2:])
    if "\\" in authority:
        # Browsers end the host at a backslash, others go on: http://127.0.0.1\@example.com/ names either of two hosts.
        raise BadUrl(f"{shown} has a backslash before its path, and clients disagree on the host of such a URL")
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
    name = _without_escapes(host, shown).removesuffix(".").lower()
    if not name:
        raise BadUrl(f"{shown} has no host; write one after the scheme, as in https://example.com/")
    if not name.isascii():
        name = _to_ascii(name, shown)
    labels = name.split(".")
    if len(name) > _LONGEST_NAME or not all(_LABEL.fullmatch(label) for label in labels):
        raise BadUrl(f"{shown} has the host {host[:260]!r}, which is not a host name")
    if _NUMBER.fullmatch(labels[-1]):
        return _read_ipv4(name, shown)
    return name


def _without_escapes(host: str, shown: str) -> str:
    """The host that percent-escapes write in UTF-8 (RFC 3986 3.2.2), once; what they write is checked like any host."""
    if "%" not in host:
        return host
    from urllib.parse import unquote  # here, since few hosts need it

    try:
        return unquote(host, errors="strict")
    except UnicodeDecodeError:
        raise BadUrl(f"{shown} has the host {host[:260]!r}, whose percent-escapes are not UTF-8") from None


def _to_ascii(name: str, shown: str) -> str:
    # The bound comes first: IDNA's tables cost more than a comparison, and no name this long could be valid.
    if len(name) > _LONGEST_NAME:
        raise BadUrl(f"{shown} has a host of {len(name)} characters; a host name has at most {_LONGEST_NAME}")
    import idna  # here, since few hosts need its tables

    try:
        return idna.encode(name, uts46=True, transitional=False).decode("ascii").lower().removesuffix(".")
    except (idna.IDNAError, UnicodeError) as error:
        raise BadUrl(f"{shown} has the host {name!r}, which is not a valid internationalised name: {error}") from None


def _read_ipv4(name: str, shown: str) -> str:
    # `2130706433`, `0x7f.1` and `0177.0.0.1` are read differently from one resolver to the next: one spelling only.
    from ipaddress import AddressValueError, IPv4Address

    try:
        return str(IPv4Address(name))
    except AddressValueError:
        raise BadUrl(f"{shown} has the host {name!r}; an IPv4 address is four decimal numbers from 0 to 255") from None


def _read_ipv6(literal: str, shown: str) -> str:
    from ipaddress import AddressValueError, IPv6Address

    try:
        address = IPv6Address(literal)
    except AddressValueError:
        address = None
    if address is None or address.scope_id is not None:
        raise BadUrl(f"{shown} has the host '[{literal[:80]}]', which is not an IPv6 address without a zone")
    return str(address)
