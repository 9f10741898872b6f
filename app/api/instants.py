"""Instants as answers write them: RFC 3339 in UTC, in whole seconds."""

from datetime import UTC, datetime


def instant(seconds: float) -> str:
    """Unix seconds as RFC 3339, whole seconds, UTC."""
    return rfc3339(datetime.fromtimestamp(int(seconds), UTC))


def rfc3339(at: datetime) -> str:
    """An aware instant as RFC 3339, whole seconds, UTC."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"
