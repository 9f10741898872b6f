"""URLs as people type them: a bare host, `example.com/page`, means https, and http where https cannot be reached."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from robots_core.robots.access import Cause

_BARE = re.compile(
    r"(?:localhost|\[[0-9A-Fa-f:.]+\]|[^\s/?#@:\[\]\\.]+\.[^\s/?#@:\[\]\\]*)"  # a name with a dot, or an address
    r"(?::[0-9]{1,5})?(?:[/?#].*)?",
    re.IGNORECASE | re.DOTALL,
)

_NO_HTTPS = frozenset({Cause.CONNECTION, Cause.TIMEOUT, Cause.TLS})
"""Why a fetch by https fails at a host that has http only."""


def candidates(text: str) -> Sequence[str]:
    """The URLs that a text may mean, in the order in which they are tried: one, or two for a bare host."""
    return (f"https://{text}", f"http://{text}") if _BARE.fullmatch(text) else (text,)


def lacks_https(robots: Mapping[str, Any]) -> bool:
    """Whether the facts of a fetch by https say that the host may have http only."""
    return robots["outcome"] == "unreachable" and robots.get("cause") in _NO_HTTPS
