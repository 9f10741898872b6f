"""Which recheck model holds for an origin: the domain table says, else the crawler, else the default; pure.

The table also says how fast a host may be visited, which `pace` goes by. Every length of time is seconds, visits are
per day.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from app.cache.freshness import DAY, KEEP, MINUTE, SPREAD, LifetimePolicy, Recheck
from app.durations import read_seconds
from app.origin import BadUrl, read_target
from app.toml_file import parse, shown

RFC9309, SEZNAM = "rfc9309", "seznam"

OFTEN, SOONEST = 10.0, 3 * DAY
RARE, LATEST = 0.1, 21 * DAY
"""An origin that is visited OFTEN a day is asked again after SOONEST, one that is visited RARE a day after LATEST."""

SHORTEST, LONGEST = MINUTE, KEEP
"""What a delay of the table lies between: below, robots.txt is asked for more than pages; above, nothing is kept."""

SLOWEST = DAY
"""What a floor or a cap is at most."""

TABLE_LIMIT = 32 * 1024 * 1024
"""Bytes of the longest table that is read."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class VisitBasedRecheck:
    """The model of Seznam: days for an origin that is visited often, weeks for one that is hardly visited (spec A22).

    Between RARE and OFTEN visits the delay is straight in log(visits). A lifetime that the response asks for shortens
    it, down to the minimum, since who says that the file will change knows best; it never stretches it.
    """

    minimum: float = SOONEST
    maximum: float = LATEST

    def recheck(self, visits: float) -> Recheck:
        """The delay for an origin that is visited so many times a day: never a longer one for more visits."""
        share = math.log(min(max(RARE, visits), OFTEN) / RARE) / math.log(OFTEN / RARE)
        wanted = LATEST - (LATEST - SOONEST) * share
        return Recheck(self.minimum, self.maximum, min(max(wanted, self.minimum), self.maximum), LifetimePolicy.SHORTER)


Model: TypeAlias = Recheck | VisitBasedRecheck
"""A recheck as it is, or one that is worked out from an origin's visits."""

Row: TypeAlias = Mapping[str, Model]
"""What the table says of a suffix: the model that takes the place of each of MODELS."""

MODELS: Row = {RFC9309: Recheck(), SEZNAM: VisitBasedRecheck()}


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between two documents: at least `floor`, at most `cap`; None is what the table does not say."""

    floor: float | None = None
    cap: float | None = None


@dataclass(frozen=True, slots=True)
class DomainTable:
    """What is said by suffix: `example.com` speaks for itself and for all names that end in `.example.com`.

    Of rechecks and of paces, each, the longest suffix counts that says anything.
    """

    rows: Mapping[str, Row]
    paces: Mapping[str, Pace] = field(default_factory=dict)

    def row(self, host: str) -> Row | None:
        """What is said of rechecks for `host` (A-labels, lower-case)."""
        return _longest(self.rows, host)

    def pace(self, host: str) -> Pace | None:
        """What is said of the pace for `host` (A-labels, lower-case)."""
        return _longest(self.paces, host)


def _longest(rows: Mapping[str, T], host: str) -> T | None:
    """What the longest suffix says: one look-up for each of the host's labels."""
    suffix = host if rows else ""
    while suffix:
        row = rows.get(suffix)
        if row is not None:
            return row
        suffix = suffix.partition(".")[2]
    return None


def model(table: DomainTable, host: str, own: str, default: str) -> Model:
    """The model for `host`: the table's, else the crawler's `own`, else the `default`, names that MODELS has.

    RFC9309 is what a crawler has of which nothing is known, and so gives way to the default.
    """
    name = default if own == RFC9309 else own
    return (table.row(host) or MODELS)[name]


def read_table(text: str) -> DomainTable:
    """Read a domain table from TOML; ValueError names the suffix and the field that cannot be read.

    A row is `"example.com" = {model = "seznam", min = "1d", max = "7d"}`, each field free to be left out, or
    `{delay = "2h"}` for a fixed one. Either may also have `floor` and `cap`, the bounds of the pace. Durations are
    seconds, or texts like "90s", "15m", "12h", "3d", "1w".
    """
    written = parse(text, "table of suffixes")
    rows: dict[str, Row] = {}
    paces: dict[str, Pace] = {}
    names: dict[str, str] = {}
    for name, written_row in written.items():
        suffix = _read_suffix(name)
        if suffix in names:
            raise ValueError(f"the suffixes {names[suffix]!r} and {name!r} are the same: one row speaks for it")
        names[suffix] = name
        row = _checked(name, written_row)
        if not row.keys() <= {*_PACE_FIELDS}:
            rows[suffix] = _read_row(name, row)
        if not row.keys().isdisjoint(_PACE_FIELDS):
            paces[suffix] = _read_pace(name, row)
    return DomainTable(rows, paces)


