"""Answer many questions: those whose file is in memory at once, the others in a task for each origin."""

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import Generic, NamedTuple, Protocol, Self, TypeAlias, TypeVar

from app.decisions.bundle_rows import NothingKnown
from app.decisions.cached_files import NoVersion
from app.decisions.decider import BatchMemo, Decider
from app.decisions.evaluate import CachedFile, Decision, Labels, Question
from app.decisions.shared_answers import Sharing
from app.loop.background import as_value, cancel_and_wait
from app.loop.work_turns import YieldBudget
from app.store.guarded_client import StoreDown
from robots_core.origin import Origin
from robots_core.robots.access import Busy

_log = logging.getLogger(__name__)


class OriginQuestion(Protocol):
    """A question about an origin's file, now or at the instant `as_of`; `max_age` and `wait` are as in Question."""

    @property
    def origin(self) -> Origin: ...
    @property
    def as_of(self) -> datetime | None: ...
    @property
    def max_age(self) -> float | None: ...
    @property
    def wait(self) -> float: ...
    def _replace(self, *, max_age: float | None = ..., wait: float = ...) -> Self: ...


Q = TypeVar("Q", bound=OriginQuestion)
R = TypeVar("R")

Take: TypeAlias = Callable[[int, R | Exception], None]
"""Takes the number of a question, and the result or why there is none.

It must not keep a Decision, which refers to its parsed file: it encodes what it needs of it.
"""

Past: TypeAlias = Callable[[Origin], AbstractAsyncContextManager[Callable[[Q], Awaitable[R]]]]
"""Within the block, answers questions about an origin's past; see Decider.past()."""


async def answer_all(
    decider: Decider,
    questions: Iterable[tuple[int, Question | Exception | None]],
    take: Take[Decision],
    budget: YieldBudget,
    sharing: Sharing | None = None,
) -> None:
    """Decide the questions, each with its number, and pass each result to `take` as it comes.

    An exception in place of a question, which could not be read, is its result. All waits count from the start. All
    that runs for the questions shares the `budget`. With `sharing`, an answer that was made for another question is not
    made again, and None is in place of a question that it has answered.
    """
    begun = time.monotonic()
    memo = decider.memo()
    past: list[tuple[int, Question]] = []
    answering = Answering(decider, take, budget, sharing)
    try:
        for number, question in questions:
            if question is None:
                pass
            elif not isinstance(question, Question):
                take(number, question)
            elif question.as_of is None:
                answering.ask(number, question, begun, memo)
            else:
                past.append((number, question))
            if budget.is_over():
                answering.count()
                await budget.next()
                memo = decider.memo()
        answering.count()
        for number, question in past:  # together, so that each history is read once
            answering.ask(number, question, begun)
        await answering.wait()
    finally:
        await answering.aclose()


