"""Lines of the common and the combined log format, which web servers and proxies write."""

import re
from datetime import datetime, timezone
from typing import NamedTuple

_ESCAPED = r'[^"\\]*(?:\\.[^"\\]*)*'
_LINE = re.compile(
    rf'(?:\[[^\]"]*\])?[^\["]*\[([^\]]*)\] "({_ESCAPED})" [0-9-]+ [0-9-]+(?: "({_ESCAPED})" "({_ESCAPED})")?(.*)'
)
"""A line; the client that it begins with may be an IPv6 address in brackets."""
_ESCAPE = re.compile(rb"\\(?:x([0-9A-Fa-f]{2})|(.))")
_PROTOCOL = " HTTP/"
_DENIED = "TCP_DENIED"
"""What squid adds to the combined format for a request that it refused."""


class ServedRequest(NamedTuple):
    """A request in a log.

    `target` is a URL or a path, None if the request has neither. `agent` is the User-Agent, None if it is not logged.
    `refused`: a proxy did not forward the request.
    """

    target: str | None
    agent: str | None
    at: datetime
    refused: bool


def read_request(text: str) -> ServedRequest | None:
    """Read a line; None if it is in neither format."""
    written = _LINE.fullmatch(text)
    if written is None:
        return None
    stamp, request, _, agent, rest = written.groups()
    try:
        at = datetime.strptime(stamp, "%d/%b/%Y:%H:%M:%S %z").astimezone(timezone.utc)
    except (ValueError, OverflowError):  # OverflowError: in UTC it is outside the years 1 to 9999
        return None
    named = _unescaped(agent or "").strip()
    return ServedRequest(
        _target(_unescaped(request)), None if named in ("", "-") else named, at, rest.strip().startswith(_DENIED)
    )


def _target(request: str) -> str | None:
    method, _, rest = request.partition(" ")
    target = rest.rpartition(_PROTOCOL)[0] or rest
    # A proxy sees no URL in the tunnel that `CONNECT host:443` opens; `OPTIONS *` has none; `-` stands for no request.
    return None if method == "CONNECT" or target in ("", "*") else target


def _unescaped(text: str) -> str:
    r"""The text without escapes, such as `\"` and `\xC3`."""
    if "\\" not in text:
        return text
    raw = _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]) if found[1] else found[2], text.encode())
    return raw.decode("utf-8", "replace")
