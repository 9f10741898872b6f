"""What the chosen groups say beside their rules: how fast, when to come, what for (spec F, G, I)."""

from dataclasses import dataclass

from app.robots.compiled.paces import PaceLines
from app.robots.rates import (
    CrawlDelay,
    Rate,
    RatePolicy,
    Stretches,
    Timetable,
    deciding_rates,
    largest_delay,
    rate_timetable,
    visit_timetable,
)
from app.robots.selection import Selector
from app.robots.syntax import Key
from app.robots.usage import UsageTerms

_TOKENS = 100
"""The terms of how many tokens are kept."""


@dataclass(frozen=True, slots=True)
class Terms:
    """`rates` through the day as the dialect obeys them, `crawl_delay` as declared; None is what is not stated."""

    rates: Timetable[Rate | None]
    crawl_delay: CrawlDelay | None
    visits: Timetable[bool] | None
    usage: UsageTerms | None


class FileTerms:
    """The terms that a file states to each token; none of them ever changes a verdict (spec G1).

    All lines that tell a pace are read once, when the first token is asked for. Tokens to whom the same lines speak
    share their terms. A file can still give each of a thousand tokens lines of its own: of what is kept there is a
    bound, past which it is let go, and made anew for whoever asks next.
    """

    __slots__ = ("_by_stretches", "_by_token", "_paces", "_policy", "_room", "_selector", "_taken")

    def __init__(self, selector: Selector, policy: RatePolicy, *, room: int) -> None:
        """`room` is in lines and rates."""
        self._paces = PaceLines(*map(selector.lines, (Key.CRAWL_DELAY, Key.REQUEST_RATE, Key.VISIT_TIME)))
        self._selector = selector
        self._policy = policy
        self._by_token: dict[tuple[str, str | None], Terms] = {}
        self._by_stretches: dict[tuple[Stretches, Stretches], Terms] = {}
        self._room = room
        self._taken = 0

    def __len__(self) -> int:
        return len(self._by_token)

    def of(self, token: str, inherits: str | None) -> Terms:
        """What is stated to `token`, which also has the Crawl-delay of the token `inherits` (spec C12)."""
        terms = self._by_token.get((token, inherits))
        if terms is not None:
            return terms
        stretches = self._selector.stretches(token), () if inherits is None else self._selector.stretches(inherits)
        terms = self._by_stretches.get(stretches) or self._read(token, stretches)
        if len(self._by_token) >= _TOKENS:
            self._by_token.clear()
        self._by_token[token, inherits] = terms
        return terms

    def _read(self, token: str, stretches: tuple[Stretches, Stretches]) -> Terms:
        usages, signals = (self._selector.said(token, key) for key in (Key.CONTENT_USAGE, Key.CONTENT_SIGNAL))
        own, inherited = stretches
        delay = largest_delay(self._paces, own + inherited)
        terms = Terms(
            rates=rate_timetable(deciding_rates(self._paces, own), delay, self._policy),
            crawl_delay=delay,
            visits=visit_timetable(self._paces, own),
            usage=UsageTerms(usages, signals) if usages or signals else None,
        )
        size = 1 + len(terms.rates.values) + len(usages) + len(signals)
        if self._taken + size > self._room or len(self._by_stretches) >= _TOKENS:
            self._by_token.clear()
            self._by_stretches.clear()
            self._taken = 0
        self._taken += size
        self._by_stretches[stretches] = terms
        return terms
