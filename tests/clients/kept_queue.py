"""A scheduler whose queue outlives the process, as that of scrapy-redis does: it is in the file KEPT_QUEUE."""

import pickle
import sqlite3
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider
from scrapy.core.scheduler import BaseScheduler
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.request import request_from_dict

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class KeptScheduler(BaseScheduler):
    """Hands out requests by priority. Its duplicate filter forgets, since a test asks for each page once a run."""

    def __init__(self, crawler: "Crawler") -> None:
        self.df: Any = build_from_crawler(load_object(crawler.settings["DUPEFILTER_CLASS"]), crawler)
        self._rows = sqlite3.connect(crawler.settings["KEPT_QUEUE"], isolation_level=None)
        self._rows.execute("CREATE TABLE IF NOT EXISTS requests (id INTEGER PRIMARY KEY, priority, body)")

    @classmethod
    def from_crawler(cls, crawler: "Crawler") -> "KeptScheduler":
        """Called by Scrapy."""
        return cls(crawler)

    def open(self, spider: Spider) -> None:
        """Note the spider, whose callbacks requests have."""
        self._spider = spider

    def has_pending_requests(self) -> bool:
        """Whether requests wait."""
        (waiting,) = self._rows.execute("SELECT count(*) FROM requests").fetchone()
        return bool(waiting)

    def enqueue_request(self, request: Request) -> bool:
        """Add a request; also once the scheduler is closed."""
        if not request.dont_filter and self.df.request_seen(request):
            return False
        row = (request.priority, pickle.dumps(request.to_dict(spider=self._spider)))
        self._rows.execute("INSERT INTO requests (priority, body) VALUES (?, ?)", row)
        return True

    def next_request(self) -> Request | None:
        """Remove and return the next request."""
        found = self._rows.execute("SELECT id, body FROM requests ORDER BY priority DESC, id LIMIT 1").fetchone()
        if found is None:
            return None
        self._rows.execute("DELETE FROM requests WHERE id = ?", found[:1])
        return request_from_dict(pickle.loads(found[1]), spider=self._spider)
