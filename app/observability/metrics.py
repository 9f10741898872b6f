"""Metrics: counters and histograms of events, and gauges that are read at each scrape.

No label holds a value that a caller or an origin chose: no agent, origin or path, and only the class of a status. The
ids of API keys and the names of pools are chosen by the operator, and at most KEYS_COUNTED of the former get a label.
"""

import collections
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Annotated, Literal, TypeAlias, assert_never, get_origin, get_type_hints

from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from app import __version__
from app.loop.background import BackgroundTask, periodically, repeatedly
from app.observability.event_loop import sample_lag
from app.observability.processes import Exposition
from app.observability.revision import REVISION
from robots_core.robots.access import Access, Blocked, NotModified, Successful, Unavailable, Unreachable

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
"""The content type of the exposition: Prometheus text format 0.0.4, which every scraper reads."""

DEFERRED = "deferred"
"""The status class of a 503 that is a verdict: the service has done what it was asked for."""

UPDATE_INTERVAL = 5.0
"""Seconds between two updates of the gauges."""

KEYS_COUNTED = 1000
"""API keys with a label of their own; the others share OTHER_KEYS."""

OTHER_KEYS = "_other"
"""The label of the API keys beyond KEYS_COUNTED; no key may have this id."""

_DECISION_SECONDS = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_FETCH_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
_WAIT_SECONDS = (0.001, 0.01, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1000.0, 3600.0)
_STORE_SECONDS = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_LAG_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_STORE_FAILURES = ("refused", "unanswered")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})


# A gauge beside each counter, which says when it was made: a third of the text, and no rule reads them.
disable_created_metrics()  # type: ignore[no-untyped-call]


GaugeMode: TypeAlias = Literal["livemax", "livemin", "livemostrecent", "livesum"]
"""How a scrape makes one value of those of the workers that are alive."""


@dataclass(frozen=True, slots=True)
class ServiceState:
    """The state of a process, as gauges of these names: how the workers' values are joined, and what they say.

    `memory` has the bytes and entries of each cache, `overrides` how many there are of each source.
    """

    store_degraded: Annotated[bool, "livemax", "1 while at least one worker cannot use the store."]
    pubsub_connected: Annotated[bool, "livemin", "1 while all workers receive the invalidations of other processes."]
    fetches_in_flight: Annotated[int, "livesum", "Fetches in flight."]
    fetches_queued: Annotated[int, "livesum", "Fetches waiting in the queue."]
    memory: Mapping[str, tuple[int, int]]
    overrides: Mapping[str, int] = field(default_factory=dict)
    overrides_loaded: Annotated[bool, "livemin", "1 once all workers have loaded the overrides."] = True
    overrides_changes: Annotated[
        int, "livemax", "Changes of the overrides in the store, since the first; 0 if it has none."
    ] = 0
    files_refused: Annotated[
        int, "livemax", "Files of operators that could not be reloaded, so that an earlier content is in force."
    ] = 0
    store_connections: Annotated[int, "livesum", "Open connections to the store, including idle ones."] = 0
    fetches_failing: Annotated[
        bool, "livemax", "1 while every fetch of a worker fails and other processes reach the same origins."
    ] = False
    store_clock_offset_seconds: Annotated[
        float, "livemostrecent", "Seconds by which the clock of the store is ahead of that of this process."
    ] = 0.0
    store_may_evict: Annotated[
        bool, "livemax", "1 while the maxmemory-policy of the store may evict overrides, or pacing before files."
    ] = False
    archive_lag_seconds: Annotated[
        float, "livemax", "For how long the oldest version waits that is not in the archive yet."
    ] = 0.0
    signing_keys_unpublished: Annotated[
        int, "livemax", "Keys that sign, and that the directory at their origin does not have."
    ] = 0


