"""How long a snapshot is fresh, and which snapshot follows a fetch; no I/O and no clock.

Every instant is Unix seconds, every length of time is seconds.
"""

import math
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import assert_never

from app.cache.content import same
from app.robots.access import (
    Access,
    Blocked,
    Cause,
    Fetched,
    Lifetime,
    NotModified,
    Successful,
    Unavailable,
    Unreachable,
    Validators,
)

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0

KEEP = 30 * DAY
"""How long after its fetch a copy may stand in for a file that cannot be had (RFC 9309 2.3.1.4, spec A29)."""

LONGEST_LIFETIME = float(2**31)
"""What a larger delta-seconds is read as (RFC 9111 1.2.2)."""

FIRST_RETRY, LAST_RETRY, LONGEST_RETRY_AFTER = 5 * MINUTE, HOUR, DAY
"""The back-off after failures, and how much of a Retry-After is obeyed (spec A23)."""

SPREAD = 0.1
"""Delays vary by this share either way from one origin to the next, so that what was fetched together parts."""

GRACE, LONGEST_GRACE = 0.1, HOUR
"""The share of a delay, and its bound, for which a copy past its recheck is served while it is refreshed behind."""


@dataclass(frozen=True, slots=True)
class Failing:
    """An unbroken run of failures: when it began, when the last attempt was, how many there were, and the last one."""

    since: float
    last_at: float
    attempts: int
    failure: Unreachable


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Snapshot:
    """What is known of one origin's robots.txt.

    `access` is what was found at `fetched_at`; `lifetime` is the freshness that the response asked for, or None where
    it was silent. `failing` tells of the attempts that failed since: with a Successful access it is the copy that
    stands in, and an Unreachable access (nothing to stand in) is `failing.failure` itself. `since`, in whole
    seconds, is when the first of the fetches that all found this content did; None where that is this one.
    """

    access: Access
    fetched_at: float
    final_url: str | None = None
    validators: Validators = field(default_factory=Validators)
    lifetime: float | None = None
    failing: Failing | None = None
    since: int | None = None

    @property
    def held_since(self) -> float:
        """When its content was found first; `fetched_at` or before."""
        return self.fetched_at if self.since is None else self.since

    def without_failing(self) -> "Snapshot | None":
        """The copy alone, as if no fetch had failed since; None if there is no copy."""
        return replace(self, failing=None) if isinstance(self.access, Successful) else None

    @property
    def checked_at(self) -> float:
        """When the origin was last asked, with or without success."""
        return self.fetched_at if self.failing is None else self.failing.last_at


class LifetimePolicy(StrEnum):
    """Which of the lifetimes that responses ask for count. SHORTER: those below the default."""

    ANY = "any"
    SHORTER = "shorter"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Recheck:
    """How long an answer holds: the delay's bounds, and the delay where the response is silent or not heeded.

    As it stands, it is the recheck model of RFC 9309 (spec A21, A23); `recheck.py` has the others.
    """

    minimum: float = 5 * MINUTE
    maximum: float = DAY
    default: float = DAY
    heed: LifetimePolicy = LifetimePolicy.ANY

    def __post_init__(self) -> None:
        if not 0 < self.minimum <= self.maximum:
            raise ValueError(f"a recheck delay cannot lie between {self.minimum} and {self.maximum} seconds")


class State(StrEnum):
    """FRESH: do not fetch now. GRACE: serve, refresh behind. DUE: refresh first."""

    FRESH = "fresh"
    GRACE = "grace"
    DUE = "due"


@dataclass(frozen=True, slots=True)
class Freshness:
    """Where a snapshot stands at an instant; `stale`: a copy past its recheck, served because refreshing it fails."""

    recheck_at: float
    state: State
    age: float
    stale: bool


def next_snapshot(previous: Snapshot | None, fetched: Fetched, now: float) -> Snapshot:
    """The snapshot that follows `previous` once `fetched` is in: an answer replaces it, a failure keeps its copy.

    Only a 2xx is a copy: a 404 held before does not answer for an origin that cannot be reached any more, since that
    would be a silent allow (RFC 9309 2.3.1.4).
    """
    match fetched.access:
        case Successful() | Unavailable() | Blocked() as access:
            seconds, since = lifetime(fetched.lifetime, now), _since(previous, access, now)
            return Snapshot(access, now, fetched.final_url, fetched.validators, seconds, since=since)
        case Unreachable() as failure:
            return _fail(previous, failure, fetched.final_url, now)
        case NotModified():
            if previous is None or not isinstance(previous.access, Successful):
                return _fail(previous, Unreachable(Cause.BAD_RESPONSE, status=304), fetched.final_url, now)
            return _renew(previous, fetched, now)
        case unknown:
            assert_never(unknown)


def usable(snapshot: Snapshot, now: float) -> Snapshot | None:
    """The part that may still be used: the same object, its failures alone if the copy is older than KEEP, or None."""
    if now - snapshot.checked_at > KEEP:
        return None
    if snapshot.failing is not None and now - snapshot.fetched_at > KEEP:
        return Snapshot(snapshot.failing.failure, snapshot.failing.last_at, failing=snapshot.failing)
    return snapshot


def delay(snapshot: Snapshot, recheck: Recheck, key: str) -> float:
    """Seconds from the last attempt to the next; the same for the same origin `key` in every process (spec A23)."""
    if snapshot.failing is not None:
        doubled = FIRST_RETRY * 2 ** min(snapshot.failing.attempts - 1, 10)
        asked = min(snapshot.failing.failure.retry_after or 0, LONGEST_RETRY_AFTER)
        latest = LONGEST_RETRY_AFTER if asked > LAST_RETRY else LAST_RETRY
        return _spread(max(asked, min(doubled, LAST_RETRY)), max(asked, FIRST_RETRY), latest, key)
    if isinstance(snapshot.access, Blocked):
        return _spread(FIRST_RETRY, FIRST_RETRY, LAST_RETRY, key)
    return _own_delay(snapshot, recheck, key)


