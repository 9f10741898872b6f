"""Decide questions, reserve a slot for each one that is allowed, and take reports of the outcomes."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias, assert_never

from app.decisions.answer_all import answer_all, failure
from app.decisions.decider import Decider
from app.decisions.evaluate import Decision, Question
from app.edge.replica import EdgeFacts
from app.loop.work_turns import YieldBudget
from app.observability.metrics import Metrics
from app.pacing.fleet_secret import FleetSecret
from app.pacing.pacer import Grant, Pacer
from app.pacing.permit import SlotRef, sign, verify
from app.pacing.schedule import Bounds, pace_windows
from app.pacing.slots import PaceKey, Slot, SlotRequest, WaitTooLong
from app.store.guarded_client import StoreDown
from robots_core.origin import Origin, read_key

MAX_QUEUES = 16
"""Queues of slots that a batch reserves from at once."""

OVERLOADED = (429, 503)
"""Statuses of a page that make the whole fleet back off from its origin."""


Unsigned = Literal["no-slot", "no-key", "not-https", "ambiguous-host", "not-as-asked", "too-far", "key-revoked"]
"""Why a request is not signed."""


class Signing(NamedTuple):
    """What a caller who asked for a signature gets: the request's header fields and what they hold for, or why not."""

    signed: Mapping[str, object] | None
    unsigned: Unsigned | None


Sign: TypeAlias = Callable[[Slot], Signing]
"""Signs the request of a page for its slot."""

NO_SLOT = Signing(None, "no-slot")


class PermitRequest(NamedTuple):
    """A question, and the slot to reserve if it is allowed. `cost` is in documents, `max_wait` in seconds.

    `sign`: what signs the request of the page, None if that was not asked for.
    """

    question: Question
    caller: str
    cost: float
    max_wait: float
    sign: Sign | None = None


class PermitResult(NamedTuple):
    """The encoded decision, the pool and the grant if the verdict is allow, and the permit if a slot was reserved.

    `signing` is None if no signature was asked for.
    """

    answer: bytes
    pool: str | None = None
    grant: Grant | None = None
    permit: str | None = None
    signing: Signing | None = None


BatchResult: TypeAlias = PermitResult | Exception
"""The result of one request of a batch, or why there is none."""

Encode: TypeAlias = Callable[[Decision], bytes]
"""Encodes a decision, which refers to a parsed file and so is not kept until the slot is reserved."""


class _Allowed(NamedTuple):
    answer: bytes
    slot: SlotRequest
    sign: Sign | None


class Outcome(NamedTuple):
    """A caller's report on its slot: the page's status and time, or that the slot was not used (`released`).

    `retry_after` and `elapsed` are in seconds. `reporter` is None for an operator. `price` is what a 402 asked for
    `page`; "" for none.
    """

    status: int | None
    retry_after: float
    elapsed: float | None
    released: bool
    reporter: str | None
    price: str = ""
    page: str = ""


class Report(NamedTuple):
    """An outcome, and the slot that it is of."""

    slot: SlotRef
    outcome: Outcome


class Reported(NamedTuple):
    """The effect of an outcome. `backoff` is the seconds left of a backoff that it began or extended."""

    released: bool
    backoff: float | None
    degraded: bool


