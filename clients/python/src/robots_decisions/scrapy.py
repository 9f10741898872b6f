"""A downloader middleware of Scrapy that requests a permit before every download and keeps to its rate.

ROBOTSTXT_OBEY = False
DOWNLOAD_DELAY = 0
DOWNLOADER_MIDDLEWARES = {"robots_decisions.scrapy.PermitMiddleware": 840}
ROBOTS_DECISIONS_URL = "http://127.0.0.1:8080"
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Collection, Iterator, MutableMapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, cast
from weakref import WeakKeyDictionary

from scrapy import Request, Spider, signals
from scrapy.exceptions import DontCloseSpider, IgnoreRequest
from scrapy.http import Response
from scrapy.squeues import PickleFifoDiskQueue
from scrapy.utils.job import job_dir

from robots_decisions import errors
from robots_decisions._async.permit_client import AsyncPermitClient
from robots_decisions._async.service import AsyncService
from robots_decisions._compat import unexpected
from robots_decisions._default_http import default_async_http
from robots_decisions.origin_queue import OriginQueue, Waiting
from robots_decisions.permits import (
    PACE,
    PRICE,
    VERSION,
    Answer,
    Denied,
    Granted,
    InvalidQuestion,
    NoAnswer,
    RetryLater,
    Slot,
)
from robots_decisions.question import Names, checked_seconds, origin_key
from robots_decisions.signatures import sign_request

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

MAX_WAIT = 5.0
"""ROBOTS_DECISIONS_MAX_WAIT: seconds that a request may wait for its slot in the downloader, where it occupies one of
CONCURRENT_REQUESTS. Longer waits happen outside the downloader."""

GIVE_UP_AFTER = 3600.0
"""ROBOTS_DECISIONS_GIVE_UP_AFTER: seconds that an origin may be deferred, or the service unavailable, before its
requests are dropped. Waiting for a slot does not count."""

TICK = 1.0
"""Seconds after which a queue with free slots is checked again."""

CALLED_PRIORITY = 1_000_000
"""How much sooner than others the scheduler sends a request whose slot is due: others may still come in thousands."""

STATS = "robots_decisions"
"""The prefix of the stats."""

PERSIST = "SCHEDULER_PERSIST"
"""The setting of scrapy-redis by which its queue outlives the spider."""

MISCONFIGURED = "robots_decisions_misconfigured"
"""The reason of a spider that is closed because the service refuses the key, or is none."""

_MARK = "robots_decisions_waited"
_WAITING, _CALLED = "waiting", "called"
_STORED = "robots_decisions.waiting"
_ASYNCIO = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"

_log = logging.getLogger(__name__)

Key: TypeAlias = tuple[str, Names]
"""An origin, and the crawler that asks about it."""


class Disallowed(errors.Disallowed, IgnoreRequest):
    """The page may not be fetched: `reason`, and the `rule` of robots.txt and its `line` if one decided."""


class NotUnderstood(errors.NotUnderstood, IgnoreRequest):
    """The service rejects the URL, the agent or another member of the question."""


class Misconfigured(errors.Misconfigured, IgnoreRequest):
    """What answers refuses the key, or is not a robots.txt decision service: the message says what to set."""


class GivenUp(errors.PermitError, IgnoreRequest):
    """There was no verdict in time."""


_TYPES = errors.ErrorTypes(
    disallowed=Disallowed,
    not_understood=NotUnderstood,
    misconfigured=Misconfigured,
    settings=("ROBOTS_DECISIONS_KEY", "ROBOTS_DECISIONS_URL"),
)


class _InFlight(NamedTuple):
    """A request on its way to its origin: its queue, its slot, and its start."""

    queue: OriginQueue[Request]
    slot: Slot
    since: float


class _Mark(NamedTuple):
    """A request that is put aside: whether it waits, and goes first; its own `dont_filter` and `priority`; its call.

    In the meta it is a plain tuple, which every serializer of a queue knows, and comes back as a list from some.
    """

    state: str
    first: bool
    dont_filter: bool
    priority: int = 0
    call: int | None = None


class WaitingRequests(Protocol):
    """What the middleware asks of a scheduler with which requests wait."""

    def __len__(self) -> int: ...

    def ready(self, key: Key) -> None: ...

    def put_aside(self, request: Request, copy: Request) -> None: ...

    def waiting(self, key: Key) -> Waiting[Request]: ...


class PermitMiddleware:
    """Delays each request until its permitted slot; the settings are above.

    A request for a page that may not be fetched is dropped (Disallowed, an IgnoreRequest). A request that must wait for
    longer than ROBOTS_DECISIONS_MAX_WAIT leaves the downloader: meanwhile it does not delay other origins, and the
    spider stays open. It waits in the scheduler if that is PermitScheduler. With another one it waits in memory, comes
    back through the scheduler. If the spider closes, it goes back to the queue with SCHEDULER_PERSIST of scrapy-redis,
    or is stored for the next run if there is a JOBDIR. While the service is silent, requests wait, unless
    ROBOTS_DECISIONS_UNREACHABLE is "allow": then they are sent without a permit, at least a second apart for each host.
    If the service refuses the key, or is none, the spider is closed. The log says once for each origin, and for each
    change, why requests wait. Requests with dont_obey_robotstxt in their meta need no permit, as with Scrapy's own
    middleware.

    Place it between RetryMiddleware (550), which would hide a 503 from it, and DownloaderStats (850). Scrapy must use
    its asyncio reactor. Raises ValueError for invalid settings, which ends the crawl before it starts.
    """

    def __init__(self, crawler: "Crawler") -> None:
        settings = crawler.settings
        url = settings.get("ROBOTS_DECISIONS_URL")
        if not url:
            raise ValueError("ROBOTS_DECISIONS_URL is not set. Set it to the URL of the service.")
        reactor = settings.get("TWISTED_REACTOR")
        if settings.getbool("TWISTED_REACTOR_ENABLED", True) and reactor != _ASYNCIO:
            raise ValueError(f"TWISTED_REACTOR={reactor!r} is not supported; set it to {_ASYNCIO!r}.")
        unreachable = settings.get("ROBOTS_DECISIONS_UNREACHABLE", "wait")
        if unreachable not in {"wait", "allow"}:
            raise ValueError(f"ROBOTS_DECISIONS_UNREACHABLE={unreachable!r} is not valid; use 'wait' or 'allow'.")
        self._crawler = crawler
        self._agent: Names | None = settings.get("ROBOTS_DECISIONS_AGENT") or settings.get("ROBOTSTXT_USER_AGENT")
        self._open = unreachable == "allow"
        self._max_wait = _seconds("ROBOTS_DECISIONS_MAX_WAIT", settings.get("ROBOTS_DECISIONS_MAX_WAIT", MAX_WAIT))
        self._give_up_after = _seconds(
            "ROBOTS_DECISIONS_GIVE_UP_AFTER", settings.get("ROBOTS_DECISIONS_GIVE_UP_AFTER", GIVE_UP_AFTER)
        )
        self._concurrency = max(1, settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN"))
        max_age = settings.get("ROBOTS_DECISIONS_MAX_AGE")
        options = errors.Options(
            agent=self._agent,
            purpose=settings.getlist("ROBOTS_DECISIONS_PURPOSE") or None,
            enforce=settings.getbool("ROBOTS_DECISIONS_ENFORCE"),
            dialect=settings.get("ROBOTS_DECISIONS_DIALECT"),
            max_age=None if max_age is None else _seconds("ROBOTS_DECISIONS_MAX_AGE", max_age),
            caller=settings.get("ROBOTS_DECISIONS_CALLER"),
            max_wait=self._max_wait,
            unreachable=unreachable,
            sign=settings.getbool("ROBOTS_DECISIONS_SIGN"),
            errors=_TYPES,
        )
        for library in ("httpx", "httpx2"):  # they log every question at INFO, unless the project has chosen a level
            logger = logging.getLogger(library)
            logger.setLevel(logger.level or logging.WARNING)
        self._url = url
        self._members = options.members
        self._sign = options.sign
        self._service = AsyncPermitClient(
            AsyncService(url, settings.get("ROBOTS_DECISIONS_KEY"), default_async_http()), options
        )
        self._queues: dict[Key, OriginQueue[Request]] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._in_flight: WeakKeyDictionary[Request, _InFlight] = WeakKeyDictionary()
        self._scheduler: WaitingRequests | None = None
        self._waiting = 0
        self._handed_out = 0.0  # until then the scheduler has handed out all called requests, which go first
        self._closing: asyncio.Future[Any] | None = None

    @classmethod
    def from_crawler(cls, crawler: "Crawler") -> "PermitMiddleware":
        """Create the middleware; called by Scrapy."""
        middleware = cls(crawler)
        crawler.signals.connect(middleware.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(middleware.request_scheduled, signal=signals.request_scheduled)
        if hasattr(signals, "scheduler_empty"):  # since Scrapy 2.13
            crawler.signals.connect(middleware.scheduler_empty, signal=signals.scheduler_empty)
        crawler.signals.connect(middleware.spider_idle, signal=signals.spider_idle)
        crawler.signals.connect(middleware.spider_closed, signal=signals.spider_closed)
        return middleware

    async def process_request(self, request: Request, spider: Spider | None = None) -> Request | None:  # noqa: ARG002
        """Return None once the slot has come, or the marked request if it must wait outside the downloader."""
        key = self.key(request)
        if key is None:
            self._count("unasked", int(request.url.startswith("http")))
            return None
        mark = unmark(request)
        state = None if mark is None else mark.state
        if state is None:
            self._handed_out = _now()
        if state == _WAITING:
            # The scheduler was bypassed: a caller downloads the request directly, so it never waited outside.
            await asyncio.sleep(TICK)
        queue = self._queue(key)
        queue.arrived(None if mark is None else mark.call)
        if self._closing is not None:
            return self._put_aside(request, first=True, by_hand=state == _WAITING)
        if _now() < queue.given_up_until:
            raise self._given_up(request)
        # Waiting and called requests go first. But a request that has waited and is back takes a slot even if that was
        # meant for a called one, which may be unable to enter the downloader before this one leaves it.
        free = queue.free_slots(_now()) if state else 0 if queue.waiting else self._unclaimed_slots(queue)
        if not free:
            return self._put_aside(request, first=state is not None)
        queue.requesting += 1
        try:
            members = {**self._members, "agent": key[1]}
            answer = await self._service.answer(request.url, members, self._max_wait, waiting=len(queue.waiting))
            self._count("asked")
            send_now = await self._send_now(request, queue, answer)
        finally:
            queue.requesting -= 1
            self._call_waiting(key)
        return None if send_now else self._put_aside(request, first=True)

    async def process_response(self, request: Request, response: Response, spider: Spider | None = None) -> Response:  # noqa: ARG002
        """Return the response; report a 429 or 503, so that the whole fleet backs off, and a refused page."""
        in_flight = self._finished(request)
        if in_flight is None:
            return response
        if in_flight.slot.version is not None:
            request.meta[VERSION] = in_flight.slot.version
        if "cached" in response.flags:
            self._service.release(in_flight.slot)
        else:
            header = response.headers.get(b"Retry-After")
            retry_after = None if header is None else header.decode("latin-1")
            asked = response.headers.get(PRICE.encode())
            price = None if asked is None else (asked.decode("latin-1"), response.url)
            elapsed = _now() - in_flight.since
            backoff = await self._service.report(in_flight.slot, response.status, retry_after, elapsed, price)
            if backoff is not None:
                self._count("reported")
            if backoff:
                queue = in_flight.queue
                self._service.waits.backed_off(request.url, response.status, backoff, len(queue.waiting))
                queue.opens_at = max(queue.opens_at, _now() + backoff)
        self._call_waiting(self._key(request))
        return response

    async def process_exception(self, request: Request, exception: Exception, spider: Spider | None = None) -> None:  # noqa: ARG002
        """Release an unused slot. A failed connection has used its slot."""
        in_flight = self._finished(request)
        if in_flight is not None:
            if isinstance(exception, IgnoreRequest):
                self._service.release(in_flight.slot)
            self._call_waiting(self._key(request))

    def request_scheduled(self, request: Request) -> None:
        """Queue a marked request, or one of an origin for which others wait, here instead of in the scheduler."""
        mark = _mark_of(request)
        if mark is None and self._joins(request):
            mark = self._marked(request, first=False)
        if mark is None or mark.state != _WAITING:
            return
        key = self._key(request)
        queue = self._queue(key)
        if not isinstance(queue.waiting, deque):
            return
        if queue.waiting and request.headers == queue.waiting[-1].headers:
            request.headers = queue.waiting[-1].headers  # many wait, so what the other middlewares added is shared
        if mark.first:
            queue.waiting.appendleft(request)
        else:
            queue.waiting.append(request)
        self._waiting += 1
        self._call_waiting(key)
        raise IgnoreRequest("The request waits for its slot.")

    def scheduler_empty(self) -> None:
        """Note that no called request is left in the scheduler."""
        self._handed_out = _now()

    def scheduled_by(self, scheduler: "WaitingRequests") -> None:
        """Leave the requests that wait to a scheduler, which asks which of them to call."""
        self._scheduler = scheduler

    def key(self, request: Request) -> Key | None:
        """Whose slots the request needs; None if it needs no permit."""
        if not request.url.startswith(("http://", "https://")) or request.meta.get("dont_obey_robotstxt"):
            return None
        return self._key(request)

    def call_next(self, key: Key) -> Request | None:
        """Call the next request that waits; None if there is no free slot. Then the scheduler hears of the next one."""
        queue, now = self._queue(key), _now()
        if self._closing is not None or (now >= queue.given_up_until and not self._unclaimed_slots(queue)):
            return None
        request, number = queue.call(now)
        mark = _Mark(_CALLED, False, request.dont_filter, request.priority, number)
        request.meta[_MARK], request.dont_filter = tuple(mark), True
        return request

    def in_progress(self) -> Collection[Request]:
        """The requests whose responses the engine has not handled yet."""
        slot = self._slot()
        return () if slot is None else slot.inprogress

    def spider_opened(self, spider: Spider) -> None:  # noqa: ARG002
        """Resume the requests that waited when the last run of this job ended."""
        for request in _stored(self._crawler):
            self._crawl(request)

    def spider_idle(self) -> None:
        """Keep the spider open while requests wait."""
        if self._waiting and self._closing is None:
            raise DontCloseSpider

    async def spider_closed(self) -> None:
        """Keep the waiting requests: in a queue that outlives the spider, or for the next run of this job, if there is
        a JOBDIR."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        lines = [queue.waiting for queue in self._queues.values()]
        self._count("left_waiting", sum(map(len, lines)))
        try:
            waiting = [request for line in lines if isinstance(line, deque) for request in line]
            if self._crawler.settings.getbool(PERSIST):
                for request in waiting:
                    _call_mark(request)
                    self._slot().scheduler.enqueue_request(request)
            else:
                _store(self._crawler, waiting)
        finally:
            await self._service.aclose()

    async def _send_now(self, request: Request, queue: OriginQueue[Request], answer: Answer) -> bool:
        """Apply the answer: True to send the request now, False to wait. Raises IgnoreRequest to drop it."""
        now = _now()
        match answer:
            case Granted():
                queue.granted(now, answer.interval, self._max_wait)
                if len(queue.waiting) * answer.interval > self._max_wait:
                    self._service.waits.slow(request.url, answer.interval, len(queue.waiting))
                self._count("allowed")
                self._count("degraded", int(answer.degraded))
                self._sent(request, queue, answer)
                return True
            case Denied(reason=reason):
                queue.verdict_known()
                self._count("disallowed")
                self._count(f"disallowed/{reason}")
                error = _TYPES.error(request.url, self._url, answer)
                _log.debug("%s", error, extra={"spider": self._crawler.spider})
                raise error
            case InvalidQuestion():
                self._count("not_understood")
                raise _TYPES.error(request.url, self._url, answer)
            case RetryLater(seconds=seconds, reason=reason, interval=interval) if reason == PACE:
                queue.wait_for_slot(now, seconds, interval)
                self._service.waits.slow(request.url, interval or seconds, len(queue.waiting))
                return False
            case RetryLater(seconds=seconds):
                self._count("deferred")
                self._wait_for_verdict(request, queue, seconds)
                return False
            case NoAnswer(remedy=None):
                self._count("unreachable")
                if self._open:
                    return await self._send_openly(request, queue, answer)
                self._wait_for_verdict(request, queue, None)
                return False
            case NoAnswer():
                self._count("misconfigured")
                self._close(_TYPES.error(request.url, self._url, answer))
                return False
            case _:
                raise unexpected(answer)

    async def _send_openly(self, request: Request, queue: OriginQueue[Request], answer: NoAnswer) -> bool:
        """Wait for the slot of the client's own pace; whether it is within ROBOTS_DECISIONS_MAX_WAIT."""
        slot = self._service.own_slot(request.url, answer, self._max_wait)
        if not slot.taken:
            queue.wait_for_slot(_now(), slot.wait, slot.interval)
            return False
        queue.granted(_now(), slot.interval, self._max_wait)
        self._count("unasked")
        self._sent(request, queue, await self._service.wait_for(slot))
        return True

    def _sent(self, request: Request, queue: OriginQueue[Request], slot: Slot) -> None:
        if self._sign:
            sign_request(request.method, cast("MutableMapping[str, str]", request.headers), slot.signed)
        queue.in_flight.add(request)
        self._in_flight[request] = _InFlight(queue, slot, _now())

    def _wait_for_verdict(self, request: Request, queue: OriginQueue[Request], seconds: float | None) -> None:
        if not queue.verdict_unknown(_now(), seconds, self._give_up_after):
            return
        dropped, origin = len(queue.waiting) + 1, origin_key(request.url)
        _log.info(
            "%s gave no verdict on %s for %g s: its requests are dropped (%d requests)",
            self._url,
            origin,
            self._give_up_after,
            dropped,
            extra={"spider": self._crawler.spider},
        )
        # Each is dropped as it arrives, so that its errback is called.
        self._call(self._key(request), queue, len(queue.waiting))
        raise self._given_up(request)

    def _given_up(self, request: Request) -> GivenUp:
        self._count("given_up")
        return GivenUp(f"{self._url} gave no verdict on {request.url} for {self._give_up_after:g} s.")

    def _close(self, error: errors.PermitError) -> None:
        """Close the spider: what waits is kept for the next run of this job."""
        if self._closing is not None:
            return
        _log.error("%s", error, extra={"spider": self._crawler.spider})
        engine = self._crawler.engine
        if hasattr(engine, "close_spider_async"):
            self._closing = asyncio.ensure_future(engine.close_spider_async(reason=MISCONFIGURED))
        elif engine.spider is not None:  # before Scrapy 2.14
            closing = engine.close_spider(engine.spider, reason=MISCONFIGURED)
            self._closing = closing.asFuture(asyncio.get_running_loop())

    def _put_aside(self, request: Request, *, first: bool, by_hand: bool = False) -> Request:
        if by_hand:  # it would come back at once, for ever
            raise Misconfigured(f"{request.url} is not fetched: the spider closes.")
        copy = request.copy()
        self._marked(copy, first=first)
        if self._scheduler is not None:
            self._scheduler.put_aside(request, copy)
        return copy

    def _marked(self, request: Request, *, first: bool) -> _Mark:
        """Mark a request that waits. The duplicate filter has already seen it."""
        self._count("put_aside")
        mark = _Mark(_WAITING, first, request.dont_filter, request.priority)
        request.meta[_MARK], request.dont_filter = _shared(mark), True
        return mark

    def _joins(self, request: Request) -> bool:
        """Whether a new request waits with others of its origin: it would only pass through the downloader to do so.

        Raises IgnoreRequest if it is a duplicate, which the scheduler would find.
        """
        queue = self._queues.get(self._key(request))
        if queue is None or not queue.waiting or self._closing is not None or _now() < queue.given_up_until:
            return False
        if request.meta.get("dont_obey_robotstxt"):
            return False
        filtering = getattr(getattr(self._slot(), "scheduler", None), "df", None)
        if filtering is None:  # not a scheduler of Scrapy
            return False
        if not request.dont_filter and filtering.request_seen(request):
            filtering.log(request, self._crawler.spider)
            raise IgnoreRequest("The request is a duplicate.")
        return True

    def _call_waiting(self, key: Key) -> None:
        """Call as many requests as there are free slots, and set a timer for the others."""
        queue = self._queues.get(key)
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        if queue is None or self._closing is not None:
            return
        now = _now()
        self._call(key, queue, self._unclaimed_slots(queue))
        if queue.waiting or now < max(queue.opens_at, queue.given_up_until):
            delay = max(queue.opens_at - now, 0.0) or TICK
            self._timers[key] = asyncio.get_running_loop().call_later(delay, self._call_waiting, key)
        elif queue.is_idle():
            del self._queues[key]

    def _queue(self, key: Key) -> OriginQueue[Request]:
        queue = self._queues.get(key)
        if queue is None:
            waiting = None if self._scheduler is None else self._scheduler.waiting(key)
            queue = self._queues[key] = OriginQueue(self._concurrency, waiting)
        return queue

    def _slot(self) -> Any:
        """The engine's slot: the requests in progress, and the scheduler."""
        engine = self._crawler.engine
        return getattr(engine, "_slot", None) or getattr(engine, "slot", None)

    def _unclaimed_slots(self, queue: OriginQueue[Request]) -> int:
        return queue.unclaimed_slots(_now(), self._handed_out)

    def _call(self, key: Key, queue: OriginQueue[Request], limit: int) -> None:
        if self._scheduler is not None:
            slot = self._slot()
            if limit and queue.waiting and slot is not None:
                self._scheduler.ready(key)
                slot.nextcall.schedule()
            return
        for _ in range(min(limit, len(queue.waiting))):
            request, number = queue.call(_now())
            self._waiting -= 1
            request.headers = request.headers.copy()
            _call_mark(request, number)
            self._crawl(request)

    def _crawl(self, request: Request) -> None:
        engine = self._crawler.engine
        if engine.spider is not None:
            engine.crawl(request)

    def _finished(self, request: Request) -> _InFlight | None:
        in_flight = self._in_flight.pop(request, None)
        if in_flight is not None:
            in_flight.queue.in_flight.discard(request)
        return in_flight

    def _key(self, request: Request) -> Key:
        header = request.headers.get(b"User-Agent")
        user_agent = header.decode("latin-1") if header else self._crawler.settings.get("USER_AGENT")
        agent = self._agent or user_agent or "*"
        return origin_key(request.url), agent if isinstance(agent, str) else tuple(agent)

    def _count(self, name: str, number: int = 1) -> None:
        if number and self._crawler.stats is not None:
            self._crawler.stats.inc_value(f"{STATS}/{name}", number)