def freshness(snapshot: Snapshot, recheck: Recheck, key: str, now: float) -> Freshness:
    """Where the snapshot stands at `now`; an instant ahead of `now` (a clock was set back) counts as `now`."""
    fetched_at, checked_at = min(snapshot.fetched_at, now), min(snapshot.checked_at, now)
    wait = delay(snapshot, recheck, key)
    recheck_at = checked_at + wait
    grace = 0.0 if snapshot.failing is not None else min(GRACE * wait, LONGEST_GRACE)
    if now < recheck_at:
        state = State.FRESH
    elif now < recheck_at + grace:
        state = State.GRACE
    else:
        state = State.DUE
    stands_in = snapshot.failing is not None and isinstance(snapshot.access, Successful)
    stale = stands_in and now >= fetched_at + _own_delay(snapshot, recheck, key)
    return Freshness(recheck_at, state, now - fetched_at, stale)


def lifetime(said: Lifetime, now: float) -> float | None:
    """Seconds of freshness that a response received at `now` asks for (RFC 9111 4.2.1), or None where it is silent.

    We are a shared cache: s-maxage wins over max-age, and both over Expires. Of a repeated directive the first
    counts, and one that cannot be read makes the response stale, 0.
    """
    if said.cache_control is None and said.expires is None:
        return None
    directives = _directives(said.cache_control or "")
    if "no-store" in directives or "no-cache" in directives:
        return 0.0
    age = _seconds((said.age or "").partition(",")[0].strip()) or 0.0
    for name in ("s-maxage", "max-age"):
        if name in directives:
            return max(0.0, (_seconds(directives[name]) or 0.0) - age)
    if said.expires is None:
        return None
    until = _instant(said.expires)
    if until is None:
        return 0.0
    date = None if said.date is None else _instant(said.date)
    since = now if date is None else date
    return min(max(0.0, until - since - age), LONGEST_LIFETIME)


def _fail(previous: Snapshot | None, failure: Unreachable, final_url: str | None, now: float) -> Snapshot:
    before = None if previous is None else previous.failing
    if before is None:
        failing = Failing(now, now, 1, failure)
    else:
        failing = Failing(min(before.since, now), now, before.attempts + 1, failure)
    if previous is not None and isinstance(previous.access, Successful) and now - previous.fetched_at <= KEEP:
        return replace(previous, failing=failing)
    return Snapshot(failure, now, final_url, failing=failing, since=_since(previous, failure, now))


def _renew(previous: Snapshot, fetched: Fetched, now: float) -> Snapshot:
    # A 304 updates the fields it carries and leaves the rest as they were (RFC 9111 4.3.4).
    said = fetched.lifetime
    speaks = said.cache_control is not None or said.expires is not None
    return Snapshot(
        previous.access,
        now,
        fetched.final_url,
        Validators(
            fetched.validators.etag or previous.validators.etag,
            fetched.validators.last_modified or previous.validators.last_modified,
        ),
        lifetime(said, now) if speaks else previous.lifetime,
        since=_since(previous, previous.access, now),
    )


def _since(previous: Snapshot | None, found: Access, now: float) -> int | None:
    if previous is None or not same(previous.access, found):
        return None
    # A clock that was set back must not leave a beginning that lies after its end.
    return math.floor(min(previous.held_since, now))


def _own_delay(snapshot: Snapshot, recheck: Recheck, key: str) -> float:
    asked = _asked(recheck, recheck.default if snapshot.lifetime is None else snapshot.lifetime)
    return _spread(asked, recheck.minimum, recheck.maximum, key)


def _asked(recheck: Recheck, lifetime: float) -> float:
    match recheck.heed:
        case LifetimePolicy.ANY:
            return lifetime
        case LifetimePolicy.SHORTER:
            return min(lifetime, recheck.default)
        case LifetimePolicy.NONE:
            return recheck.default
        case unknown:
            assert_never(unknown)


def _spread(wanted: float, low: float, high: float, key: str) -> float:
    # The room is what +-10 % leaves inside the bounds, and the origin's place in it is even: clamping afterwards
    # would heap half of all origins on a bound, and the default delay is one.
    within = min(max(wanted, low), high)
    earliest, latest = max(within * (1 - SPREAD), low), min(within * (1 + SPREAD), high)
    return earliest + (latest - earliest) * zlib.crc32(key.encode()) / 2**32


_DIRECTIVE = re.compile(r'([^\s,;="]+)\s*(?:=\s*(?:"([^"]*)"|([^\s,"]*)))?')


def _directives(value: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name, quoted, plain in _DIRECTIVE.findall(value):
        found.setdefault(name.lower(), quoted or plain)
    return found


def _seconds(text: str) -> float | None:
    if not (text.isascii() and text.isdigit()):
        return None
    # int() refuses thousands of digits; ten are past the bound already.
    digits = text.lstrip("0")
    return LONGEST_LIFETIME if len(digits) > 10 else min(float(digits or 0), LONGEST_LIFETIME)


def _instant(text: str) -> float | None:
    try:
        date = parsedate_to_datetime(text[:64])
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return (date if date.tzinfo is not None else date.replace(tzinfo=UTC)).timestamp()
