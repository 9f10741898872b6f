"""Log lines of failed fetches: the origin, the failure, the duration and the next attempt."""

import logging
from collections.abc import Callable

from app.cache.byte_lru import BoundedDict
from app.cache.freshness import Recheck, Snapshot, delay
from robots_core.origin import Origin
from robots_core.robots.access import Blocked
from robots_core.times import instant

FETCH = "app.fetch"
"""The name of the logger."""

LOG_INTERVAL = 60.0
"""Minimum seconds between two lines about one origin; the next line counts those left out."""

LOGGED_ORIGINS = 10_000
"""Origins whose last line is remembered."""

_log = logging.getLogger(FETCH)


class FetchLog:
    """Logs failed fetches: at most one line per origin in LOG_INTERVAL seconds of `monotonic`."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        # For each origin, the time of its last line and how many were left out since.
        self._lines: BoundedDict[str, tuple[float, int]] = BoundedDict(LOGGED_ORIGINS)

    def note(self, origin: Origin, snapshot: Snapshot, seconds: float) -> None:
        """Log the fetch that led to this snapshot if it failed; it took `seconds`."""
        failing = snapshot.failing
        if failing is None and not isinstance(snapshot.access, Blocked):
            return
        left_out = self._count(origin.key)
        if left_out is None:
            return
        milliseconds = round(seconds * 1000, 1)
        recheck_at = instant(snapshot.checked_at + delay(snapshot, Recheck(), origin.key))
        fields: dict[str, object] = {
            "origin": origin.with_profile(None).key,
            "outcome": "blocked_address" if failing is None else "unreachable",
            "cause": None if failing is None else failing.failure.cause,
            "status": None if failing is None else failing.failure.status,
            "detail": None if failing is None else failing.failure.detail,
            "duration_ms": milliseconds,
            "attempts": 1 if failing is None else failing.attempts,
            "recheck_at": recheck_at,
            "left_out": left_out,
        }
        if origin.profile is not None:
            fields["profile"] = origin.profile
        why = ", ".join(
            str(fields[name]) for name in ("outcome", "cause", "detail", "status") if fields[name] is not None
        )
        message = f"fetch of {origin.robots_url} failed after {milliseconds} ms: {why}; next try at {recheck_at}"
        _log.info(message, extra={"fields": fields})

    def _count(self, key: str) -> int | None:
        """Count a line; return how many were left out since the last one, or None to leave this one out."""
        now = self._monotonic()
        last, left_out = self._lines.get(key, (None, 0))
        if last is not None and now - last < LOG_INTERVAL:
            self._lines[key] = (last, left_out + 1)
            return None
        self._lines[key] = (now, 0)
        return left_out
