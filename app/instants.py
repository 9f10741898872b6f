"""Instants as requests and answers write them: RFC 3339. Answers have UTC and whole seconds."""

import re
from datetime import UTC, datetime

# RFC 3339 5.6. An unescaped `+` in a query string decodes to a space, so a space before the offset stands for `+`.
_INSTANT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]{1,9})?([Zz]|[+ -][0-9]{2}:[0-9]{2})"
)


def read_instant(text: str) -> datetime | None:
    """The RFC 3339 instant; None if the text is not one between the years 1970 and 9998."""
    written = _INSTANT.fullmatch(text)
    if written is None:
        return None
    date, clock, _, zone = written.groups()
    try:
        at = datetime.fromisoformat(f"{date}T{clock}{zone.upper().replace(' ', '+')}")
    except ValueError:
        return None
    # By the timestamp, since the offset may lead to another year.
    return at if at.year <= 9998 and at.timestamp() >= 0 else None


def instant(seconds: float) -> str:
    """Unix seconds as RFC 3339, whole seconds, UTC."""
    return rfc3339(datetime.fromtimestamp(int(seconds), UTC))


def rfc3339(at: datetime) -> str:
    """An aware instant as RFC 3339, whole seconds, UTC."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"
