"""A crawl by Scrapy in its own process, which prints the result: `python crawl.py PLAN`.

PLAN is JSON: `settings`, `urls` to start from (all links on them are followed), and, if wanted, `close_after`: so many
pages whose URL holds `close_at`, once `close_waiting` others have been fetched or wait; and `by_hand`: a URL that a
callback downloads by itself. `count`: as many pages of the last URL. `garbage`: whether to collect it.
`unstorable`: with callbacks that cannot be serialized.
"""

import asyncio
import gc
import json
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

from robots_decisions.scrapy import PermitMiddleware
from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess
from scrapy.exceptions import CloseSpider
from scrapy.http import Response
from twisted.python.failure import Failure

SETTINGS: dict[str, Any] = {
    "DOWNLOADER_MIDDLEWARES": {PermitMiddleware: 840},
    "DOWNLOAD_DELAY": 0,
    "LOG_LEVEL": "WARNING",
    "ROBOTSTXT_OBEY": False,
    "TELNETCONSOLE_ENABLED": False,
    "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
    "USER_AGENT": "ExampleBot/1.0",
}


class Crawl(Spider):
    """Follows every link, and records pages and failures."""

    name = "crawl"
    plan: dict[str, Any]
    fetched: list[str]
    versions: dict[str, str | None]
    failed: dict[str, str]
    messages: dict[str, str]

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls():
            yield self.request(url)

    def start_requests(self) -> Any:
        """The entry point before Scrapy 2.13."""
        return [self.request(url) for url in self.urls()]

    def request(self, url: str) -> Request:
        """A request for a page."""
        callback: Any = (lambda response: self.parse(response)) if "unstorable" in self.plan else self.parse
        return Request(url, callback=callback, errback=self.fails)

    def urls(self) -> Iterator[str]:
        """The URLs to start from."""
        yield from (f"{self.plan['urls'][-1]}?{number}" for number in range(self.plan.get("count", 0)))
        yield from self.plan["urls"]

    async def parse(self, response: Response, **_: Any) -> AsyncIterator[Any]:
        self.fetched.append(response.url)
        self.versions[response.url] = response.meta.get("robots_version")
        if "by_hand" in self.plan:
            url = self.plan.pop("by_hand")
            by_hand = await self.crawler.engine.download_async(Request(url))
            self.fetched.append(by_hand.url)
        here = sum(self.plan.get("close_at", " ") in url for url in self.fetched)
        if here == self.plan.get("close_after"):
            while self.waiting() + len(self.fetched) - here < self.plan["close_waiting"]:  # noqa: ASYNC110 - there is no event
                await asyncio.sleep(0.02)
            raise CloseSpider("enough")
        if b"<a" in response.body:
            for link in response.css("a::attr(href)").getall():
                yield self.request(response.urljoin(link))

    def waiting(self) -> int:
        """The number of requests that wait outside the downloader."""
        parts = self.crawler.engine.downloader.middleware.middlewares
        part = next(part for part in parts if isinstance(part, PermitMiddleware))
        return part._waiting if part._scheduler is None else len(part._scheduler)

    def fails(self, failure: Failure) -> None:
        url: str = failure.request.url  # type: ignore[attr-defined]
        self.failed[url] = type(failure.value).__name__
        self.messages[url] = str(failure.value)


def main() -> None:
    """Crawl, and print the result as the last line."""
    plan = json.loads(sys.argv[1])
    if not plan.get("garbage", True):
        gc.disable()
    Crawl.plan, Crawl.fetched, Crawl.failed, Crawl.messages, Crawl.versions = plan, [], {}, {}, {}
    process = CrawlerProcess({**SETTINGS, **plan["settings"]}, install_root_handler=True)
    crawler = process.create_crawler(Crawl)
    process.crawl(crawler).addErrback(lambda failure: sys.stderr.write(failure.getTraceback()))
    process.start()
    crawled = {"fetched": Crawl.fetched, "failed": Crawl.failed, "messages": Crawl.messages, "versions": Crawl.versions}
    result = {**crawled, "stats": crawler.stats.get_stats()}
    print(json.dumps(result, default=str))  # noqa: T201


if __name__ == "__main__":
    main()
