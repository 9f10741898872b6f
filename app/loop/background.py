"""Work that runs beside the requests: it ends with a block of code, and survives what one of its records raises."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from enum import StrEnum
from functools import partial
from threading import Thread
from types import TracebackType
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
E = TypeVar("E", bound=BaseException)

Errors: TypeAlias = type[Exception] | tuple[type[Exception], ...]

CANCEL_AGAIN = 0.1
"""Seconds after which a task that has not ended is cancelled once more."""

PAUSE_AFTER_FAILURE = 1.0
"""Seconds before a step that failed unexpectedly is tried again, so that one that always fails is no busy loop."""

TASK = "background_task"
"""The key of the BackgroundTask in the context that an event loop's exception handler is called with."""


class BackgroundTask(StrEnum):
    """The background tasks of the service, as asyncio's name of the task and the label of the metric."""

    ARCHIVE = "archive"
    CHANGE_LOOKS = "change-looks"
    COLLECTIONS = "collections"
    DECISION_LOG = "decision-log"
    DELIVERIES = "deliveries"
    EDGE_FACTS = "edge-facts"
    EVENT_LOOP_LAG = "event-loop-lag"
    GAUGES = "gauges"
    HELPERS = "helpers"
    HISTORY = "history"
    INVALIDATIONS = "invalidations"
    LEASES = "leases"
    LOOKUPS = "lookups"
    MEMBERSHIP = "membership"
    ORIGIN_LISTS = "origin-lists"
    OVERRIDES = "overrides"
    PERMIT_KEYS = "permit-keys"
    PUBLISHED_KEYS = "published-keys"
    PUBLISHER = "publisher"
    QUOTAS = "quotas"
    RECOVERY = "recovery"
    REFRESHES = "refreshes"
    RELOADS = "reloads"
    STORE_CONNECTIONS = "store-connections"
    STORE_SEARCHES = "store-searches"
    VISITS = "visits"


async def in_daemon_thread(name: str, work: Callable[[], T]) -> T:
    """Call `work` in a thread that does not keep the process: a write may never return, and the process must end."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # from now on it cannot be cancelled with the task that awaits it

    def call() -> None:
        try:
            done.set_result(work())
        except Exception as error:  # noqa: BLE001 - raised where the call is awaited
            done.set_exception(error)

    Thread(target=call, name=name, daemon=True).start()
    return await asyncio.wrap_future(done)


def report(task: BackgroundTask, record: object, error: BaseException) -> None:
    """Report what a background task did not expect to the exception handler of the event loop.

    `record` is what the task was about, "" if nothing in particular. The handler of the service logs and counts it;
    that of asyncio logs it.
    """
    message = f"the background task {task} failed on {record}" if record else f"the background task {task} failed"
    asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error, TASK: task})


class Surviving:
    """A block that raises nothing but cancellation: other exceptions are reported. `failed`: whether there was one.

    A task that works for all origins has one around each of its records. Errors in `unless` are expected, and raised.
    """

    __slots__ = ("_record", "_task", "_unless", "failed")

    def __init__(self, task: BackgroundTask, record: object = "", *, unless: Errors = ()) -> None:
        self._task = task
        self._record = record
        self._unless = unless
        self.failed = False

    def __enter__(self) -> "Surviving":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception) or isinstance(error, self._unless):
            return False
        self.failed = True
        report(self._task, self._record, error)
        return True


async def cancel_and_wait(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel the tasks and wait until all have ended, whatever their results.

    Cancelling once is not enough: `asyncio.wait_for`, through which the Redis client sends, drops a cancellation that
    comes at the moment its work is done (Python before 3.12), and the task goes on as if it had not been cancelled.
    """
    pending = {task for task in tasks if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=CANCEL_AGAIN)


@asynccontextmanager
async def background(task: BackgroundTask, work: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
    """Run `work` while the block lasts; if it fails, that is reported, and the block goes on."""
    running = asyncio.create_task(_survive(task, work), name=task)
    try:
        yield
    finally:
        await cancel_and_wait([running])


def repeatedly(task: BackgroundTask, step: Callable[[], Awaitable[object]]) -> AbstractAsyncContextManager[None]:
    """Call `step` again and again while the block lasts; one that fails is reported, and followed by a pause."""
    return background(task, partial(_repeat, task, step))


@asynccontextmanager
async def periodically(
    task: BackgroundTask,
    work: Callable[[], Awaitable[object]],
    every: float,
    *,
    ignoring: Errors = (),
    at_once: bool = False,
) -> AsyncIterator[None]:
    """Call `work` every `every` seconds while the block lasts, starting with a pause.

    Errors in `ignoring` are ignored, and others reported. `at_once`: call it before the block begins, too, which raises
    the others.
    """

    async def call() -> None:
        try:
            await work()
        except ignoring:
            return

    async def step() -> None:
        await asyncio.sleep(every)
        await call()

    if at_once:
        await call()
    async with repeatedly(task, step):
        yield


async def in_batches(
    task: BackgroundTask,
    records: Sequence[T],
    size: int,
    work: Callable[[Sequence[T]], Awaitable[object]],
    *,
    unless: Errors,
) -> Sequence[T]:
    """Call `work` with batches of at most `size` records; returns the records at which it failed unexpectedly.

    `work` is called again with each record alone of a batch that fails, so that one record costs no other. Errors in
    `unless` are raised, and end the work.
    """
    failed: list[T] = []
    for start in range(0, len(records), size):
        batch = records[start : start + size]
        with Surviving(task, f"one of {len(batch)} records", unless=unless) as survival:
            await work(batch)
        for record in batch if survival.failed else ():
            with Surviving(task, record, unless=unless) as survival:
                await work([record])
            if survival.failed:
                failed.append(record)
    return failed


async def _survive(task: BackgroundTask, work: Callable[[], Awaitable[object]]) -> None:
    with Surviving(task):
        await work()


async def _repeat(task: BackgroundTask, step: Callable[[], Awaitable[object]]) -> None:
    while True:
        with Surviving(task) as survival:
            await step()
        if survival.failed:
            await asyncio.sleep(PAUSE_AFTER_FAILURE)


def as_value(error: E) -> E:
    """The error without its traceback and without the errors that led to it.

    They refer to the frames that the error passed, and so to their variables, such as parsed files. A frame that keeps
    the error would be in a cycle with it, which only a full garbage collection frees.
    """
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return error
