"""A downloader middleware of Scrapy that requests a permit before every download and keeps to its rate.

ROBOTSTXT_OBEY = False
DOWNLOAD_DELAY = 0
DOWNLOADER_MIDDLEWARES = {"app.clients.scrapy_middleware.PermitMiddleware": 840}
ROBOTS_DECISIONS_URL = "http://127.0.0.1:8080"
"""

import asyncio
import logging
import math
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, assert_never
from weakref import WeakKeyDictionary

from scrapy import Request, Spider, signals
from scrapy.exceptions import DontCloseSpider, IgnoreRequest
from scrapy.http import Response
from scrapy.squeues import PickleFifoDiskQueue
from scrapy.utils.job import job_dir

from app.clients.origin_queue import OriginQueue
from app.clients.permit_client import PermitClient
from app.clients.permits import (
    BACKOFF_STATUSES,
    PACE,
    Answer,
    Denied,
    Grant,
    InvalidQuestion,
    NoAnswer,
    RetryLater,
    origin_key,
)

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

MAX_WAIT = 5.0
"""ROBOTS_DECISIONS_MAX_WAIT: seconds that a request may wait for its slot in the downloader, where it occupies one of
CONCURRENT_REQUESTS. Longer waits happen outside the downloader."""

GIVE_UP_AFTER = 3600.0
"""ROBOTS_DECISIONS_GIVE_UP_AFTER: seconds that an origin may be deferred, or the service unavailable, before its
requests are dropped. Waiting for a slot does not count."""

MAX_WAITING = 10_000
"""ROBOTS_DECISIONS_MAX_WAITING: requests that wait outside the downloader. Further ones wait inside for room."""

LEAVES_WITHIN = 60.0
"""Seconds that such a request waits inside; one that never left would keep the spider from closing."""

TICK = 1.0
"""Seconds after which a queue with free slots is checked again."""

STATS = "robots_decisions"
"""The prefix of the stats."""

_MARK = "robots_decisions_waited"
_WAITING, _CALLED = "waiting", "called"
_KEPT = "robots_decisions.waiting"
_ASYNCIO = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"

_log = logging.getLogger(__name__)

_Key: TypeAlias = tuple[str, str]


class Disallowed(IgnoreRequest):
    """The page may not be fetched: `reason`, and the `rule` of robots.txt and its `line` where one decided."""

    def __init__(self, url: str, refused: Denied) -> None:
        super().__init__(f"{url} may not be fetched: {refused}.")
        self.reason = refused.reason
        self.rule = refused.rule
        self.line = refused.line


class NotUnderstood(IgnoreRequest):
    """The service rejects the URL or the agent as malformed."""


class GivenUp(IgnoreRequest):
    """There was no verdict in time."""


class _Going(NamedTuple):
    """A request on its way to its origin: its queue, its grant, and its start."""

    queue: OriginQueue[Request]
    turn: Grant
    since: float


