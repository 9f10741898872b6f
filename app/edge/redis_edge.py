"""The fleet's edge facts in Redis or Valkey: a hash of them and a sorted set of changes, in one slot of a cluster."""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Annotated, Final, NamedTuple, TypeAlias

import msgspec

from app.edge.facts import (
    FACT_KEPT,
    FACT_ORIGINS,
    MAX_AGENTS,
    PAGE_CHARS,
    PRICE_CHARS,
    REFUSALS,
    EdgeFact,
    OriginFacts,
    Price,
)
from app.store.guarded_client import GuardedClient, UnexpectedReply
from app.store.script import Script
from robots_core.origin import read_key

ORIGINS_PER_CALL = 200
"""Origins that one call reads."""

LONGEST_ORIGIN = 300
"""Bytes of an origin's key; a host name has at most 253."""

LONGEST_VALUE = 16_384
"""Bytes of the facts of one origin: those of MAX_AGENTS agents are shorter."""

_KEYS: Final = ("robots:{edge}:facts", "robots:{edge}:changes")
_REPORT, _CHANGES = Script.load(__package__, "report.lua"), Script.load(__package__, "changes.lua")
_LIMIT = 2**53
_Time: TypeAlias = Annotated[int, msgspec.Meta(gt=0, lt=_LIMIT // 1000)]


class EdgeChanges(NamedTuple):
    """Facts that have changed since a version, and the oldest and newest version in the store: 0 if it has none."""

    oldest: int
    newest: int
    entries: Sequence[OriginFacts]


class RedisEdge:
    """The facts that all processes share. What is read back is not trusted: invalid facts are ignored.

    `clock` (Unix seconds) replaces the server's.
    """

    def __init__(self, store: GuardedClient, clock: Callable[[], float] | None = None) -> None:
        self._store = store
        self._clock = clock

    async def report(
        self, origin: str, agent: str, status: int, slot: str, price: str = "", page: str = ""
    ) -> OriginFacts | None:
        """Record a refusal, or a success (2xx); return the origin's facts, None if they have not changed.

        A `slot` counts once, unless it is "". `price` is what a 402 asked for `page`. Raises StoreDown.
        """
        now = "" if self._clock is None else str(int(self._clock() * 1000))
        limits = map(str, (FACT_KEPT, MAX_AGENTS, FACT_ORIGINS, LONGEST_VALUE))
        recorded = str(status if status in REFUSALS else 0)
        match await _REPORT.run(self._store, _KEYS, origin, agent, recorded, slot, now, *limits, price, page):
            case None:
                return None
            case [bytes(version), bytes(text)]:
                return OriginFacts(origin, _version(version), _facts(text))
            case other:
                raise UnexpectedReply(other)

    async def changes(self, since: int) -> EdgeChanges:
        """The next ORIGINS_PER_CALL origins whose facts have changed since a version; raises StoreDown."""
        limits = map(str, (ORIGINS_PER_CALL, LONGEST_ORIGIN, LONGEST_VALUE))
        reply = await _CHANGES.run(self._store, _KEYS, str(since), *limits)
        match reply:
            case [bytes(oldest), bytes(newest), *rows] if len(rows) % 3 == 0:
                triples = zip(rows[::3], rows[1::3], rows[2::3], strict=True)
                return EdgeChanges(_version(oldest), _version(newest), [_entry(*triple) for triple in triples])
            case []:
                return EdgeChanges(0, 0, ())
            case other:
                raise UnexpectedReply(other)


class _FactRow(msgspec.Struct, array_like=True):
    """An agent's fact, as report.lua writes it."""

    status: int
    since: _Time
    reported_at: _Time
    count: Annotated[int, msgspec.Meta(gt=0, lt=_LIMIT)]
    slots: str
    price: Annotated[str, msgspec.Meta(max_length=PRICE_CHARS)] = ""
    priced_at: _Time = 1
    page: str = ""

    def fact(self) -> EdgeFact:
        """The fact; a page that is too long is left out."""
        page = self.page if 0 < len(self.page) <= PAGE_CHARS else None
        price = Price(self.price, self.priced_at, page) if self.price else None
        return EdgeFact(self.status, self.since, self.reported_at, self.count, price)


_ROWS: Final = msgspec.json.Decoder(dict[str, _FactRow])


def _version(text: object) -> int:
    try:
        number = int(text)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        number = 0
    return int(number) if 0 <= number < _LIMIT else 0


def _entry(origin: object, version: object, text: object) -> OriginFacts:
    name = origin.decode("ascii", "replace") if isinstance(origin, bytes) else ""
    found = read_key(name)
    known = found is not None and found.profile is None  # pages are fetched without a profile
    return OriginFacts(name if known else "", _version(version), _facts(text) if known else {})


def _facts(text: object) -> dict[str, EdgeFact]:
    try:
        rows = _ROWS.decode(text) if isinstance(text, bytes) else {}
    except (ValueError, RecursionError):
        rows = {}
    valid = ((name, row) for name, row in rows.items() if row.status in REFUSALS and row.since <= row.reported_at)
    return {name: row.fact() for name, row in islice(valid, MAX_AGENTS)}
