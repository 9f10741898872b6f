"""Holds back requests of crawlee's queue that wait for their origins, so that they keep no place in the crawler."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from crawlee import Request
from crawlee.errors import ContextPipelineInterruptedError
from crawlee.request_loaders import RequestManager
from crawlee.storage_clients.models import ProcessedRequest

from robots_decisions.origin_queue import OriginQueue
from robots_decisions.permits import BUSY, RetryLater
from robots_decisions.question import origin_key

AT_ONCE: Final = 100
"""Requests of one origin that ask together while its interval is not known."""

MOST_HELD: Final = 10_000
"""Requests that are held back: beyond these, none is read from crawlee's queue."""

HOLD: Final = 240.0
"""Seconds after which a held request goes back to crawlee's queue: with Redis and SQL, another process takes it over
after 300."""

READ_AT_ONCE: Final = 100
"""Requests that one call of crawlee reads while all of them have to wait."""

WAITS_FOR: Final = "robots_waits_for"
"""The name under which a request has the URL that it was redirected to and goes on at, in its user data."""


@dataclass(slots=True, eq=False)
class _Held:
    """A request that waits in the line of `origin`, since an instant of the monotonic clock."""

    request: Request
    origin: str
    since: float


class _Line(OriginQueue[_Held]):
    """The line of an origin."""

    def __init__(self) -> None:
        self.held: deque[_Held] = deque()
        super().__init__(AT_ONCE, self.held)
        self.refusal: RetryLater | None = None  # after which its requests are given up

    def deferred(self, now: float, answer: RetryLater, give_up_after: float) -> None:
        """Note a verdict that is deferred, or a service that is busy, which says nothing about the origin."""
        if answer.reason == BUSY:
            self.forget_trouble()
            self.verdict_unknown(now, answer.seconds, math.inf)
        elif self.verdict_unknown(now, answer.seconds, give_up_after):
            self.refusal = answer

    def may_call(self, now: float) -> bool:
        """Whether a request may come: to ask, or to fail."""
        return self.free_slots(now) > 0 or now < self.given_up_until