class OriginTasks(Generic[Q, R]):
    """Answers questions as they come, and passes each result to `take` with the question's number.

    The questions about an origin are answered in their order by a task of its own, so that none waits for an origin
    that does not answer; the fetch queue bounds what runs at once. A question that fails, whatever the reason, fails
    alone.
    """

    def __init__(
        self, answer: Callable[[Q], Awaitable[R]], past: Past[Q, R], take: Take[R], budget: YieldBudget
    ) -> None:
        """`answer` answers a question about now, and `past` those with an `as_of`."""
        self._answer = answer
        self._past = past
        self._take = take
        self._budget = budget
        self._waiting: dict[_Group, deque[_Asked[Q]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, number: int, question: Q, begun: float) -> None:
        """Answer a question later. Its `wait` counts from the instant `begun` (monotonic clock)."""
        if not (self._waiting and self._is_put_off(number, question, begun)):
            self._start(_Asked(number, question, begun))

    def count(self) -> None:
        """Count what was answered at once since the last call."""

    async def wait(self) -> None:
        """Wait until all questions are answered."""
        while self._tasks:
            done, _ = await asyncio.wait(self._tasks)
            for task in done:
                task.result()

    async def aclose(self) -> None:
        """Cancel what is not answered yet."""
        self.count()
        await cancel_and_wait(self._tasks)

    def _is_put_off(self, number: int, question: Q, begun: float) -> bool:
        """Leave a question to the task of its origin, if there is one."""
        waiting = self._waiting.get(_Group.of(question))
        if waiting is None:
            return False
        waiting.append(_Asked(number, question, begun))
        return True

    def _start(self, asked: "_Asked[Q]") -> None:
        group = _Group.of(asked.question)
        waiting = self._waiting[group] = deque([asked])
        task = asyncio.create_task(self._decide(group, waiting))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _decide(self, group: "_Group", waiting: deque["_Asked[Q]"]) -> None:
        while waiting:
            await (self._decide_past(group.origin, waiting) if group.is_past else self._decide_next(waiting))
            if waiting and self._budget.is_over():
                await self._budget.next()
        del self._waiting[group]

    async def _decide_next(self, waiting: deque["_Asked[Q]"]) -> None:
        number, question, begun = waiting.popleft()
        await self._settle(number, self._answer(after_waiting(question, begun)))

    async def _decide_past(self, origin: Origin, waiting: deque["_Asked[Q]"]) -> None:
        """Answer all that waits, by time, so that the history is read once and each version is parsed once."""
        asked = deque(sorted(waiting, key=attrgetter("question.as_of")))
        waiting.clear()
        try:
            async with self._past(origin) as decide:
                while asked:
                    if self._budget.is_over():
                        await self._budget.next()
                    number, question, _ = asked.popleft()
                    await self._settle(number, decide(question))
        except Exception as error:  # noqa: BLE001 - the history cannot be read; it fails these questions alone
            result = failure(error)
            for number, _, _ in asked:
                self._take(number, result)

    async def _settle(self, number: int, deciding: Awaitable[R]) -> None:
        try:
            self._take(number, await deciding)
        except Exception as error:  # noqa: BLE001 - it is logged, and fails this question alone
            self._take(number, failure(error))


class Answering(OriginTasks[Question, Decision]):
    """Decides questions as they come: at once where memory has a fresh file, the others by the tasks of OriginTasks."""

    def __init__(
        self, decider: Decider, take: Take[Decision], budget: YieldBudget, sharing: Sharing | None = None
    ) -> None:
        super().__init__(partial(decider.decide, begun=True), decider.past, take, budget)
        self._decider = decider
        self._sharing = sharing
        self._counts = Counter[Labels]() if sharing is None else sharing.counts

    def ask(self, number: int, question: Question, begun: float, memo: BatchMemo | None = None) -> None:
        """Decide a question, now or later. Its `wait` counts from the instant `begun` (monotonic clock).

        It shares the `memo` with the questions that are asked before another task runs.
        """
        if self._waiting and self._is_put_off(number, question, begun):
            return
        decider, sharing = self._decider, self._sharing
        memo = memo or decider.memo()
        try:
            file = None
            if question.as_of is None:
                file = decider.files.get_if_fresh(question, memo.now, memo.files)
            if file is None:
                self._start(_Asked(number, question, begun))
                return
            answers = None
            if sharing is not None and memo.shares and file.shared is not None:
                answers = file.shared.of(question, sharing.form)
            if sharing is None or answers is None:
                self._decide_at_once(number, question, file, memo)
                return
            sharing.learn(number, answers)
            shared = answers.find(question.target.path)
            if shared is None:
                answers.add(self._decide_at_once(number, question, file, memo), sharing.results[number])
                return
            decider.note_shared(answers.origin, 1)
            self._counts[shared.labels] += 1
            sharing.results[number] = shared.answer
        except Exception as error:  # noqa: BLE001 - it is logged, and fails this question alone
            self._take(number, failure(error))

    def _decide_at_once(self, number: int, question: Question, file: CachedFile, memo: BatchMemo) -> Decision:
        decision = memo.decide(question, file)
        self._counts[self._decider.note(decision)] += 1
        self._take(number, decision)
        return decision

    def count(self) -> None:
        """Count the decisions given at once since the last call, and forget what was learnt of their files."""
        for origin, times in () if self._sharing is None else self._sharing.forget():
            self._decider.note_shared(origin, times)
        self._decider.count(self._counts)
        self._counts.clear()


class _Asked(NamedTuple, Generic[Q]):
    number: int
    question: Q
    begun: float


class _Group(NamedTuple):
    """What a task decides: the questions about an origin's file as it is now, or as it was."""

    origin: Origin
    is_past: bool

    @classmethod
    def of(cls, question: OriginQuestion) -> "_Group":
        return cls(question.origin, question.as_of is not None)


def after_waiting(question: Q, begun: float) -> Q:
    """A question of the instant `begun` (monotonic clock), with the time that has passed since then.

    Its `wait` shrinks by that time and its `max_age` grows by it, so every copy fetched since is fresh enough. A batch
    that wants a fresh copy for every item fetches each file once, not once per item.
    """
    since = time.monotonic() - begun
    max_age = None if question.max_age is None else question.max_age + since
    return question._replace(wait=max(0.0, question.wait - since), max_age=max_age)


def failure(error: Exception) -> Exception:
    """The error as the result of one question. One that is not expected is logged with its traceback."""
    if not isinstance(error, Busy | NoVersion | NothingKnown | StoreDown):
        _log.error("a question of many failed", exc_info=error)
    return as_value(error)
