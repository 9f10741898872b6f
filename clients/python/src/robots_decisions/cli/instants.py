"""Instants: Unix seconds here, RFC 3339 in logs and questions."""

import re
from datetime import datetime, timedelta, timezone

_INSTANT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def read_instant(text: str) -> float | None:
    """The RFC 3339 instant (5.6); None if the text is not one between the years 1970 and 9998."""
    written = _INSTANT.fullmatch(text)
    if written is None:
        return None
    date, clock, fraction, zone = written.groups()
    try:
        at = datetime.fromisoformat(f"{date}T{clock}{'+00:00' if zone in 'Zz' else zone}")
    except ValueError:
        return None
    at += timedelta(microseconds=int((fraction or "0").ljust(6, "0")[:6]))
    return at.timestamp() if 1970 <= at.year <= 9998 else None


def rfc3339(at: float) -> str:
    """Unix seconds as RFC 3339, whole seconds, UTC. Raise ValueError or OverflowError beyond the years 1 to 9999."""
    return datetime.fromtimestamp(int(at), timezone.utc).replace(tzinfo=None).isoformat() + "Z"
