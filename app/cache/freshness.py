"""How long a snapshot is fresh, and which snapshot follows a fetch; no I/O and no clock.

Every instant is Unix seconds, every length of time is seconds.
"""

import math
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple, assert_never

from robots_core.content import same
from robots_core.dates import read_date
from robots_core.robots.access import (
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
from robots_core.times import LONGEST_DELTA, read_delta_seconds

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0

KEEP = 30 * DAY
"""Seconds after its fetch for which a copy may be used while fetches fail (RFC 9309 2.3.1.4, spec A29)."""

PAGE_STAYS = DAY
"""Seconds after which a web page that hides the rules of a copy is taken for the answer (spec Q9)."""

FIRST_RETRY, LAST_RETRY, LONGEST_RETRY_AFTER = 5 * MINUTE, HOUR, DAY
"""Seconds of the backoff after failures, and of the longest Retry-After that is obeyed (spec A23)."""

HidesRules = Callable[[Access, Access], bool]
"""Whether a web page, the second, came in place of a file that has rules, the first."""

SPREAD = 0.1
"""Delays vary between origins by this share either way, so that origins fetched together are spread out."""

GRACE, LONGEST_GRACE = 0.1, HOUR
"""The share of a delay, and its maximum, for which a due copy is served while it is refreshed in the background."""

LONGEST_AHEAD = HOUR
"""Seconds by which a snapshot may be dated ahead of the clock, because that was set back, and still count as new."""


@dataclass(frozen=True, slots=True)
class First:
    """The first failure of a kind: when it was, and the id of the API key of the caller who sent it, if one did."""

    at: float
    failure: Unreachable
    ingested: str | None = None


@dataclass(frozen=True, slots=True)
class Failing:
    """A run of failures: when it began, when the last attempt was, how many there were, and the last failure.

    `first` is the first failure of the last one's kind, for the history; None in what an earlier release wrote.
    """

    since: float
    last_at: float
    attempts: int
    failure: Unreachable
    first: First | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Snapshot:
    """What is known about one origin's robots.txt.

    `access` is what was found at `fetched_at`; `lifetime` is the freshness that the response asked for, None if it did
    not. `failing` describes the attempts that have failed since. With it, a Successful `access` is the copy in use, and
    an Unreachable one, if there is no copy, is `failing.failure`. `since`, in whole seconds, is when this content was
    found first; None if this fetch was the first. `ingested` is the id of the API key of the caller who fetched and
    sent it; None if this service fetched it. `own_until`, in whole seconds, is when this service last found the content
    that a caller sent later; None if it did not.
    """

    access: Access
    fetched_at: float
    final_url: str | None = None
    validators: Validators = field(default_factory=Validators)
    lifetime: float | None = None
    failing: Failing | None = None
    since: int | None = None
    ingested: str | None = None
    own_until: int | None = None

    @property
    def own_seen(self) -> int | None:
        """When this service last found its content, in whole seconds; None if only callers did."""
        return self.own_until if self.ingested is not None else math.floor(self.fetched_at)

    @property
    def held_since(self) -> float:
        """When its content was found first; `fetched_at` or earlier."""
        return self.fetched_at if self.since is None else self.since

    def without_failing(self) -> "Snapshot | None":
        """The copy alone, as if no fetch had failed since; None if there is no copy."""
        return replace(self, failing=None) if isinstance(self.access, Successful) else None

    @property
    def checked_at(self) -> float:
        """When the last attempt was, successful or not."""
        return self.fetched_at if self.failing is None else self.failing.last_at


class LifetimePolicy(StrEnum):
    """Which lifetimes of responses are obeyed. SHORTER: those below the default."""

    ANY = "any"
    SHORTER = "shorter"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Recheck:
    """How long a snapshot is fresh: the bounds of the delay (0 < minimum <= maximum), and the delay without a lifetime
    that is obeyed.

    The defaults are the recheck model of RFC 9309 (spec A21, A23); `recheck.py` has the others.
    """

    minimum: float = 5 * MINUTE
    maximum: float = DAY
    default: float = DAY
    obeys: LifetimePolicy = LifetimePolicy.ANY


class State(StrEnum):
    """FRESH: do not fetch. GRACE: serve, and refresh in the background. DUE: refresh first."""

    FRESH = "fresh"
    GRACE = "grace"
    DUE = "due"


class Freshness(NamedTuple):
    """The freshness of a snapshot at an instant; `stale`: a copy past its recheck, in use because fetches fail."""

    recheck_at: float
    state: State
    age: float
    stale: bool


def next_snapshot(previous: Snapshot | None, fetched: Fetched, now: float, *, ingested: str | None = None) -> Snapshot:
    """The snapshot after a fetch: an answer replaces the previous one, a failure keeps its copy.

    Only a 2xx is a copy. An earlier 404 is not used for an origin that has become unreachable, since that would be an
    allow without any evidence (RFC 9309 2.3.1.4).
    """
    match fetched.access:
        case Successful() | Unavailable() | Blocked() as access:
            seconds, since = lifetime(fetched.lifetime, now), _since(previous, access, now)
            own = None if previous is None or since is None or ingested is None else previous.own_seen
            return Snapshot(
                access,
                now,
                fetched.final_url,
                fetched.validators,
                seconds,
                since=since,
                ingested=ingested,
                own_until=own,
            )
        case Unreachable() as failure:
            return _fail(previous, failure, fetched.final_url, now, ingested=ingested)
        case NotModified():
            if previous is None or not isinstance(previous.access, Successful):
                return _fail(previous, Unreachable(Cause.BAD_RESPONSE, status=304), fetched.final_url, now)
            return _renew(previous, fetched, now)
        case unknown:
            assert_never(unknown)


def doubted(previous: Snapshot | None, fetched: Fetched, now: float, hides_rules: HidesRules) -> Fetched:
    """Report a web page that hides the rules of the previous copy as a failure (spec Q9).

    That is how a site looks on the day on which it turns on bot protection. The page counts once it has been there
    for PAGE_STAYS, by two fetches in a row or more.
    """
    page = fetched.access
    if previous is None or not isinstance(page, Successful) or now - previous.fetched_at > KEEP:
        return fetched
    failing = previous.failing
    if failing is not None and is_page(failing.failure) and now - failing.since >= PAGE_STAYS:
        return fetched
    if not hides_rules(previous.access, page):
        return fetched
    return Fetched(Unreachable(Cause.HTML_PAGE, page.status), fetched.final_url)


def is_page(failure: Unreachable) -> bool:
    """Whether it is a web page with a 2xx, which `doubted` reported."""
    return failure.cause is Cause.HTML_PAGE and failure.status is not None and failure.status < 300


def usable(snapshot: Snapshot, now: float) -> Snapshot | None:
    """The part that may still be used: all, the failures alone if the copy is older than KEEP, or None."""
    if now - snapshot.checked_at > KEEP:
        return None
    if snapshot.failing is not None and now - snapshot.fetched_at > KEEP:
        return Snapshot(snapshot.failing.failure, snapshot.failing.last_at, failing=snapshot.failing)
    return snapshot


def known_at(snapshot: Snapshot, at: float) -> Snapshot:
    """The snapshot of a version as far as it was known at an instant in its period: without what failed later.

    Of failures that went on after that instant, only the first is known. The store has whole seconds.
    """
    failing = snapshot.failing
    if failing is None or math.floor(failing.last_at) <= at:
        return snapshot
    first = failing.first or First(failing.since, failing.failure, snapshot.ingested)
    began = min(first.at, at)
    alone = Failing(began, began, 1, first.failure, first)
    return replace(snapshot, access=first.failure, final_url=None, failing=alone, ingested=first.ingested)


def moved(snapshot: Snapshot, seconds: float) -> Snapshot:
    """The snapshot as a clock that is so many seconds ahead would have dated it."""
    failing, since = snapshot.failing, snapshot.since
    return replace(
        snapshot,
        fetched_at=snapshot.fetched_at + seconds,
        failing=None
        if failing is None
        else replace(
            failing,
            since=failing.since + seconds,
            last_at=failing.last_at + seconds,
            first=None if failing.first is None else replace(failing.first, at=failing.first.at + seconds),
        ),
        since=None if since is None else math.floor(since + seconds),
        own_until=None if snapshot.own_until is None else math.floor(snapshot.own_until + seconds),
    )


def delay(snapshot: Snapshot, recheck: Recheck, key: str) -> float:
    """Seconds from the last attempt to the next; the same in every process for an origin's `key` (spec A23)."""
    if snapshot.failing is not None:
        doubled = FIRST_RETRY * 2 ** min(snapshot.failing.attempts - 1, 10)
        requested = min(snapshot.failing.failure.retry_after or 0, LONGEST_RETRY_AFTER)
        latest = LONGEST_RETRY_AFTER if requested > LAST_RETRY else LAST_RETRY
        return _spread(max(requested, min(doubled, LAST_RETRY)), max(requested, FIRST_RETRY), latest, key)
    if isinstance(snapshot.access, Blocked):
        return _spread(FIRST_RETRY, FIRST_RETRY, LAST_RETRY, key)
    return _own_delay(snapshot, recheck, key)


def freshness(snapshot: Snapshot, recheck: Recheck, key: str, now: float) -> Freshness:
    """The freshness of the snapshot at `now`.

    An instant after `now` (the clock was set back) counts as `now`, up to LONGEST_AHEAD. Beyond, a recheck is due: the
    snapshot's age is not known, and it would be fresh for as long as the step was.
    """
    fetched_at, checked_at = min(snapshot.fetched_at, now), min(snapshot.checked_at, now)
    wait = delay(snapshot, recheck, key)
    recheck_at = checked_at + wait
    grace = 0.0 if snapshot.failing is not None else min(GRACE * wait, LONGEST_GRACE)
    if snapshot.checked_at > now + LONGEST_AHEAD:
        state = State.DUE
    elif now < recheck_at:
        state = State.FRESH
    elif now < recheck_at + grace:
        state = State.GRACE
    else:
        state = State.DUE
    in_use_while_failing = snapshot.failing is not None and isinstance(snapshot.access, Successful)
    stale = in_use_while_failing and now >= fetched_at + _own_delay(snapshot, recheck, key)
    return Freshness(recheck_at, state, now - fetched_at, stale)


def lifetime(fields: Lifetime, now: float) -> float | None:
    """Seconds of freshness that a response received at `now` asks for (RFC 9111 4.2.1); None if it does not.

    This is a shared cache: s-maxage takes precedence over max-age, and both over Expires. The first of repeated
    directives counts, and an invalid one makes the response stale (0).
    """
    if fields.cache_control is None and fields.expires is None:
        return None
    directives = _directives(fields.cache_control or "")
    if "no-store" in directives or "no-cache" in directives:
        return 0.0
    age = read_delta_seconds((fields.age or "").partition(",")[0].strip()) or 0.0
    for name in ("s-maxage", "max-age"):
        if name in directives:
            return max(0.0, (read_delta_seconds(directives[name]) or 0.0) - age)
    if fields.expires is None:
        return None
    until = read_date(fields.expires)
    if until is None:
        return 0.0
    date = read_date(fields.date or "")
    since = now if date is None else date.timestamp()
    return min(max(0.0, until.timestamp() - since - age), LONGEST_DELTA)


def _fail(
    previous: Snapshot | None, failure: Unreachable, final_url: str | None, now: float, *, ingested: str | None = None
) -> Snapshot:
    before = None if previous is None else previous.failing
    if before is None or (is_page(failure) and not is_page(before.failure)):  # a run of pages is one of its own
        failing = Failing(now, now, 1, failure, First(now, failure, ingested))
    else:
        first = before.first if same(before.failure, failure) else First(now, failure, ingested)
        failing = Failing(min(before.since, now), now, before.attempts + 1, failure, first)
    if previous is not None and isinstance(previous.access, Successful) and now - previous.fetched_at <= KEEP:
        return replace(previous, failing=failing)
    since = _since(previous, failure, now)
    return Snapshot(failure, now, final_url, failing=failing, since=since, ingested=ingested)


def _renew(previous: Snapshot, fetched: Fetched, now: float) -> Snapshot:
    # A 304 updates the fields that it has and leaves the others unchanged (RFC 9111 4.3.4).
    fields = fetched.lifetime
    has_lifetime = fields.cache_control is not None or fields.expires is not None
    return Snapshot(
        previous.access,
        now,
        fetched.final_url,
        Validators(
            fetched.validators.etag or previous.validators.etag,
            fetched.validators.last_modified or previous.validators.last_modified,
        ),
        lifetime(fields, now) if has_lifetime else previous.lifetime,
        since=_since(previous, previous.access, now),
    )


def _since(previous: Snapshot | None, found: Access, now: float) -> int | None:
    if previous is None or not same(previous.access, found):
        return None
    # If a clock was set back, the beginning must not be after the end.
    return math.floor(min(previous.held_since, now))


def _own_delay(snapshot: Snapshot, recheck: Recheck, key: str) -> float:
    requested = _obeyed(recheck, recheck.default if snapshot.lifetime is None else snapshot.lifetime)
    return _spread(requested, recheck.minimum, recheck.maximum, key)


def _obeyed(recheck: Recheck, lifetime: float) -> float:
    match recheck.obeys:
        case LifetimePolicy.ANY:
            return lifetime
        case LifetimePolicy.SHORTER:
            return min(lifetime, recheck.default)
        case LifetimePolicy.NONE:
            return recheck.default
        case unknown:
            assert_never(unknown)


def _spread(wanted: float, low: float, high: float, key: str) -> float:
    # Origins are spread evenly over the part of +-10 % that is within the bounds. Clamping afterwards would put half of
    # all origins on a bound, since the default delay is one.
    within = min(max(wanted, low), high)
    earliest, latest = max(within * (1 - SPREAD), low), min(within * (1 + SPREAD), high)
    return earliest + (latest - earliest) * zlib.crc32(key.encode()) / 2**32


_DIRECTIVE = re.compile(r'([^\s,;="]+)\s*(?:=\s*(?:"([^"]*)"|([^\s,"]*)))?')


def _directives(value: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name, quoted, plain in _DIRECTIVE.findall(value):
        found.setdefault(name.lower(), quoted or plain)
    return found