class Metrics:
    """Metrics in a registry of their own, so that several applications in one process do not collide.

    `read_state` is called before each scrape. An event without labels has its metric as an attribute, of which the part
    that counts it is given `inc` or `observe`. One with a single label, out of a small fixed set, is counted by an
    attribute that is called with it; the others have a method.
    """

    def __init__(self, read_state: Callable[[], ServiceState]) -> None:
        self._read_state = read_state
        self._exposition = Exposition()
        registry = self._exposition.registry

        def counter(name: str, text: str) -> Counter:
            return Counter(f"robots_{name}", text, registry=registry)

        def counters(name: str, text: str, *labels: str) -> Callable[..., Counter]:
            # By the labels' values, since the library takes longer to look one up than to count.
            return cache(Counter(f"robots_{name}", text, labels, registry=registry).labels)

        def counting(name: str, text: str, label: str, known: Iterable[str] = ()) -> Callable[[str], None]:
            labelled = counters(name, text, label)
            for value in known:  # a counter that does not exist until its first event hides that event from rate()
                labelled(value)
            return lambda value: labelled(value).inc()

        def gauge(name: str, mode: GaugeMode, text: str, *labels: str) -> Gauge:
            return Gauge(f"robots_{name}", text, labels, registry=registry, multiprocess_mode=mode)

        def histogram(name: str, text: str, buckets: Sequence[float]) -> Histogram:
            return Histogram(f"robots_{name}", text, registry=registry, buckets=buckets)

        def histograms(name: str, text: str, buckets: Sequence[float], label: str) -> Callable[..., Histogram]:
            return cache(Histogram(f"robots_{name}", text, (label,), registry=registry, buckets=buckets).labels)

        self._requests = counters("requests", "Requests answered.", "route", "method", "status")
        self._decisions = counters("decisions", "Decisions given.", "verdict", "reason", "source", "dialect")
        self._decision_seconds = histograms(
            "decision_seconds",
            "Time from a question to its answer, including waits, by the source of the file.",
            _DECISION_SECONDS,
            "source",
        )
        self.decisions_overloaded = counter(
            "decisions_overloaded",
            "Questions not answered because the fetch queue was full, or the process overloaded.",
        )
        self._fetches = counters("fetches", "Completed fetches.", "outcome", "cause", "status")
        self._fetch_seconds = histograms(
            "fetch_seconds", "Duration of fetches, including time in the queue.", _FETCH_SECONDS, "outcome"
        )
        self.fetch_refused = counting(
            "fetches_overloaded",
            "Fetches not started because the queue, or their address, was full.",
            "limit",
            known=("queue", "address"),
        )
        self.fetches_contradicted = counter(
            "fetches_contradicted", "Origins that this process could not reach and another process could."
        )
        self._helper_calls = counters("helper_calls", "Pieces of long work done by helper processes.", "outcome")
        self._helper_seconds = counter("helper_cpu_seconds", "CPU time that they took.")
        self.request_overloaded = counting(
            "requests_overloaded", "Requests refused because the process had too much to do.", "reason"
        )
        self.rejected = counting("requests_rejected", "Requests rejected for their API key or quota.", "reason")
        self.overridden = counting("overrides_applied", "Decisions that an override changed or confirmed.", "action")
        self._shadowed = counters(
            "overrides_shadowed",
            "Decisions that an override in shadow mode would have applied to.",
            "action",
            "differs",
        )
        self._purposes = counters(
            "purposes_judged", "Purposes of questions, by what the site states.", "purpose", "state", "enforced"
        )
        self.background_failed = counting(
            "background_failures",
            "Records that a background task failed on unexpectedly, and left out.",
            "task",
            known=BackgroundTask,
        )
        self.history_lost = counter("history_lost", "Versions missing from the history.")
        self.archive_lost = counter("archive_lost", "Versions missing from the archive.")
        self.decision_log_lost = counter("decision_log_lost", "Decisions missing from the decision log.")
        self.decision_log_unarchived = counter(
            "decision_log_unarchived", "Lines of the decision log that name a version which the archive lacked."
        )
        self._permits = counters("permits", "Permits requested.", "outcome")
        self._bounds = counters("permit_bounds", "Permits granted, by what decided their interval.", "bound")
        self._pool_permits = counters("pool_permits", "Permits granted in the pools that the table names.", "pool")
        self.permit_signed = counting("permits_signed", "Permits granted with a signature.", "profile")
        self._permits_degraded = counter("permits_degraded", "Permits granted or denied without the store.")
        self.store_clock_steps = counter(
            "store_clock_steps", "Permit queues moved because the clock of the store was set."
        )
        self._permit_wait = histogram(
            "permit_wait_seconds", "Time from the grant of a permit to its slot.", _WAIT_SECONDS
        )
        self._outcomes = counters("outcomes", "Outcomes of permits that callers reported.", "outcome")
        self._page_seconds = histogram("page_seconds", "Duration of page fetches, as callers reported.", _FETCH_SECONDS)
        self._backoffs = counter("backoffs", "Backoffs started or extended by a 429 or 503 of a page.")
        self.backoffs_given_back = counter(
            "backoffs_given_back", "Backoffs that a process knew and the store did not, given back to it."
        )
        self.store_failed = counting("store_failures", "Failed calls to the store.", "kind", known=_STORE_FAILURES)
        self.store_seconds = histogram("store_seconds", "Duration of calls to the store.", _STORE_SECONDS)
        self._key_requests = counters("key_requests", "Requests authenticated by an API key.", "key", "status")
        self._key_refusals = counters("key_quota_exceeded", "Requests beyond the quota of an API key.", "key")
        self._lag = histogram(
            "event_loop_lag_seconds", "Delay of a timer of the event loop, sampled ten times a second.", _LAG_SECONDS
        )
        build = gauge("build_info", "livemax", "The running version.", "version", "revision")
        build.labels(__version__, REVISION).set(1)
        self._bytes = gauge("memory_bytes", "livesum", "Bytes in the in-process caches.", "cache")
        self._entries = gauge("memory_entries", "livesum", "Entries of the in-process caches.", "cache")
        self._overrides = gauge(
            "overrides", "livemin", "Overrides that this process knows, expired ones included.", "source"
        )
        described = get_type_hints(ServiceState, include_extras=True).items()
        own = {name: hint.__metadata__ for name, hint in described if get_origin(hint) is Annotated}
        self._gauges = {name: gauge(name, *metadata) for name, metadata in own.items()}
        self._purposes_pending: collections.Counter[tuple[tuple[tuple[str, str], ...], bool]] = collections.Counter()
        self._keys: set[str] = set()

    def answered(self, route: str, method: str, status: int, *, deferred: bool = False) -> None:
        """Count a response; `route` is the matched path template, or "" for none."""
        counted = DEFERRED if deferred else _class_of(status)
        self._requests(route, method if method in _METHODS else "other", counted).inc()

    def decided(
        self, verdict: str, reason: str, source: str, dialect: str, seconds: float | None = None, times: int = 1
    ) -> None:
        """Count a decision, given `times` times; `seconds` is its latency, None for an item of a batch."""
        self._decisions(verdict, reason, source, dialect).inc(times)
        if seconds is not None:
            self._decision_seconds(source).observe(seconds)

    def helper_called(self, outcome: str, seconds: float) -> None:
        """Count a call to a helper process, and the CPU seconds that it took."""
        self._helper_calls(outcome).inc()
        self._helper_seconds.inc(seconds)

    def key_used(self, key: str, status: int) -> None:
        """Count a request that the API key with this id authenticated, by the status of its response."""
        self._key_requests(self._counted(key), _class_of(status)).inc()

    def quota_exceeded(self, key: str) -> None:
        """Count a request that exceeded the quota of the API key with this id."""
        self.rejected("quota-exceeded")
        self._key_refusals(self._counted(key)).inc()

    def _counted(self, key: str) -> str:
        if key not in self._keys:
            if len(self._keys) >= KEYS_COUNTED:
                return OTHER_KEYS
            self._keys.add(key)
        return key

    def shadowed(self, action: str, *, differs: bool) -> None:
        """Count a decision that a shadow override applies to; `differs`: it would have changed the verdict."""
        self._shadowed(action, "true" if differs else "false").inc()

    def purposes_judged(self, states: tuple[tuple[str, str], ...], *, enforced: bool) -> None:
        """Count the purposes of a question, each with what the site says about it.

        They are added to the counter with the next update of the gauges: an answer has up to three of them.
        """
        self._purposes_pending[states, enforced] += 1

    def _flush_purposes(self) -> None:
        pending, self._purposes_pending = self._purposes_pending, collections.Counter()
        for (states, enforced), times in pending.items():
            for purpose, state in states:
                self._purposes(purpose, state, "true" if enforced else "false").inc(times)

    def fetched(self, found: Access | NotModified, seconds: float) -> None:
        """Count a completed fetch and its duration."""
        outcome, cause, status = labels(found)
        self._fetches(outcome, cause, status).inc()
        self._fetch_seconds(outcome).observe(seconds)

    def permit_granted(self, wait: float, bound: str, pool: str | None = None, *, degraded: bool) -> None:
        """Count a permit whose slot begins in `wait` seconds, and whose interval `bound` decided.

        `pool` is one that the operator has named.
        """
        self._bounds(bound).inc()
        self._permits("granted").inc()
        if pool is not None:
            self._pool_permits(pool).inc()
        self._permit_wait.observe(wait)
        self._permits_degraded.inc(degraded)

    def permit_denied(self, outcome: str, *, degraded: bool = False) -> None:
        """Count a permit that was denied; `outcome` comes from a small fixed set."""
        self._permits(outcome).inc()
        self._permits_degraded.inc(degraded)

    def outcome(self, status: int | None, elapsed: float | None, *, released: bool, backoff: bool) -> None:
        """Count a reported outcome: the status and seconds of the page, or a slot that was released unused."""
        self._outcomes("released" if released else _class_of(status)).inc()
        self._backoffs.inc(backoff)
        if elapsed is not None:
            self._page_seconds.observe(elapsed)

    def update_gauges(self) -> None:
        """Set the gauges to the current state of this process, and add what was counted beside the counters."""
        self._flush_purposes()
        state = self._read_state()
        for name, gauge in self._gauges.items():
            gauge.set(getattr(state, name))
        for name, (size, entries) in state.memory.items():
            self._bytes.labels(name).set(size)
            self._entries.labels(name).set(entries)
        for source, count in state.overrides.items():
            self._overrides.labels(source).set(count)

    def text(self) -> bytes:
        """The exposition of all metrics, as CONTENT_TYPE."""
        self.update_gauges()
        return self._exposition.text()

    @asynccontextmanager
    async def updating(
        self,
        probe: Callable[[], Awaitable[None]],
        *,
        note_lag: Callable[[float], None] = lambda _seconds: None,
        every: float = UPDATE_INTERVAL,
    ) -> AsyncIterator[None]:
        """Within the block, call `probe` and update the gauges every `every` seconds, and sample event loop lag.

        `note_lag` is called with each sample.

        The probe notices failures that no request has met. A scrape of another worker shows the gauges as last updated.
        """

        async def probe_and_update() -> None:
            await probe()
            self.update_gauges()

        def observe(lag: float) -> None:
            self._lag.observe(lag)
            note_lag(lag)

        self._exposition.forget_dead_workers()
        self.update_gauges()
        updating = periodically(BackgroundTask.GAUGES, probe_and_update, every)
        sampling = repeatedly(BackgroundTask.EVENT_LOOP_LAG, partial(sample_lag, observe))
        try:
            async with updating, sampling:
                yield
        finally:
            self._flush_purposes()
            self._exposition.forget_this_worker()


def _class_of(status: int | None) -> str:
    return "" if status is None else f"{status // 100}xx"


def labels(found: Access | NotModified) -> tuple[str, str, str]:
    """Outcome, cause and status class of a fetch; "" for each that is absent."""
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
