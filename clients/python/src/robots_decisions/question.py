"""What is asked about a page, by the names of the HTTP API. No I/O."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

Names: TypeAlias = str | Sequence[str]
"""One name, or several. Of agents, those after the first are fallbacks."""

Members: TypeAlias = Mapping[str, object]
"""Members of a question: `agent`, and those of `purpose`, `enforce`, `dialect`, `max_age` and `as_of` that are set."""

_AUTHORITY = re.compile(r"[^/?\\]*")
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9:.]{5,40}(?:[Zz]|[+-][0-9]{2}:[0-9]{2})")


def asking(
    *,
    agent: Names | None = None,
    purpose: Names | None = None,
    enforce: bool | None = None,
    dialect: str | None = None,
    max_age: float | None = None,
    as_of: str | datetime | None = None,
) -> dict[str, object]:
    """The members that are set. Raise ValueError for invalid ones."""
    members: dict[str, object] = {}
    if agent is not None:
        members["agent"] = _names("agent", agent)
    if purpose is not None:
        members["purpose"] = _names("purpose", purpose)
    if enforce is not None:
        members["enforce"] = enforce
    if dialect is not None:
        members["dialect"] = _names("dialect", str(dialect))
    if max_age is not None:
        members["max_age"] = checked_seconds("max_age", max_age)
    if as_of is not None:
        members["as_of"] = _instant(as_of)
    return members


def checked_seconds(name: str, seconds: float) -> float:
    """The seconds. Raise ValueError if they are not finite, or negative."""
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"{name}={seconds!r} is not a number of seconds")
    return seconds


def without_credentials(url: str) -> str:
    """The URL without credentials and fragment, which do not influence a verdict."""
    scheme, separator, rest = url.partition("#")[0].partition("://")
    authority = _AUTHORITY.match(rest)
    if not separator or authority is None:
        return url
    return f"{scheme}://{authority[0].rpartition('@')[2]}{rest[authority.end() :]}"


def origin_key(url: str) -> str:
    """Scheme and authority of a URL: pages that share them usually share a rate."""
    scheme, _, rest = without_credentials(url).partition("://")
    authority = _AUTHORITY.match(rest)
    return f"{scheme}://{authority[0] if authority else ''}".lower()


def site_key(url: str) -> str:
    """The host of a URL: its pages share a pace."""
    authority = origin_key(url).partition("://")[2]
    host, colon, port = authority.rpartition(":")
    return host if colon and not port.strip("0123456789") else authority


def answered_agent(asked: object, message: object) -> str:
    """The agent that an answer is about: of several, the one that the service names."""
    if isinstance(asked, str):
        return asked
    names = [str(name) for name in asked] if isinstance(asked, Sequence) else [""]
    named = message.get("agent") if isinstance(message, dict) else None
    return named if isinstance(named, str) and named in names else names[0]


def _names(option: str, value: Names) -> Names:
    names = [value] if isinstance(value, str) else list(value)
    if not names or not all(str(name).strip() for name in names):
        raise ValueError(f"{option}={value!r} is empty")
    return value if isinstance(value, str) else names


def _instant(as_of: str | datetime) -> str:
    text = as_of.isoformat() if isinstance(as_of, datetime) else as_of
    if not _INSTANT.fullmatch(text):
        raise ValueError(f"as_of={as_of!r} is not a datetime with a time zone, or a text as 2026-11-21T18:30:00Z")
    return text