def _read_suffix(name: str) -> str:
    # A dot in front is how others write "and all below", which here goes without saying.
    host = name.removeprefix(".")
    if not host.startswith("[") and any(mark in host for mark in ":/?#@"):
        raise ValueError(f"the suffix {name!r} is not a host name: it has no scheme, no port and no path")
    try:
        target = read_target(f"http://{host}")
    except BadUrl as error:
        raise ValueError(f"the suffix {name!r} is not a host name: {error}") from None
    if target.origin.port != 80 or target.path != "/":
        raise ValueError(f"the suffix {name!r} is not a host name: it has no scheme, no port and no path")
    return target.origin.host


_RECHECK_FIELDS = ("model", "delay", "min", "max")
_PACE_FIELDS = ("floor", "cap")
_FIELDS = (*_RECHECK_FIELDS, *_PACE_FIELDS)


def _checked(name: str, row: object) -> Mapping[str, object]:
    """The row with no fields but those there are."""
    if not isinstance(row, dict):
        raise ValueError(f"the suffix {name!r} has {shown(row)}, where a table of {', '.join(_FIELDS)} is expected")
    for key, value in row.items():
        if key not in _FIELDS:
            # [example.com] is the table `com` in the table `example`, which whoever wrote it cannot know.
            hint = '; a name with dots goes in quotes, as in ["example.com"]' if isinstance(value, dict) else ""
            raise ValueError(f"the suffix {name!r} has a field {shown(key)}; the fields are {', '.join(_FIELDS)}{hint}")
    if not row:
        raise ValueError(f"the suffix {name!r} has no field; the fields are {', '.join(_FIELDS)}")
    return row


def _read_pace(name: str, row: Mapping[str, object]) -> Pace:
    floor = _read_duration(name, "floor", row["floor"], _PACE_BOUNDS) if "floor" in row else None
    cap = _read_duration(name, "cap", row["cap"], _PACE_BOUNDS) if "cap" in row else None
    if floor is not None and cap is not None and floor > cap:
        raise ValueError(f"the suffix {name!r} has floor = {shown(row['floor'])}, more than cap = {shown(row['cap'])}")
    return Pace(floor, cap)


def _read_row(name: str, row: Mapping[str, object]) -> Row:
    if "delay" in row:
        if not row.keys().isdisjoint({"model", "min", "max"}):
            raise ValueError(f"the suffix {name!r} has a delay, which is fixed: no model, min or max goes with it")
        return dict.fromkeys(MODELS, _fixed(_read_duration(name, "delay", row["delay"])))
    named = row.get("model")
    if named is not None and not (isinstance(named, str) and named in MODELS):
        raise ValueError(f"the suffix {name!r} has model = {shown(named)}; the models are {', '.join(MODELS)}")
    low = _read_duration(name, "min", row["min"]) if "min" in row else None
    high = _read_duration(name, "max", row["max"]) if "max" in row else None
    if low is not None and high is not None and low > high:
        raise ValueError(f"the suffix {name!r} has min = {shown(row['min'])}, longer than max = {shown(row['max'])}")
    return {own: _within(MODELS[named or own], low, high) for own in MODELS}


def _fixed(delay: float) -> Recheck:
    """Always `delay`, but for the spread, without which all origins below one suffix would be asked at once."""
    return Recheck(max(delay * (1 - SPREAD), SHORTEST), min(delay * (1 + SPREAD), LONGEST), delay, LifetimePolicy.NONE)


def _within(model: Model, low: float | None, high: float | None) -> Model:
    """The model with these bounds for its own; a bound that crosses the other of the model takes it along."""
    minimum = low if low is not None else min(model.minimum, high if high is not None else model.minimum)
    maximum = high if high is not None else max(model.maximum, minimum)
    if isinstance(model, VisitBasedRecheck):
        return VisitBasedRecheck(minimum, maximum)
    return Recheck(minimum, maximum, min(max(model.default, minimum), maximum), model.heed)


_Bounds: TypeAlias = tuple[float, float, str]
_RECHECK_BOUNDS: _Bounds = (SHORTEST, LONGEST, "a delay lies between a minute and 30 days")
_PACE_BOUNDS: _Bounds = (0.0, SLOWEST, "a pace lies between 0 seconds and a day")


def _read_duration(name: str, key: str, value: object, bounds: _Bounds = _RECHECK_BOUNDS) -> float:
    low, high, expected = bounds
    seconds = math.nan
    if isinstance(value, str):
        written = read_seconds(value)
        seconds = math.nan if written is None else written
    elif isinstance(value, int | float) and not isinstance(value, bool):
        # Compared before it is converted: an integer of TOML has no bound, and a float has one.
        seconds = float(value) if low <= value <= high else math.inf
    if math.isnan(seconds):
        raise ValueError(
            f'the suffix {name!r} has {key} = {shown(value)}; expected seconds, or a text like "12h" or "3d"'
        )
    if not low <= seconds <= high:
        raise ValueError(f"the suffix {name!r} has {key} = {shown(value)}; {expected}")
    return seconds
