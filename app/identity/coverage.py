"""What a signature of a request covers, and how long it holds. Needs no library."""

import base64
import re
import secrets
from typing import Final, Literal, NamedTuple

from robots_core.origin import Origin

SKEW: Final = 5
"""Seconds that `created` is before the instant from which a signature is to be used, for clocks that are late."""

LIFETIME: Final = 60
"""Seconds from that instant to `expires`."""

TAG: Final = "web-bot-auth"
"""The application that requests are signed for."""

LABEL: Final = "sig1"
"""The label of a signature, and in the form `dictionary` the key of the Signature-Agent member."""

Covers = Literal["path", "authority"]
"""What a signature covers beside Signature-Agent: the authority, and with `path` also the method and the path, where
every client sends the path as it is written. The authority alone is for proxies that rewrite paths.
"""

_PLAIN = r"A-Za-z0-9\-._~!$&'()*+,;=:@/"
_SENT_AS_WRITTEN = re.compile(
    rf"/(?!/)(?:[{_PLAIN}]|%(?:[01][0-9A-F]|2[0235]|3[CEF]|5[B-E]|60|7[BCDF]|[89A-F][0-9A-F]))*"
)


class Mark(NamedTuple):
    """What a signature has for the site that reads it: its label in the fields, and a nonce."""

    label: str
    nonce: str


def new_nonce() -> str:
    """A nonce that no other signature has: 64 bytes, as the draft recommends; some verifiers accept no other number."""
    return base64.b64encode(secrets.token_bytes(64)).decode("ascii")


def covered_path(path_and_query: str) -> str | None:
    """The path, if every client sends it as it is written, so that a signature may cover it; else None.

    Clients change dot segments, a leading `//`, what is not ASCII, characters that belong into an escape, lower-case
    escapes, and escapes of characters that need none.
    """
    path = path_and_query.partition("?")[0]
    return path if _SENT_AS_WRITTEN.fullmatch(path) and not {".", ".."} & set(path.split("/")) else None


def is_exact_host(url: str, origin: Origin) -> bool:
    """Whether the URL has the host of its origin as it is, so that every client names it in the same way.

    Clients disagree on a dot at its end, on characters that are not ASCII, and on addresses in other notations.
    """
    authority = url.strip().partition("://")[2].partition("#")[0].partition("?")[0].partition("/")[0]
    host = authority.rpartition("@")[2].lower()
    return host in (origin.uri_host, f"{origin.uri_host}:", f"{origin.uri_host}:{origin.port}")
