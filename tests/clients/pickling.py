"""A queue of Scrapy's scheduler that pickles all requests, in memory."""

import pickle
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.utils.request import request_from_dict

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class PicklingQueue:
    """What comes out of it is another object than what went in, as with a disk or Redis."""

    def __init__(self, crawler: "Crawler") -> None:
        self._spider = crawler.spider
        self._pickles: list[bytes] = []

    @classmethod
    def from_crawler(cls, crawler: "Crawler", *_: Any, **__: Any) -> "PicklingQueue":
        """Create the queue; called by Scrapy."""
        return cls(crawler)

    def push(self, request: Request) -> None:
        """Add a request."""
        self._pickles.append(pickle.dumps(request.to_dict(spider=self._spider)))

    def pop(self) -> Request | None:
        """Remove and return the last request; None if there is none."""
        if not self._pickles:
            return None
        return request_from_dict(pickle.loads(self._pickles.pop()), spider=self._spider)

    def peek(self) -> Request | None:
        """Not supported, as by some queues of Scrapy."""
        raise NotImplementedError

    def close(self) -> None:
        """Do nothing."""

    def __len__(self) -> int:
        return len(self._pickles)
