"""Durations and instants as people, HTTP and JSON write them.

Instants are RFC 3339; answers have UTC and whole seconds.
"""

import re
from datetime import UTC, datetime

from robots_core.dates import read_date

LONGEST_DELTA = float(2**31)
"""Seconds that any longer delta-seconds is read as (RFC 9111 1.2.2)."""

_WRITTEN = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhdw]?)")
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}


def read_seconds(text: str) -> float | None:
    """Seconds of a text like "90", "15m", "12h", "1.5d" or "2w"; None for any other text."""
    written = _WRITTEN.fullmatch(text.strip())
    return None if written is None else float(written[1]) * _UNITS[written[2]]


def read_delta_seconds(text: str) -> float | None:
    """Seconds of a delta-seconds of HTTP, LONGEST_DELTA at most; None for any other text."""
    if not (text.isascii() and text.isdigit()):
        return None
    digits = text.lstrip("0")
    return min(float(digits or 0), LONGEST_DELTA) if len(digits) <= 10 else LONGEST_DELTA


def read_retry_after(value: str, now: float) -> float | None:
    """Seconds from `now` (Unix time) to the end of a Retry-After (RFC 9110 10.2.3), which may have passed.

    None for an invalid one.
    """
    seconds = read_delta_seconds(value)
    date = read_date(value) if seconds is None else None
    return seconds if date is None else date.timestamp() - now


# RFC 3339 5.6. An unescaped `+` in a query string decodes to a space, so a space before the offset stands for `+`.
_INSTANT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]{1,9})?([Zz]|[+ -][0-9]{2}:[0-9]{2})"
)


def read_instant(text: str) -> datetime | None:
    """The RFC 3339 instant; None if the text is not one between the years 1970 and 9998.

    A leap second (5.7) is read as the second before it, as POSIX has no other, and a fraction to the microsecond.
    """
    written = _INSTANT.fullmatch(text)
    if written is None:
        return None
    date, clock, fraction, zone = written.groups()
    leap = clock.endswith(":60")
    clock = f"{clock[:-2]}59" if leap else clock
    try:
        at = datetime.fromisoformat(f"{date}T{clock}{fraction or ''}{zone.upper().replace(' ', '+')}")
    except ValueError:
        return None
    if leap and f"{at.astimezone(UTC):%H:%M}" != "23:59":
        return None
    # By the timestamp, since the offset may lead to another year.
    return at if at.year <= 9998 and at.timestamp() >= 0 else None


def instant(seconds: float) -> str:
    """Unix seconds as RFC 3339, whole seconds, UTC."""
    return rfc3339(datetime.fromtimestamp(int(seconds), UTC))


def rfc3339(at: datetime) -> str:
    """An aware instant as RFC 3339, whole seconds, UTC."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"
