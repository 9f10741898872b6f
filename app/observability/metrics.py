"""Metrics: a method for each event that is counted, and gauges that are read when they are shown.

No label holds what a caller or an origin chose: no agent, origin or path, and of a status its class only. The ids of
API keys are the operator's choice, and there are KEYS_COUNTED of them at most.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar, assert_never

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from app import __version__
from app.observability.event_loop import sample_lag
from app.observability.processes import Exposition
from app.redis.background import background
from app.robots.access import Access, Blocked, NotModified, Successful, Unavailable, Unreachable

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
"""The format of the text: every name in it is valid in this one, which is the older."""

LOOK_EVERY = 5.0
"""Seconds between two readings of the state of a process."""

KEYS_COUNTED = 1000
"""API keys that are counted one by one; the rest count as OTHER_KEYS."""

OTHER_KEYS = "_other"
"""The label of the API keys beyond KEYS_COUNTED; no key has such an id."""

_DECISION_SECONDS = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_FETCH_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
_WAIT_SECONDS = (0.001, 0.01, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1000.0, 3600.0)
_STORE_SECONDS = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_LAG_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_STORE_FAILURES = ("refused", "unanswered")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})


C = TypeVar("C")


class _Children(dict[tuple[str, ...], C]):
    """A metric's children by their labels: the library takes longer to look one up than to count."""

    def __init__(self, look_up: Callable[..., C]) -> None:
        super().__init__()
        self._look_up = look_up

    def __missing__(self, labels: tuple[str, ...]) -> C:
        child = self[labels] = self._look_up(*labels)
        return child


@dataclass(frozen=True, slots=True)
class State:
    """The state of a process; `memory` has the bytes and the entries of each of its caches, by name.

    `overrides_known` is false until the overrides have been read once: none is in force until then.
    `store_connections` counts the open ones, idle ones included.
    """

    store_degraded: bool
    news_heard: bool
    fetches_under_way: int
    fetches_waiting: int
    memory: Mapping[str, tuple[int, int]]
    overrides_known: bool = True
    store_connections: int = 0
    fetches_failing: bool = False


