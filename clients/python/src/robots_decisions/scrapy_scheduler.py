"""A scheduler of Scrapy that hands out the requests of an origin when its slot is due.

SCHEDULER = "robots_decisions.scrapy_scheduler.PermitScheduler"
"""

import json
import logging
import pickle
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from scrapy import Request, Spider
from scrapy.core.scheduler import BaseScheduler
from scrapy.utils.job import job_dir
from scrapy.utils.request import request_from_dict

from robots_decisions.scrapy import Key, PermitMiddleware, unmark

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

STORED = "robots_decisions.sqlite"
"""The file in JOBDIR."""

_DUPEFILTER = "scrapy.dupefilters.RFPDupeFilter"

# A request waits (0), has been handed out (1), or is done (2): then its fingerprint is left.
_TABLE = (
    "CREATE TABLE IF NOT EXISTS requests"
    " (id INTEGER PRIMARY KEY, fingerprint BLOB UNIQUE, origin TEXT, priority INTEGER, state INTEGER, body BLOB)"
)
_INDEX = "CREATE INDEX IF NOT EXISTS waiting ON requests (origin, priority DESC, id) WHERE state = 0"
_LOSE = "DELETE FROM requests WHERE state < 2 AND body IS NULL"  # they were in memory
_RESUME = "UPDATE requests SET state = 0 WHERE state = 1"
_COUNT = "SELECT origin, count(*) FROM requests WHERE state = 0 GROUP BY origin"
_ADD = "INSERT OR IGNORE INTO requests (fingerprint, origin, priority, state, body) VALUES (?, ?, ?, 0, ?)"
_NEXT = "SELECT id, body FROM requests WHERE state = 0 AND origin = ? ORDER BY priority DESC, id LIMIT 1"
_TAKE = "UPDATE requests SET state = 1 WHERE id = ?"
_RETURN = "UPDATE requests SET state = 0, origin = ? WHERE id = ?"
_DONE = "UPDATE requests SET state = 2, origin = NULL, body = NULL WHERE id = ?"
_FORGET = "DELETE FROM requests WHERE id = ? AND fingerprint IS NULL"

_log = logging.getLogger(__name__)


