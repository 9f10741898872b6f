"""The fleet's edge facts in Redis or Valkey: a hash of them and a sorted set of changes, in one slot of a cluster."""

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

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
        members = json.loads(text) if isinstance(text, bytes) and text else {}
    except (ValueError, RecursionError):
        members = {}
    found = {name: _fact(value) for name, value in members.items()} if isinstance(members, dict) else {}
    return {name: fact for name, fact in list(found.items())[:MAX_AGENTS] if fact is not None}


def _fact(value: Any) -> EdgeFact | None:
    match value:
        case [int(status), int(since), int(reported_at), int(count), str(), *price] if status in REFUSALS:
            valid = 0 < since <= reported_at < _LIMIT // 1000 and 0 < count < _LIMIT
            return EdgeFact(status, since, reported_at, count, _price(price)) if valid else None
        case _:
            return None


def _price(value: list[Any]) -> Price | None:
    match value:
        case [str(text), int(at), str(page)] if 0 < len(text) <= PRICE_CHARS and 0 < at < _LIMIT // 1000:
            return Price(text, at, page if 0 < len(page) <= PAGE_CHARS else None)
        case _:
            return None