class Metrics:
    """Counts in a registry of its own, so that several applications in one process do not collide.

    `read_state` is asked for the gauges before they are shown.
    """

    def __init__(self, read_state: Callable[[], State]) -> None:
        self._read_state = read_state
        self._exposition = Exposition()
        registry = self._exposition.registry

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"robots_{name}", text, labels, registry=registry)

        def summed(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"robots_{name}", text, labels, registry=registry, multiprocess_mode="livesum")

        requests = counter("requests", "Requests answered.", "route", "method", "status")
        decisions = counter("decisions", "Decisions given.", "verdict", "reason", "source", "dialect")
        decision_seconds = Histogram(
            "robots_decision_seconds",
            "From a question to its answer, what it waited for included, by where the file came from.",
            ["source"],
            registry=registry,
            buckets=_DECISION_SECONDS,
        )
        self._busy = counter("decisions_refused", "Questions not answered because no more fetches could be begun.")
        self._fetches = counter("fetches", "Fetches that have ended.", "outcome", "cause", "status")
        self._fetch_seconds = Histogram(
            "robots_fetch_seconds",
            "From the wish for a fetch to its end, the time in line included.",
            ["outcome"],
            registry=registry,
            buckets=_FETCH_SECONDS,
        )
        self._fetches_refused = counter("fetches_refused", "Fetches not begun: too many under way and in line.")
        self._contradicted = counter(
            "fetches_contradicted", "Origins that could not be reached from here, and that another process reached."
        )
        self._fetches_failing = Gauge(
            "robots_fetches_failing",
            "1 while every fetch of this process fails, and others reach the same origins (one worker at least).",
            registry=registry,
            multiprocess_mode="livemax",
        )
        self._turned_away = counter("requests_turned_away", "Requests refused by their key or quota.", "why")
        self._overridden = counter("overrides_applied", "Decisions in which an override had a say.", "action")
        self._shadowed = counter("overrides_shadowed", "Decisions that a shadow took part in.", "action", "differs")
        self._history_lost = counter("history_lost", "What was found and is in no history: the store was away.")
        self._permits = counter("permits", "Turns asked for.", "outcome")
        self._permits_degraded = counter("permits_degraded", "Turns that were given without the store, or refused.")
        self._clock_steps = counter("store_clock_steps", "Permit queues moved: the store's clock was set back.")
        self._permit_wait = Histogram(
            "robots_permit_wait_seconds",
            "From the grant of a turn to its instant.",
            registry=registry,
            buckets=_WAIT_SECONDS,
        )
        self._outcomes = counter("outcomes", "Outcomes of turns that callers told.", "outcome")
        self._page_seconds = Histogram(
            "robots_page_seconds", "How long pages took, as callers told.", registry=registry, buckets=_FETCH_SECONDS
        )
        self._back_offs = counter("backoffs", "Backoffs that began or were extended.")
        self._store_failures = counter("store_failures", "Calls to the store that failed.", "kind")
        self._store_seconds = Histogram(
            "robots_store_seconds",
            "From the sending of a call to the store to its answer.",
            registry=registry,
            buckets=_STORE_SECONDS,
        )
        key_requests = counter("key_requests", "Requests that an API key let in.", "key", "status")
        key_refusals = counter("key_quota_exceeded", "Requests beyond the quota of an API key.", "key")
        self._lag = Histogram(
            "robots_event_loop_lag_seconds",
            "How late the event loop called a timer, ten times a second.",
            registry=registry,
            buckets=_LAG_SECONDS,
        )
        build = Gauge(
            "robots_build_info", "The version that runs.", ["version"], registry=registry, multiprocess_mode="livemax"
        )
        build.labels(__version__).set(1)
        self._connections = summed("store_connections", "Open connections to the store, idle ones included.")
        self._under_way = summed("fetches_under_way", "Fetches that are asking an origin now.")
        self._waiting = summed("fetches_waiting", "Fetches that wait in line.")
        self._bytes = summed("memory_bytes", "Bytes that the in-process caches count.", "cache")
        self._entries = summed("memory_entries", "Entries of the in-process caches.", "cache")
        self._degraded = Gauge(
            "robots_store_degraded",
            "1 while the store cannot be used (by one worker at least).",
            registry=registry,
            multiprocess_mode="livemax",
        )
        self._news_heard = Gauge(
            "robots_pubsub_connected",
            "1 while news of other processes is heard (by all workers).",
            registry=registry,
            multiprocess_mode="livemin",
        )
        self._overrides_known = Gauge(
            "robots_overrides_known",
            "1 once the overrides are known (to all workers).",
            registry=registry,
            multiprocess_mode="livemin",
        )
        self._of_request = _Children(requests.labels)
        self._of_decision = _Children(decisions.labels)
        self._of_source = _Children(decision_seconds.labels)
        self._of_override = _Children(self._overridden.labels)
        self._of_shadow = _Children(self._shadowed.labels)
        self._of_key = _Children(key_requests.labels)
        self._of_refused_key = _Children(key_refusals.labels)
        self._keys: set[str] = set()
        # A counter that does not exist until its first event hides that event from rate().
        for kind in _STORE_FAILURES:
            self._store_failures.labels(kind)

    def answered(self, route: str, method: str, status: int) -> None:
        """A request was answered; `route` is the template that its path matched, "" for none."""
        self._of_request[route, method if method in _METHODS else "other", _class_of(status)].inc()

    def decided(
        self, verdict: str, reason: str, source: str, dialect: str, seconds: float | None = None, times: int = 1
    ) -> None:
        """A decision was given, so many `times`; after so many `seconds` where it was asked for alone."""
        self._of_decision[verdict, reason, source, dialect].inc(times)
        if seconds is not None:
            self._of_source[source,].observe(seconds)

    def refused(self) -> None:
        """A question was not answered: it needed a fetch, and no more could be begun."""
        self._busy.inc()

    def turned_away(self, why: str) -> None:
        """A request was refused for want of a key that may, or because its quota is spent; `why` is one of few."""
        self._turned_away.labels(why).inc()

    def key_used(self, key: str, status: int) -> None:
        """Count a request that the API key with this id let in, by the status of its response."""
        self._of_key[self._counted(key), _class_of(status)].inc()

    def quota_exceeded(self, key: str) -> None:
        """Count a request that was refused because the quota of this API key is spent."""
        self.turned_away("quota-exceeded")
        self._of_refused_key[self._counted(key),].inc()

    def _counted(self, key: str) -> str:
        if key not in self._keys:
            if len(self._keys) >= KEYS_COUNTED:
                return OTHER_KEYS
            self._keys.add(key)
        return key

    def overridden(self, action: str) -> None:
        """An override of that action had a say in a decision."""
        self._of_override[action,].inc()

    def shadowed(self, action: str, *, differs: bool) -> None:
        """An override that is a shadow would have had a say in a decision, and `differs`: another would have come."""
        self._of_shadow[action, "true" if differs else "false"].inc()

    def fetched(self, found: Access | NotModified, seconds: float) -> None:
        """A fetch ended after so many seconds, and this is what it found."""
        outcome, cause, status = labels(found)
        self._fetches.labels(outcome, cause, status).inc()
        self._fetch_seconds.labels(outcome).observe(seconds)

    def contradicted(self) -> None:
        """Another process has reached an origin that this one could not reach."""
        self._contradicted.inc()

    def fetch_refused(self) -> None:
        """A fetch was not begun: as many as this process takes are under way and in line."""
        self._fetches_refused.inc()

    def history_lost(self) -> None:
        """What a fetch found is not in the history of its origin, and will not come to be there."""
        self._history_lost.inc()

    def permitted(self, wait: float, *, degraded: bool) -> None:
        """A turn was given that begins in so many seconds."""
        self._permits.labels("granted").inc()
        self._permit_wait.observe(wait)
        self._permits_degraded.inc(degraded)

    def store_clock_stepped(self) -> None:
        """A queue of permits was moved, because the store's clock had been set back."""
        self._clock_steps.inc()

    def not_permitted(self, why: str, *, degraded: bool = False) -> None:
        """A turn was asked for and none was given; `why` is one of few."""
        self._permits.labels(why).inc()
        self._permits_degraded.inc(degraded)

    def outcome(self, status: int | None, elapsed: float | None, *, released: bool, backoff: bool) -> None:
        """A caller told what came of a turn: the page's status and how long it took, or that the turn was not used."""
        self._outcomes.labels("released" if released else _class_of(status)).inc()
        self._back_offs.inc(backoff)
        if elapsed is not None:
            self._page_seconds.observe(elapsed)

    def store_failed(self, kind: str) -> None:
        """A call to the store failed; `kind` is one of few."""
        self._store_failures.labels(kind).inc()

    def store_answered(self, seconds: float) -> None:
        """The store answered a call in so many seconds."""
        self._store_seconds.observe(seconds)

    def look(self) -> None:
        """Set the gauges to the state of this process as it is now."""
        state = self._read_state()
        self._degraded.set(state.store_degraded)
        self._news_heard.set(state.news_heard)
        self._overrides_known.set(state.overrides_known)
        self._fetches_failing.set(state.fetches_failing)
        self._under_way.set(state.fetches_under_way)
        self._waiting.set(state.fetches_waiting)
        self._connections.set(state.store_connections)
        for cache, (octets, entries) in state.memory.items():
            self._bytes.labels(cache).set(octets)
            self._entries.labels(cache).set(entries)

    def text(self) -> bytes:
        """All metrics in Prometheus's text format, as CONTENT_TYPE names it."""
        self.look()
        return self._exposition.text()

    @asynccontextmanager
    async def kept_up(self, probe: Callable[[], Awaitable[None]], *, every: float = LOOK_EVERY) -> AsyncIterator[None]:
        """While the block lasts, call `probe` and read the state every so many seconds, and sample the loop's lag.

        The probe notices what no caller has come upon; other workers answer for this one with what was last read.
        """
        self._exposition.forget_dead_workers()
        self.look()
        try:
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(background(self._keep_looking(probe, every)))
                await stack.enter_async_context(background(sample_lag(self._lag.observe)))
                yield
        finally:
            self._exposition.leave()

    async def _keep_looking(self, probe: Callable[[], Awaitable[None]], every: float) -> None:
        while True:
            await asyncio.sleep(every)
            await probe()
            self.look()


def _class_of(status: int | None) -> str:
    return "" if status is None else f"{status // 100}xx"


def labels(found: Access | NotModified) -> tuple[str, str, str]:
    """What a fetch found: its outcome, its cause, and the class of its status, each "" where there is none."""
    match found:
        case Successful(status):
            return "successful", "", _class_of(status)
        case NotModified():
            return "not_modified", "", "3xx"
        case Unavailable(status, cause):
            return "unavailable", cause or "", _class_of(status)
        case Unreachable(cause, status):
            return "unreachable", cause, _class_of(status)
        case Blocked():
            return "blocked_address", "", ""
        case _:
            assert_never(found)
