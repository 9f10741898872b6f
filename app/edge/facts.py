"""What the servers in front of a site say to an agent: pages that are refused or priced, whatever robots.txt allows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from robots_core.robots.agents import agent_key

REFUSALS = frozenset({401, 402, 403, 451})
"""Statuses of pages that are kept as facts."""

FACT_ORIGINS = 5000
"""Origins of the fleet that have facts, at most; beyond that, those reported longest ago are dropped."""

MAX_AGENTS = 8
"""Agents of one origin that have facts, at most; beyond that, those reported longest ago are dropped."""

FACT_KEPT = 7 * 86_400
"""Seconds after the last report for which a fact is kept."""


class EdgeState(StrEnum):
    """How pages are withheld from an agent."""

    REFUSED = "refused"
    PRICED = "priced"


PRICE_CHARS, PAGE_CHARS = 100, 500
"""Characters of a price, at most, and of the URL of its page; a longer URL is left out."""


@dataclass(frozen=True, slots=True)
class Price:
    """What a 402 asked for a page, as written by the site: the newest, at an instant (Unix seconds)."""

    text: str
    reported_at: int
    page: str | None = None


@dataclass(frozen=True, slots=True)
class EdgeFact:
    """The refusals of an origin's pages that an agent has met since its last success there.

    `status` is that of the newest report, at `reported_at`; the first was at `since` (Unix seconds by the store's
    clock). `count` is the number of reports. `price` is the newest that a 402 named.
    """

    status: int
    since: int
    reported_at: int
    count: int
    price: Price | None = None

    @property
    def state(self) -> EdgeState:
        """Whether the page has a price (402 Payment Required), or is refused."""
        return EdgeState.PRICED if self.status == 402 else EdgeState.REFUSED

    def expired(self, now: float) -> bool:
        """Whether the last report is too old to be kept."""
        return self.reported_at + FACT_KEPT <= now


@dataclass(frozen=True, slots=True)
class OriginFacts:
    """The facts of one origin by agent key, as of a version of the store; none if the last of them has ended."""

    origin: str
    version: int
    facts: Mapping[str, EdgeFact]


class EdgeTable:
    """The facts in memory: those of the FACT_ORIGINS origins that changed last. `newest` is the latest version put."""

    def __init__(self) -> None:
        self.newest = 0
        self._origins: dict[str, OriginFacts] = {}

    def __bool__(self) -> bool:
        return bool(self._origins)

    def find(self, origin: str, token: str, now: float) -> EdgeFact | None:
        """The fact for a product token at the origin with this key."""
        entry = self._origins.get(origin)
        fact = None if entry is None else entry.facts.get(agent_key(token))
        return None if fact is None or fact.expired(now) else fact

    def agents(self, origin: str, now: float) -> Mapping[str, EdgeFact]:
        """The facts of an origin by agent key."""
        entry = self._origins.get(origin)
        return {} if entry is None else {name: it for name, it in entry.facts.items() if not it.expired(now)}

    def latest(self, now: float) -> Iterator[str]:
        """The keys of the origins that have facts, the latest change first."""
        return (origin for origin in reversed(self._origins) if self.agents(origin, now))

    def put(self, entry: OriginFacts) -> None:
        """Replace the facts of an origin, unless those in memory are newer."""
        self.newest = max(self.newest, entry.version)
        held = self._origins.get(entry.origin)
        if held is not None:
            if held.version > entry.version:
                return
            del self._origins[entry.origin]  # the new entry goes to the end
        if entry.facts:
            self._origins[entry.origin] = entry
            if len(self._origins) > FACT_ORIGINS:
                del self._origins[next(iter(self._origins))]

    def drop_before(self, version: int) -> None:
        """Drop the entries older than the oldest version in the store."""
        old: Sequence[str] = [key for key, entry in self._origins.items() if entry.version < version]
        for key in old:
            del self._origins[key]

    def clear(self) -> None:
        """Drop all entries."""
        self._origins.clear()
        self.newest = 0
