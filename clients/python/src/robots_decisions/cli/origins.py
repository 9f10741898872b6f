"""URLs as lists have them: their origin to sort by, and bare hosts (`example.com/page`)."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

_ORIGIN = re.compile(rb"(https?)://(?:[^/?#\\@\s]*@)?([^/?#\\@\s]+)", re.IGNORECASE)
_BARE = re.compile(
    rb"(?:localhost|\[[0-9A-Fa-f:.]+\]|[^\s/?#@:\[\]\\.]+\.[^\s/?#@:\[\]\\]*)(?::[0-9]{1,5})?(?=[/?#]|$)", re.IGNORECASE
)
"""A name with a dot, or an address, that a path may follow."""

_DEFAULT_PORTS = {b"http": b":80", b"https": b":443"}
NO_HTTPS = frozenset({"connection", "timeout", "tls"})
"""Why a fetch by https fails at a host that has http only."""


def origin_of(url: bytes) -> bytes:
    """The origin of a URL or a bare host, to sort and count by; nothing if it has none.

    The service alone decides which URLs are valid, and which origins are the same.
    """
    found = _ORIGIN.match(url)
    if found is None:
        bare = _BARE.match(url)
        return b"" if bare is None else b"https://" + bare[0].lower().removesuffix(b":443")
    scheme = found[1].lower()
    return scheme + b"://" + found[2].lower().removesuffix(_DEFAULT_PORTS[scheme])


def candidates(url: str) -> Sequence[str]:
    """The URLs that a text may mean, in the order in which they are tried: one, or two for a bare host."""
    return (f"https://{url}", f"http://{url}") if _BARE.match(url.encode("utf-8", "replace")) else (url,)


def lacks_https(robots: Mapping[str, Any]) -> bool:
    """Whether the facts of a fetch by https say that the host may have http only."""
    return robots.get("outcome") == "unreachable" and robots.get("cause") in NO_HTTPS
