"""The recheck model of an origin: that of the domain table, else the crawler's, else the default; pure.

The table also has bounds of the pace, for pacing. Times are in seconds, visits per day.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from app.cache.freshness import DAY, KEEP, MINUTE, SPREAD, LifetimePolicy, Recheck

RFC9309_MODEL, SEZNAM_MODEL = "rfc9309", "seznam"

OFTEN, SOONEST = 10.0, 3 * DAY
RARE, LATEST = 0.1, 21 * DAY
"""An origin with OFTEN visits a day is rechecked after SOONEST, one with RARE visits a day after LATEST."""

SHORTEST_RECHECK, LONGEST_RECHECK = MINUTE, KEEP
"""The bounds of delays in the table: below, robots.txt would be fetched too often; above, no copy is kept so long."""

SLOWEST = DAY
"""The longest floor or cap."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class VisitBasedRecheck:
    """The model of Seznam: days for an origin that is visited often, weeks for one that is rarely visited (spec A22).

    Between RARE and OFTEN visits the delay is linear in log(visits). A lifetime of the response may shorten it, down to
    the minimum, because the site knows best when its file will change, but never extends it.
    """

    minimum: float = SOONEST
    maximum: float = LATEST

    def recheck(self, visits: float) -> Recheck:
        """The recheck of an origin with so many visits a day; more visits never mean a longer delay."""
        share = math.log(min(max(RARE, visits), OFTEN) / RARE) / math.log(OFTEN / RARE)
        wanted = LATEST - (LATEST - SOONEST) * share
        return Recheck(self.minimum, self.maximum, min(max(wanted, self.minimum), self.maximum), LifetimePolicy.SHORTER)


Model: TypeAlias = Recheck | VisitBasedRecheck
"""A recheck, or how to compute one from an origin's visits."""

Row: TypeAlias = Mapping[str, Model]
"""A row of the table: the replacement for each of MODELS."""

MODELS: Row = {RFC9309_MODEL: Recheck(), SEZNAM_MODEL: VisitBasedRecheck()}


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between two documents: at least `floor`, at most `cap`; and documents a day. None: it does not say."""

    floor: float | None = None
    cap: float | None = None
    budget: int | None = None


@dataclass(frozen=True, slots=True)
class DomainTable:
    """Rows by suffix: `example.com` stands for itself and for all names that end in `.example.com`.

    The longest suffix with a recheck counts, and independently the longest one with a pace and with a pool's name.
    """

    rows: Mapping[str, Row]
    paces: Mapping[str, Pace] = field(default_factory=dict)
    pools: Mapping[str, str] = field(default_factory=dict)

    def row(self, host: str) -> Row | None:
        """The rechecks of `host` (A-labels, lower case)."""
        return _longest(self.rows, host)

    def pace(self, host: str) -> Pace | None:
        """The bounds of the pace of `host` (A-labels, lower case)."""
        return _longest(self.paces, host)

    def pool(self, host: str) -> str | None:
        """The name of the pool of `host` (A-labels, lower case); None if the table names none."""
        return _longest(self.pools, host)


def _longest(rows: Mapping[str, T], host: str) -> T | None:
    """The row of the longest suffix; one lookup for each label of the host."""
    suffix = host if rows else ""
    while suffix:
        row = rows.get(suffix)
        if row is not None:
            return row
        suffix = suffix.partition(".")[2]
    return None


def model(table: DomainTable, host: str, own: str, default: str) -> Model:
    """The model for `host`: that of the table, else the crawler's `own`, else the `default`; both are names in MODELS.

    Crawlers that nothing is known about have RFC9309_MODEL, so the default takes precedence over it.
    """
    name = default if own == RFC9309_MODEL else own
    return (table.row(host) or MODELS)[name]


def fixed(delay: float) -> Recheck:
    """Always `delay`, with the usual spread, or all origins of a suffix would be rechecked at once."""
    return Recheck(
        max(delay * (1 - SPREAD), SHORTEST_RECHECK),
        min(delay * (1 + SPREAD), LONGEST_RECHECK),
        delay,
        LifetimePolicy.NONE,
    )


def within(model: Model, low: float | None, high: float | None) -> Model:
    """The model with these bounds; if a bound crosses the model's other one, that moves along."""
    minimum = low if low is not None else min(model.minimum, high if high is not None else model.minimum)
    maximum = high if high is not None else max(model.maximum, minimum)
    if isinstance(model, VisitBasedRecheck):
        return VisitBasedRecheck(minimum, maximum)
    return Recheck(minimum, maximum, min(max(model.default, minimum), maximum), model.obeys)