class PermitMiddleware:
    """Delays each request until its permitted slot; the settings are above.

    A page that may not be fetched is dropped (Disallowed, an IgnoreRequest). A request that has to wait for longer than
    ROBOTS_DECISIONS_MAX_WAIT leaves the engine, and comes back through the scheduler: meanwhile it holds up no other
    origin, and the spider stays open. With JOBDIR, those that still wait when the spider is closed are kept for the
    next run. While the service cannot be asked, requests wait, unless ROBOTS_DECISIONS_UNREACHABLE is "allow". Requests
    whose meta says dont_obey_robotstxt are not asked about, as with Scrapy's own middleware.

    It belongs between RetryMiddleware (550), which would hide a 503 from it, and DownloaderStats (850). Scrapy has to
    run on asyncio. Raises ValueError for settings that cannot be used, which ends the crawl before it begins.
    """

    def __init__(self, crawler: "Crawler") -> None:
        settings = crawler.settings
        url = settings.get("ROBOTS_DECISIONS_URL")
        if not url:
            raise ValueError("ROBOTS_DECISIONS_URL is not set. Set it to the URL of the service.")
        reactor = settings.get("TWISTED_REACTOR")
        if settings.getbool("TWISTED_REACTOR_ENABLED", True) and reactor != _ASYNCIO:
            raise ValueError(f"TWISTED_REACTOR={reactor!r} is not {_ASYNCIO!r}, and this needs asyncio.")
        unreachable = settings.get("ROBOTS_DECISIONS_UNREACHABLE", "wait")
        if unreachable not in {"wait", "allow"}:
            raise ValueError(f"ROBOTS_DECISIONS_UNREACHABLE={unreachable!r} is neither 'wait' nor 'allow'.")
        self._crawler = crawler
        self._agent = settings.get("ROBOTS_DECISIONS_AGENT") or settings.get("ROBOTSTXT_USER_AGENT")
        self._open = unreachable == "allow"
        self._max_wait = _seconds(crawler, "ROBOTS_DECISIONS_MAX_WAIT", MAX_WAIT)
        self._give_up_after = _seconds(crawler, "ROBOTS_DECISIONS_GIVE_UP_AFTER", GIVE_UP_AFTER)
        self._most_waiting = max(1, settings.getint("ROBOTS_DECISIONS_MAX_WAITING", MAX_WAITING))
        self._concurrency = max(1, settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN"))
        self._service = PermitClient(
            url, key=settings.get("ROBOTS_DECISIONS_KEY"), caller=settings.get("ROBOTS_DECISIONS_CALLER")
        )
        self._queues: dict[_Key, OriginQueue[Request]] = {}
        self._timers: dict[_Key, asyncio.TimerHandle] = {}
        self._going: WeakKeyDictionary[Request, _Going] = WeakKeyDictionary()
        self._waiting = 0
        self._space = asyncio.Event()
        self._space.set()

    @classmethod
    def from_crawler(cls, crawler: "Crawler") -> "PermitMiddleware":
        """As Scrapy makes it."""
        made = cls(crawler)
        crawler.signals.connect(made.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(made.request_scheduled, signal=signals.request_scheduled)
        crawler.signals.connect(made.spider_idle, signal=signals.spider_idle)
        crawler.signals.connect(made.spider_closed, signal=signals.spider_closed)
        return made

    async def process_request(self, request: Request, spider: Spider | None = None) -> Request | None:  # noqa: ARG002
        """Return None once the slot has come, or the marked request if it must wait outside the downloader."""
        if not request.url.startswith(("http://", "https://")):
            return None
        if request.meta.get("dont_obey_robotstxt"):
            self._count("unasked")
            return None
        key = self._key(request)
        came = _unmark(request)
        if came == _WAITING:
            # It came back without the scheduler: a caller downloads it directly, so it was never put aside.
            await asyncio.sleep(TICK)
        queue = self._queues.setdefault(key, OriginQueue(self._concurrency))
        queue.arrived(request)
        if _now() < queue.given_up_until:
            raise self._given_up(request)
        # Those that wait go first, and those that were called. But who has waited and is here takes a place that was
        # promised to another: that one may be unable to come before this one leaves the downloader.
        free = queue.free_slots(_now()) if came else 0 if queue.waiting else queue.unclaimed_slots(_now())
        if not free:
            return await self._put_aside(request, first=came is not None)
        queue.requesting += 1
        try:
            answer = await self._service.permit(request.url, key[1], self._max_wait)
            self._count("asked")
            goes = self._goes(request, queue, answer)
        finally:
            queue.requesting -= 1
            self._tend(key)
        return None if goes else await self._put_aside(request, first=True)

    async def process_response(self, request: Request, response: Response, spider: Spider | None = None) -> Response:  # noqa: ARG002
        """Return the response; report a 429 or 503, so that the whole fleet backs off."""
        going = self._left(request)
        if going is None:
            return response
        if "cached" in response.flags:
            self._service.release(going.turn)
        elif response.status in BACKOFF_STATUSES:
            said = response.headers.get(b"Retry-After")
            retry_after = None if said is None else said.decode("latin-1")
            elapsed = _now() - going.since
            backoff = await self._service.report(going.turn, response.status, retry_after, elapsed)
            self._count("reported")
            if backoff is not None:
                going.queue.opens_at = max(going.queue.opens_at, _now() + backoff)
        self._tend(self._key(request))
        return response

    async def process_exception(self, request: Request, exception: Exception, spider: Spider | None = None) -> None:  # noqa: ARG002
        """Release an unused slot. A failed connection has used its slot."""
        going = self._left(request)
        if going is not None:
            if isinstance(exception, IgnoreRequest):
                self._service.release(going.turn)
            self._tend(self._key(request))

    def request_scheduled(self, request: Request) -> None:
        """Queue a marked request here instead of in the scheduler."""
        mark = request.meta.get(_MARK)
        if mark is None or mark["state"] != _WAITING:
            return
        key = self._key(request)
        queue = self._queues.setdefault(key, OriginQueue(self._concurrency))
        if mark["first"]:
            queue.waiting.appendleft(request)
        else:
            queue.waiting.append(request)
        self._now_waiting(1)
        self._tend(key)
        raise IgnoreRequest("The request waits for its slot.")

    def spider_opened(self, spider: Spider) -> None:  # noqa: ARG002
        """Resume the requests that waited when the last run of this job ended."""
        for request in _kept(self._crawler):
            self._crawl(request)

    def spider_idle(self) -> None:
        """Keep the spider open while requests wait."""
        if self._waiting:
            raise DontCloseSpider

    async def spider_closed(self) -> None:
        """Store the waiting requests for the next run of this job, if there is a JOBDIR."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        left = [request for queue in self._queues.values() for request in queue.waiting]
        self._count("left_waiting", len(left))
        try:
            _keep(self._crawler, left)
        finally:
            await self._service.aclose()

    def _goes(self, request: Request, queue: OriginQueue[Request], answer: Answer) -> bool:
        """Whether the request is sent now; False to wait. Raises IgnoreRequest if it must not be sent."""
        now = _now()
        match answer:
            case Grant():
                queue.granted(now, answer.interval, self._max_wait)
                queue.in_flight.add(request)
                self._going[request] = _Going(queue, answer, now)
                self._count("allowed")
                self._count("degraded", int(answer.degraded))
                return True
            case Denied(reason=reason):
                queue.verdict_known()
                self._count("disallowed")
                self._count(f"disallowed/{reason}")
                _log.debug("%s may not be fetched: %s", request, answer, extra={"spider": self._crawler.spider})
                raise Disallowed(request.url, answer)
            case InvalidQuestion(why=why):
                self._count("not_understood")
                raise NotUnderstood(f"The service does not take {request.url}: {why}.")
            case RetryLater(seconds=seconds, reason=reason, interval=interval) if reason == PACE:
                queue.wait_for_slot(now, seconds, interval)
                return False
            case RetryLater(seconds=seconds):
                self._count("deferred")
                self._wait_for_verdict(request, queue, seconds)
                return False
            case NoAnswer(why=why):
                self._count("unreachable")
                _log.warning("%s cannot be asked about: %s", request, why, extra={"spider": self._crawler.spider})
                if self._open:
                    self._count("unasked")
                    return True
                self._wait_for_verdict(request, queue, None)
                return False
            case _:
                assert_never(answer)

    def _wait_for_verdict(self, request: Request, queue: OriginQueue[Request], seconds: float | None) -> None:
        if queue.verdict_unknown(_now(), seconds, self._give_up_after):
            self._call(queue, len(queue.waiting))  # each is dropped as it arrives, so that its errback is called
            raise self._given_up(request)

    def _given_up(self, request: Request) -> GivenUp:
        self._count("given_up")
        return GivenUp(f"Whether {request.url} may be fetched could not be decided in time.")

    async def _put_aside(self, request: Request, *, first: bool) -> Request:
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVES_WITHIN):
                await self._space.wait()
        self._count("put_aside")
        copy = request.copy()
        # The duplicate filter has already seen this request.
        copy.meta[_MARK] = {"state": _WAITING, "first": first, "dont_filter": request.dont_filter}
        copy.dont_filter = True
        return copy

    def _tend(self, key: _Key) -> None:
        """Call as many requests as there are free slots, and set a timer for the others."""
        queue = self._queues.get(key)
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        if queue is None:
            return
        now = _now()
        self._call(queue, queue.unclaimed_slots(now))
        if queue.waiting or now < max(queue.opens_at, queue.given_up_until):
            delay = max(queue.opens_at - now, 0.0) or TICK
            self._timers[key] = asyncio.get_running_loop().call_later(delay, self._tend, key)
        elif queue.is_idle():
            del self._queues[key]

    def _call(self, queue: OriginQueue[Request], most: int) -> None:
        for _ in range(min(most, len(queue.waiting))):
            request = queue.call(_now())
            self._now_waiting(-1)
            request.meta[_MARK] = {**request.meta[_MARK], "state": _CALLED}
            self._crawl(request)

    def _now_waiting(self, more: int) -> None:
        self._waiting += more
        if self._waiting < self._most_waiting:
            self._space.set()
        else:
            self._space.clear()

    def _crawl(self, request: Request) -> None:
        engine = self._crawler.engine
        if engine.spider is not None:
            engine.crawl(request)

    def _left(self, request: Request) -> _Going | None:
        going = self._going.pop(request, None)
        if going is not None:
            going.queue.in_flight.discard(request)
        return going

    def _key(self, request: Request) -> _Key:
        said = request.headers.get(b"User-Agent")
        own = said.decode("latin-1") if said else self._crawler.settings.get("USER_AGENT")
        return origin_key(request.url), self._agent or own or "*"

    def _count(self, name: str, number: int = 1) -> None:
        if number and self._crawler.stats is not None:
            self._crawler.stats.inc_value(f"{STATS}/{name}", number)


def _now() -> float:
    return time.monotonic()


def _seconds(crawler: "Crawler", name: str, default: float) -> float:
    value = crawler.settings.getfloat(name, default)
    if not 0 <= value < math.inf:
        raise ValueError(f"{name}={value!r} is not a valid number of seconds.")
    return value


def _unmark(request: Request) -> str | None:
    """How a request that was put aside comes back, as it was before; None for one that was not."""
    mark = request.meta.pop(_MARK, None)
    if mark is None:
        return None
    request.dont_filter = mark["dont_filter"]
    state: str = mark["state"]
    return state


def _queue(crawler: "Crawler") -> Any:
    """A queue of Scrapy's in the job's directory; None where there is no job."""
    folder = job_dir(crawler.settings)
    kind: Any = PickleFifoDiskQueue
    return None if folder is None else kind.from_crawler(crawler, str(Path(folder, _KEPT)))


def _keep(crawler: "Crawler", requests: list[Request]) -> None:
    queue = _queue(crawler)
    if queue is None:
        return
    for request in requests:
        request.meta[_MARK] = {**request.meta[_MARK], "state": _CALLED}
        with suppress(ValueError):  # what cannot be written, Scrapy's own queues do not keep, either
            queue.push(request)
    queue.close()


def _kept(crawler: "Crawler") -> Iterator[Request]:
    queue = _queue(crawler)
    if queue is None:
        return
    while (request := queue.pop()) is not None:
        yield request
    queue.close()