class PermitScheduler(BaseScheduler):
    """Keeps each origin's requests in order of priority, then age, and gives origins that may be asked by turns.

    With JOBDIR, requests are kept in an SQLite database until their response has been handled, so that a crawl that is
    killed continues: it fetches again only what was in flight. Requests that cannot be serialized are kept in memory,
    as by Scrapy's own scheduler. Duplicates are found by the fingerprint of the request.

    Raises ValueError on opening if PermitMiddleware is not in DOWNLOADER_MIDDLEWARES, DUPEFILTER_CLASS is set, the job
    was begun with another scheduler, or another process uses it.
    """

    def __init__(self, crawler: "Crawler") -> None:
        self._crawler = crawler
        self._ready: dict[str, None] = {}
        self._counts: dict[str, int] = {}
        self._in_memory: dict[int, Request] = {}
        self._taken: dict[Request, int] = {}
        self._put_aside: WeakKeyDictionary[Request, Request] = WeakKeyDictionary()

    @classmethod
    def from_crawler(cls, crawler: "Crawler") -> "PermitScheduler":
        """Create the scheduler; called by Scrapy."""
        return cls(crawler)

    def open(self, spider: Spider) -> None:
        """Open the job's requests: those in flight when it was killed wait again."""
        settings, engine = self._crawler.settings, self._crawler.engine
        found = [part for part in engine.downloader.middleware.middlewares if isinstance(part, PermitMiddleware)]
        if not found:
            raise ValueError(f"{type(self).__name__} needs PermitMiddleware in DOWNLOADER_MIDDLEWARES.")
        if settings.get("DUPEFILTER_CLASS") != _DUPEFILTER:
            raise ValueError(f"DUPEFILTER_CLASS is not supported with {type(self).__name__}: remove one of the two.")
        self._spider, (self._permits, *_) = spider, found
        folder = job_dir(settings)
        self._on_disk = folder is not None
        path = Path(folder, STORED) if folder is not None else ":memory:"
        if folder is not None and Path(folder, "requests.queue").exists():
            raise ValueError(f"The job in {folder} was begun with another scheduler: end it with that one.")
        self._rows = sqlite3.connect(path, isolation_level=None, timeout=1.0)
        try:
            self._rows.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._rows.execute("PRAGMA journal_mode = WAL")
            self._rows.execute("PRAGMA synchronous = NORMAL")  # a killed process loses nothing
            for statement in (_TABLE, _INDEX, _LOSE, _RESUME):
                self._rows.execute(statement)
        except sqlite3.OperationalError as error:
            raise ValueError(f"{path} cannot be used ({error}). Does another process use this JOBDIR?") from error
        self._counts = dict(self._rows.execute(_COUNT).fetchall())
        self._ready = dict.fromkeys(self._counts)
        if self._counts:
            _log.info("Resuming crawl (%d requests scheduled)", len(self), extra={"spider": spider})
        self._permits.scheduled_by(self)

    def close(self, reason: str) -> None:  # noqa: ARG002
        """Close the job's requests."""
        self._forget_done()
        self._rows.close()

    def __len__(self) -> int:
        """The number of requests that wait."""
        return sum(self._counts.values())

    def has_pending_requests(self) -> bool:
        """Whether requests wait."""
        return bool(self._counts)

    def enqueue_request(self, request: Request) -> bool:
        """Add a request, or return one that was put aside to its place. False if it is a duplicate."""
        key = self._permits.key(request)
        origin = "" if key is None else json.dumps(key)
        original = self._put_aside.pop(request, None)
        number = None if original is None else self._taken.pop(original, None)
        if number is not None:
            self._rows.execute(_RETURN, (origin, number))
        elif not self._add(request, origin):
            self._count("dupefilter/filtered")
            return False
        self._counts[origin] = self._counts.get(origin, 0) + 1
        self._ready[origin] = None
        self._count("scheduler/enqueued")
        return True

    def next_request(self) -> Request | None:
        """The next request of an origin that may be asked; None if there is none at present."""
        self._forget_done()
        while self._ready:
            origin = next(iter(self._ready))
            del self._ready[origin]
            if origin in self._counts:
                request = self._take(origin) if not origin else self._permits.call_next(_key(origin))
                if request is not None:
                    self._ready[origin] = None  # behind the others
                    return request
        return None

    def ready(self, key: Key) -> None:
        """Note that a request to this origin may be called."""
        self._ready[json.dumps(key)] = None

    def put_aside(self, request: Request, copy: Request) -> None:
        """Note that the copy takes the place of a request that was handed out too early."""
        self._put_aside[copy] = request

    def waiting(self, key: Key) -> "WaitingRows":
        """The requests of an origin that wait."""
        return WaitingRows(self, json.dumps(key))

    def _add(self, request: Request, origin: str) -> bool:
        unmark(request)  # it waited with another scheduler
        fingerprint = None
        if not request.dont_filter:
            fingerprint = self._crawler.request_fingerprinter.fingerprint(request)
        body = self._serialized(request) if self._on_disk else None
        added = self._rows.execute(_ADD, (fingerprint, origin, request.priority, body))
        if added.rowcount and body is None and added.lastrowid is not None:
            self._in_memory[added.lastrowid] = request
        return added.rowcount == 1

    def _serialized(self, request: Request) -> bytes | None:
        try:
            return pickle.dumps(request.to_dict(spider=self._spider), protocol=4)
        except (ValueError, TypeError, AttributeError, pickle.PicklingError) as error:
            if self._crawler.settings.getbool("SCHEDULER_DEBUG"):
                _log.warning("%s cannot be serialized: %s", request, error, extra={"spider": self._spider})
            self._count("scheduler/unserializable")
            return None

    def _take(self, origin: str) -> Request:
        number, body = self._rows.execute(_NEXT, (origin,)).fetchone()
        self._rows.execute(_TAKE, (number,))
        self._counts[origin] -= 1
        if not self._counts[origin]:
            del self._counts[origin]
        # A request in memory may be handed out again, so what the middlewares add must not stay with it.
        request = self._in_memory[number].copy() if body is None else self._restored(body)
        self._taken[request] = number
        self._count("scheduler/dequeued")
        return request

    def _restored(self, body: bytes) -> Request:
        return request_from_dict(pickle.loads(body), spider=self._spider)  # noqa: S301 - of this job

    def _forget_done(self) -> None:
        """Forget the requests whose responses have been handled: what came of them has been added."""
        running = self._permits.in_progress()
        for request in [request for request in self._taken if request not in running]:
            number = self._taken.pop(request)
            self._in_memory.pop(number, None)
            self._rows.execute(_DONE, (number,))
            self._rows.execute(_FORGET, (number,))

    def _count(self, name: str) -> None:
        if self._crawler.stats is not None:
            self._crawler.stats.inc_value(name)


class WaitingRows:
    """The requests of an origin that wait, as a queue."""

    def __init__(self, scheduler: PermitScheduler, origin: str) -> None:
        self._scheduler = scheduler
        self._origin = origin

    def __len__(self) -> int:
        return self._scheduler._counts.get(self._origin, 0)

    def popleft(self) -> Request:
        """Remove and return the next request."""
        return self._scheduler._take(self._origin)


def _key(text: str) -> Any:
    origin, agent = json.loads(text)
    return origin, agent if isinstance(agent, str) else tuple(agent)