class HeldRequests(RequestManager):
    """A request manager over crawlee's own, which gives out a request when its origin may be asked.

    A request that is held stays in progress in crawlee's queue, so that the next run has it if this process is killed.
    """

    def __init__(self) -> None:
        self._inner: RequestManager | None = None
        self._queues: dict[str, _Line] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._held: dict[str, _Held] = {}  # by unique key, the oldest first
        self._called: deque[Request] = deque()
        self._asking: dict[str, str] = {}  # the origins by the unique keys of those who ask for a permit, or are called
        self._put_back: dict[str, str] = {}  # the origins they wait for, by unique key

    def over(self, inner: RequestManager) -> "HeldRequests":
        """This manager over crawlee's own."""
        self._inner = inner
        return self

    @property
    def inner(self) -> RequestManager:
        """Crawlee's own manager."""
        if self._inner is None:
            raise RuntimeError("The crawler has no requests yet.")
        return self._inner

    def line(self, url: str) -> _Line:
        """Who waits for the origin of a URL, and until when."""
        return self._queues.setdefault(origin_key(url), _Line())

    def waiting(self, url: str) -> int:
        """How many requests wait for the origin of a URL."""
        queue = self._queues.get(origin_key(url))
        return 0 if queue is None else len(queue.held)

    def answered(self, request: Request, url: str | None = None) -> None:
        """Note that a request has its answer, about this URL, so that others of its origin may ask."""
        origin = self._asking.pop(request.unique_key, None)
        if origin is not None:
            self._queues[origin].requesting -= 1
            self._call(origin)
        if url is not None and origin_key(url) != origin:
            self._call(origin_key(url))

    def put_back(self, request: Request, url: str, *, resume: bool) -> ContextPipelineInterruptedError:
        """The error after which crawlee gives up a request, which then waits in the line of this URL's origin.

        `resume`: it goes on at this URL, behind a redirect that it has followed.
        """
        self._put_back[request.unique_key] = origin_key(url)
        if resume:
            request.user_data[WAITS_FOR] = url
        return ContextPipelineInterruptedError(f"{request.url} waits for its slot.")

    async def give_back(self, *, before: float | None = None) -> None:
        """Give what has been held since `before` back to crawlee's queue, by default all that is held or called."""
        if before is None:
            for timer in self._timers.values():
                timer.cancel()
            self._timers.clear()
            while self._called:
                await self.reclaim_request(self._called.popleft())
        while self._held:
            held = next(iter(self._held.values()))
            if before is not None and held.since >= before:
                return
            del self._held[held.request.unique_key]
            self._queues[held.origin].held.remove(held)
            await self.inner.reclaim_request(held.request)

    async def fetch_next_request(self) -> Request | None:
        """The next request whose origin may be asked; the others that are read are held."""
        await self.give_back(before=time.monotonic() - HOLD)
        for _ in range(READ_AT_ONCE):
            if self._called:
                return self._called.popleft()
            if len(self._held) >= MOST_HELD:
                break
            request = await self.inner.fetch_next_request()
            if request is None:
                break
            self._hold(request, origin_key(str(request.user_data.get(WAITS_FOR) or request.url)))
        return self._called.popleft() if self._called else None

    async def is_empty(self) -> bool:
        """Whether no request can be given out now."""
        if self._called:
            return False
        return len(self._held) >= MOST_HELD or await self.inner.is_empty()

    async def is_finished(self) -> bool:
        """Whether all requests are handled."""
        return not self._called and not self._held and await self.inner.is_finished()

    async def mark_request_as_handled(self, request: Request) -> ProcessedRequest | None:
        """Mark a request as handled, unless it was put back."""
        self.answered(request)
        origin = self._put_back.pop(request.unique_key, None)
        if origin is None:
            return await self.inner.mark_request_as_handled(request)
        self._hold(request, origin, first=True)
        return None

    async def reclaim_request(self, request: Request, *, forefront: bool = False) -> ProcessedRequest | None:
        """Give a request back to crawlee's queue."""
        self.answered(request)
        self._put_back.pop(request.unique_key, None)
        return await self.inner.reclaim_request(request, forefront=forefront)

    async def add_request(self, request: str | Request, *, forefront: bool = False) -> ProcessedRequest | None:
        """Add a request to crawlee's queue."""
        return await self.inner.add_request(request, forefront=forefront)

    async def add_requests(self, requests: Sequence[str | Request], **how: Any) -> None:
        """Add requests to crawlee's queue."""
        await self.inner.add_requests(requests, **how)

    async def get_handled_count(self) -> int:
        """How many requests of crawlee's queue are handled."""
        return await self.inner.get_handled_count()

    async def get_total_count(self) -> int:
        """How many requests crawlee's queue has had."""
        return await self.inner.get_total_count()

    async def purge(self) -> None:
        """Empty the queue between two runs of a crawler, which spares those that have a name."""
        await self.give_back()
        if getattr(self.inner, "name", None) is None:
            await self.inner.purge()

    async def drop(self) -> None:
        """Remove crawlee's queue."""
        await self.give_back()
        await self.inner.drop()

    def _hold(self, request: Request, origin: str, *, first: bool = False) -> None:
        queue = self._queues.setdefault(origin, _Line())
        held = self._held[request.unique_key] = _Held(request, origin, time.monotonic())
        if first:
            queue.held.appendleft(held)
        else:
            queue.held.append(held)
        self._call(origin)

    def _call(self, origin: str) -> None:
        """Call as many requests of an origin as may ask now, and set a timer for the others."""
        queue, now = self._queues.get(origin), time.monotonic()
        if queue is None:
            return
        timer = self._timers.pop(origin, None)
        if timer is not None:
            timer.cancel()
        while queue.held and queue.may_call(now):
            held = queue.held.popleft()
            del self._held[held.request.unique_key]
            self._asking[held.request.unique_key] = origin
            queue.requesting += 1
            self._called.append(held.request)
        if queue.opens_at > now:
            # Also without requests: the line is what says that the origin is not to be asked.
            self._timers[origin] = asyncio.get_running_loop().call_later(queue.opens_at - now, self._call, origin)
        elif queue.is_idle():
            del self._queues[origin]