class Permits:
    """Permits from one decider and one pacer."""

    def __init__(
        self,
        decider: Decider,
        pacer: Pacer,
        pool_of: Callable[[Origin], str],
        bounds: Callable[[str, str], Bounds],
        secret: FleetSecret,
        metrics: Metrics,
        edge: EdgeFacts,
        on_backoff: Callable[[str, float], None] = lambda _origin, _seconds: None,
    ) -> None:
        """`pool_of` gives the pool of an origin, and `bounds` those of a host and an agent's token.

        `on_backoff` gets the key of an origin and the seconds.
        """
        self._decider = decider
        self._pacer = pacer
        self._pool_of = pool_of
        self._bounds = bounds
        self._secret = secret
        self._metrics = metrics
        self._edge = edge
        self._on_backoff = on_backoff

    async def request(self, request: PermitRequest, encode: Encode) -> PermitResult:
        """Decide the question, and reserve a slot if it is allowed. Raises Busy."""
        decided = self._decided(request, await self._decider.decide(request.question), encode)
        return decided if isinstance(decided, PermitResult) else await self._reserve(decided)

    async def request_batch(
        self, requests: Iterable[tuple[int, PermitRequest | Exception]], encode: Encode, budget: YieldBudget
    ) -> Mapping[int, BatchResult]:
        """Do as `request` for each request, and return the results under the same numbers.

        An exception in place of a request, which could not be read, is its result. All that runs for the requests
        shares the `budget`. Within a queue, the callers are served in rotation, each in the order of its
        requests.
        """
        results: dict[int, BatchResult] = {}
        asked: dict[int, PermitRequest] = {}
        allowed: dict[int, _Allowed] = {}

        def questions() -> Iterator[tuple[int, Question | Exception]]:
            for number, request in requests:
                if isinstance(request, PermitRequest):
                    asked[number] = request
                    yield number, request.question
                else:
                    yield number, request

        def take(number: int, result: Decision | Exception) -> None:
            decided = self._decided(asked[number], result, encode) if isinstance(result, Decision) else result
            if isinstance(decided, _Allowed):
                allowed[number] = decided
            else:
                results[number] = decided

        async def reserve(group: Sequence[int]) -> None:
            for number in _round_robin(group, lambda number: allowed[number].slot.caller):
                try:
                    results[number] = await self._reserve(allowed[number])
                except Exception as error:  # noqa: BLE001 - it is logged, and fails this request alone
                    results[number] = failure(error)
                if budget.is_over():
                    await budget.next()

        await answer_all(self._decider, questions(), take, budget)
        await _run_some(map(reserve, _grouped(sorted(allowed), lambda number: allowed[number].slot.key)), MAX_QUEUES)
        return results

    def verified(self, permit: str) -> SlotRef:
        """The slot that a permit names. Raises BadPermit."""
        return verify(permit, self._secret.accepted)

    async def report_batch(
        self, reports: Iterable[tuple[int, Report | Exception]], budget: YieldBudget
    ) -> Mapping[int, Reported | Exception]:
        """Do as `report` for each report, and return the results under the same numbers.

        An exception in place of a report, which could not be read, is its result.
        """
        results: dict[int, Reported | Exception] = {}

        async def done(number: int, report: Report | Exception) -> None:
            try:
                results[number] = report if isinstance(report, Exception) else await self.report(report)
            except Exception as error:  # noqa: BLE001 - it is logged, and fails this report alone
                results[number] = failure(error)
            if budget.is_over():
                await budget.next()

        await _run_some((done(number, report) for number, report in reports), MAX_QUEUES)
        return results

    async def report(self, report: Report) -> Reported:
        """Free the slot, back off from its origin, or record a refusal, by the outcome."""
        slot, outcome = report
        released = degraded = False
        if outcome.released:
            result = await self._pacer.release(slot.key, slot.name)
            released, degraded = bool(result.value), result.degraded
        backoff = None
        if outcome.status in OVERLOADED:
            result = await self._pacer.back_off(self._queue_of(slot), outcome.retry_after, outcome.reporter)
            backoff, degraded = result.value, degraded or result.degraded
            self._on_backoff(slot.origin, backoff)
        if (outcome.status, outcome.elapsed) != (None, None) and not outcome.released:
            self._pacer.note_page(self._queue_of(slot), slot, outcome.status, outcome.elapsed)
        if outcome.status is not None and not outcome.released:
            try:
                await self._edge.report(
                    slot.origin, slot.key.agent, outcome.status, slot.token, outcome.price, outcome.page
                )
            except StoreDown:
                degraded = True
        self._metrics.outcome(outcome.status, outcome.elapsed, released=outcome.released, backoff=backoff is not None)
        return Reported(released, backoff, degraded)

    def _decided(self, request: PermitRequest, decision: Decision, encode: Encode) -> "PermitResult | _Allowed":
        if decision.allowed:
            return _Allowed(encode(decision), self._slot_request(request, decision), request.sign)
        self._metrics.permit_denied(decision.verdict.permission)
        return PermitResult(encode(decision), signing=request.sign and NO_SLOT)

    async def _reserve(self, allowed: "_Allowed") -> PermitResult:
        request, sign_for = allowed.slot, allowed.sign
        pool, grant = request.key.pool, await self._pacer.reserve(request)
        match grant.result:
            case Slot(key=key, name=name, go_at=go_at, wait=wait, bound=bound) as slot:
                self._metrics.permit_granted(wait, bound, key.name, degraded=grant.degraded)
                permit = sign(SlotRef(request.origin, key, name, go_at), self._secret.current)
                return PermitResult(allowed.answer, pool, grant, permit, sign_for and sign_for(slot))
            case WaitTooLong(bound=bound):
                outcome = "budget_used_up" if bound == "budget" else "wait_too_long"
                self._metrics.permit_denied(outcome, degraded=grant.degraded)
                return PermitResult(allowed.answer, pool, grant, signing=sign_for and NO_SLOT)
            case unknown:
                assert_never(unknown)

    def _slot_request(self, request: PermitRequest, decision: Decision) -> SlotRequest:
        snapshot, terms = decision.cached.snapshot, decision.terms
        origin, token = request.question.target.origin, request.question.agent.token
        bounds = self._bounds(origin.host, token)
        windows = pace_windows(None if terms is None else terms.rates, decision.now, bounds, decision.delay)
        fetched_at = 0.0 if snapshot is None else snapshot.checked_at
        return SlotRequest(
            PaceKey.of(self._pool_of(origin), token),
            windows,
            request.caller,
            request.cost,
            request.max_wait,
            fetched_at,
            origin.key,
            bounds.cap,
            _least_budget(bounds.budget, decision),
        )

    def _queue_of(self, slot: SlotRef) -> PaceKey:
        """The queue that the slot's origin has now: the table may have changed since."""
        origin = read_key(slot.origin)
        return slot.key if origin is None else PaceKey(self._pool_of(origin), slot.key.agent)


def _least_budget(of_table: int, decision: Decision) -> int:
    """Documents a day: the smaller budget of the domain table and of the overrides; 0 if neither has one."""
    of_override = None if decision.overrides is None else decision.overrides.budget
    return of_override if of_override is not None and (not of_table or of_override < of_table) else of_table


def _grouped(numbers: Iterable[int], key: Callable[[int], Hashable]) -> Iterator[Sequence[int]]:
    groups: dict[Hashable, list[int]] = {}
    for number in numbers:
        groups.setdefault(key(number), []).append(number)
    return iter(groups.values())


def _round_robin(numbers: Sequence[int], caller: Callable[[int], str]) -> Iterator[int]:
    """The first number of every caller, then the second of every caller, and so on; in linear time."""
    queues: dict[str, deque[int]] = {}
    for number in numbers:
        queues.setdefault(caller(number), deque()).append(number)
    turns = deque(queues.values())
    while turns:
        queue = turns.popleft()
        yield queue.popleft()
        if queue:
            turns.append(queue)


async def _run_some(jobs: Iterator[Coroutine[object, object, None]], concurrency: int) -> None:
    async def worker() -> None:
        for job in jobs:  # shared: each worker takes the next job when it is free
            await job

    async with asyncio.TaskGroup() as workers:
        for _ in range(concurrency):
            workers.create_task(worker())
