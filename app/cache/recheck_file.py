"""RECHECK_FILE: the domain table as TOML, by host suffix.

A row is `"example.com" = {model = "seznam", min = "1d", max = "7d"}`, or `{delay = "2h"}` for a fixed delay. Either may
also have `floor` and `cap`, the bounds of the pace, and `budget`, in documents a day. All fields are optional.
Durations are seconds, or texts like "90s", "15m", "12h", "3d" and "1w".

The table `[pools]` has names of pools, and for each the suffixes whose hosts share its queue of permits.
"""

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, model_validator

from app.cache.recheck import LONGEST_RECHECK, MODELS, SHORTEST_RECHECK, SLOWEST, DomainTable, Pace, Row, fixed, within
from app.files.toml_file import parse, read_file, read_row
from robots_core.origin import BadUrl, read_suffix
from robots_core.times import read_seconds

MAX_BUDGET = 1_000_000_000
"""Documents a day: the largest budget."""

POOLS = "pools"
"""The key of the table of pools; no host has this name alone."""

_POOL_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")

TABLE_LIMIT = 32 * 1024 * 1024
"""Bytes of the longest table that is read."""


def load(path: Path) -> DomainTable:
    """Read the table from a file; raises ValueError."""
    return read_table(read_file(path, TABLE_LIMIT))


def read_table(text: str) -> DomainTable:
    """Read the table from TOML. Raises ValueError, which names the suffix and the field."""
    rows: dict[str, Row] = {}
    paces: dict[str, Pace] = {}
    names: dict[str, str] = {}
    table = parse(text, "table of suffixes")
    pools = _read_pools(table.pop(POOLS, {}))
    for name, value in table.items():
        suffix = _suffix(name)
        if names.setdefault(suffix, name) != name:
            raise ValueError(f"the suffixes {names[suffix]!r} and {name!r} are the same; use one row")
        row = read_row(_TableRow, value, f"the suffix {name!r}")
        if row.model_fields_set & _RECHECK_FIELDS:
            rows[suffix] = row.rechecks()
        if row.model_fields_set & _PACE_FIELDS:
            paces[suffix] = Pace(row.floor, row.cap, row.budget)
    return DomainTable(rows, paces, pools)


def _suffix(name: str) -> str:
    try:
        return read_suffix(name)
    except BadUrl as error:
        raise ValueError(f"the suffix {name!r} is not a host name: {error}") from None


def _read_pools(pools: object) -> dict[str, str]:
    """The name of the pool for each suffix of the table `[pools]`. Raises ValueError."""
    if not isinstance(pools, dict):
        raise ValueError(f"[{POOLS}] is a table: a name, and the list of its suffixes")
    found: dict[str, str] = {}
    for name, suffixes in pools.items():
        if not _POOL_NAME.fullmatch(name):
            raise ValueError(f"the pool {name!r} needs a name of 1 to 64 letters, digits, '.', '_' and '-'")
        if not isinstance(suffixes, list) or not suffixes or not all(isinstance(it, str) for it in suffixes):
            raise ValueError(f'the pool {name!r} is a list of host suffixes, such as ["example.com"]')
        for suffix in map(_suffix, suffixes):
            if found.setdefault(suffix, name) != name:
                raise ValueError(f"the suffix {suffix!r} is in the pools {found[suffix]!r} and {name!r}; use one")
    return found


def _duration(low: float, high: float, expected: str) -> PlainValidator:
    def read(value: object) -> float:
        seconds = read_seconds(value) if isinstance(value, str) else value
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise ValueError('expected seconds, or a text like "12h" or "3d"')
        if not low <= seconds <= high:
            raise ValueError(expected)
        return float(seconds)

    return PlainValidator(read)


_Delay = Annotated[float, _duration(SHORTEST_RECHECK, LONGEST_RECHECK, "a delay lies between a minute and 30 days")]
Interval = Annotated[float, _duration(0.0, SLOWEST, "a pace lies between 0 seconds and a day")]


class _TableRow(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    model: Literal["rfc9309", "seznam"] | None = None
    delay: _Delay | None = None
    min: _Delay | None = None
    max: _Delay | None = None
    floor: Interval | None = None
    cap: Interval | None = None
    budget: Annotated[int, Field(ge=1, le=MAX_BUDGET)] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("has no field")
        if self.delay is not None and self.model_fields_set & {"model", "min", "max"}:
            raise ValueError("has a delay, which is fixed: remove its model, min and max")
        for low, high in (("min", "max"), ("floor", "cap")):
            one, other = getattr(self, low), getattr(self, high)
            if one is not None and other is not None and one > other:
                raise ValueError(f"has {low} = {one:g} s, more than {high} = {other:g} s")
        return self

    def rechecks(self) -> Row:
        """What the row makes of each model."""
        if self.delay is not None:
            return dict.fromkeys(MODELS, fixed(self.delay))
        return {own: within(MODELS[self.model or own], self.min, self.max) for own in MODELS}


_PACE_FIELDS = {"floor", "cap", "budget"}
_RECHECK_FIELDS = _TableRow.model_fields.keys() - _PACE_FIELDS
