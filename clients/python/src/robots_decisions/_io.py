"""What the asynchronous client and the synchronous one do differently. Each name with Async has a twin without.

scripts/generate.py replaces one by the other. Everything else in `_sync` is the same code as in `_async`.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, TypeVar

from robots_decisions._compat import timeout as asyncio_timeout
from robots_decisions.permits import Fields

T = TypeVar("T")


@dataclass(frozen=True)
class AsyncReply:
    """A response whose body arrives in `pieces`; `fields` are its headers by lower-case name."""

    status: int
    fields: Fields
    pieces: AsyncIterator[bytes]


@dataclass(frozen=True)
class Reply:
    """A response whose body arrives in `pieces`; `fields` are its headers by lower-case name."""

    status: int
    fields: Fields
    pieces: Iterator[bytes]


class AsyncHttp(Protocol):
    """An HTTP library. Failures are raised as Unavailable. It uses no proxies of the environment."""

    def stream(
        self, method: str, url: str, headers: Fields, content: bytes | None, timeout: float
    ) -> AbstractAsyncContextManager[AsyncReply]:
        """Send a request. The connection, and each piece of the response, may take `timeout` seconds."""

    async def aclose(self) -> None:
        """Close the connections."""


class Http(Protocol):
    """An HTTP library. Failures are raised as Unavailable. It uses no proxies of the environment."""

    def stream(
        self, method: str, url: str, headers: Fields, content: bytes | None, timeout: float
    ) -> AbstractContextManager[Reply]:
        """Send a request. The connection, and each piece of the response, may take `timeout` seconds."""

    def close(self) -> None:
        """Close the connections."""


class AsyncDeadline:
    """Cancels what runs within it after so many seconds, and raises TimeoutError."""

    def __init__(self, seconds: float) -> None:
        self._timeout = asyncio_timeout(seconds)

    async def __aenter__(self) -> "AsyncDeadline":
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except asyncio.TimeoutError:  # another class before Python 3.11
            raise TimeoutError from error

    def check(self) -> None:
        """Do nothing: what runs too long is cancelled."""


class Deadline:
    """Raises TimeoutError in `check` after so many seconds. A step in between is not interrupted."""

    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + seconds

    def __enter__(self) -> "Deadline":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Do nothing: `check` raises."""

    def check(self) -> None:
        """Raise TimeoutError if the time is over."""
        if time.monotonic() > self._ends:
            raise TimeoutError


async def async_each(items: AsyncIterable[T] | Iterable[T]) -> AsyncIterator[T]:
    """The items of an iterable of either kind. Raise TypeError for a single text."""
    _check_several(items)
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


def each(items: Iterable[T]) -> Iterator[T]:
    """The items. Raise TypeError for a single text."""
    _check_several(items)
    return iter(items)


def _check_several(items: object) -> None:
    if isinstance(items, str):  # it is an iterable, of characters
        raise TypeError(f"{items[:100]!r} is one text: pass a list of them")


_NO_LOOP = "The asynchronous clients of robots_decisions need asyncio: under trio, use the synchronous ones in threads."


def check_asyncio() -> None:
    """Raise RuntimeError if no loop of asyncio runs, as under trio."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(_NO_LOOP) from None


class AsyncBackground:
    """Work that a cancelled caller cannot wait for, and work for later."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def start(self, work: Coroutine[Any, Any, object]) -> None:
        """Run the coroutine in a task."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def start_later(self, seconds: float, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run this in so many seconds, in place of what was to run later before."""
        self.stop_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, lambda: self.start(work()))

    def stop_timer(self) -> None:
        """Do not run what was to run later."""
        if self._timer is not None:
            self._timer.cancel()

    async def wait(self) -> None:
        """Wait for what was started."""
        if self._tasks:
            await asyncio.wait(self._tasks)


class Background:
    """The twin of AsyncBackground: here the work is done before it is passed, and what is for later is done in a
    thread."""

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def start(self, work: object) -> None:
        """Do nothing."""

    def start_later(self, seconds: float, work: Callable[[], object]) -> None:
        """Run this in so many seconds, in place of what was to run later before."""
        self.stop_timer()
        self._timer = threading.Timer(seconds, work)
        self._timer.daemon = True
        self._timer.start()

    def stop_timer(self) -> None:
        """Do not run what was to run later."""
        if self._timer is not None:
            self._timer.cancel()

    def wait(self) -> None:
        """Wait for what runs in the thread."""
        if self._timer is not None:
            self._timer.join()
