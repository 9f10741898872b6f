"""Durations as people and HTTP write them."""

import re

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
