"""URLs as people type them: a bare host, `example.com/page`, means https, and http where https cannot be reached."""

import re
from collections.abc import Sequence

_BARE = re.compile(
    r"(?:localhost|\[[0-9A-Fa-f:.]+\]|[^\s/?#@:\[\]\\.]+\.[^\s/?#@:\[\]\\]*)"  # a name with a dot, or an address
    r"(?::[0-9]{1,5})?(?:[/?#].*)?",
    re.IGNORECASE | re.DOTALL,
)


def candidates(text: str) -> Sequence[str]:
    """The URLs that a text may mean, in the order in which they are tried: one, or two for a bare host."""
    return (f"https://{text}", f"http://{text}") if _BARE.fullmatch(text) else (text,)