def _now() -> float:
    return time.monotonic()


def _seconds(name: str, value: Any) -> float:
    try:
        return checked_seconds(name, float(value))
    except (TypeError, ValueError):
        raise ValueError(f"{name}={value!r} is not a valid number of seconds.") from None


@cache
def _shared(mark: _Mark) -> tuple[Any, ...]:
    """The mark as it is in the meta of many requests; there are few."""
    return tuple(mark)


def _mark_of(request: Request) -> _Mark | None:
    """The mark of a request; in jobs of the client 0.1 it is a dict."""
    mark: Any = request.meta.get(_MARK)
    if mark is None:
        return None
    return _Mark(**mark) if isinstance(mark, dict) else _Mark(*mark)


def _call_mark(request: Request, number: int | None = None) -> None:
    """Mark a request that has waited as called."""
    mark = _mark_of(request)
    if mark is not None:
        request.meta[_MARK] = tuple(mark._replace(state=_CALLED, call=number))
        request.priority = mark.priority + CALLED_PRIORITY


def unmark(request: Request) -> _Mark | None:
    """Remove and return the mark of a request that waited outside the downloader."""
    mark = _mark_of(request)
    if mark is not None:
        del request.meta[_MARK]
        request.dont_filter, request.priority = mark.dont_filter, mark.priority
    return mark


def _queue(crawler: "Crawler") -> Any:
    """A disk queue of Scrapy in the job's directory; None without a job."""
    folder = job_dir(crawler.settings)
    kind: Any = PickleFifoDiskQueue
    return None if folder is None else kind.from_crawler(crawler, str(Path(folder, _STORED)))


def _store(crawler: "Crawler", requests: list[Request]) -> None:
    queue = _queue(crawler)
    if queue is None:
        return
    for request in requests:
        _call_mark(request)
        with suppress(ValueError):  # Scrapy's own queues also drop requests that cannot be serialized
            queue.push(request)
    queue.close()


def _stored(crawler: "Crawler") -> Iterator[Request]:
    queue = _queue(crawler)
    if queue is None:
        return
    while (request := queue.pop()) is not None:
        yield request
    queue.close()
