"""Four Scrapy processes on three sites, for SECONDS (60), and again with the service killed for 15 s in the middle.

python -m tests.faults.scrapy_fleet

Each process has its own pages to fetch from each site, more than the site's rate permits, and links to disallowed
pages. Prints the number of pages and the rate for each site. Exits with 1 if a disallowed page was fetched, or if a
site saw more than 103 % of the permitted rate, give or take a page. The rate is used to 99 % if the machine is idle
otherwise.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

from app.loop.background import cancel_and_wait
from app.store.embedded import serve as serve_valkey
from tests.clients.crawling import crawler
from tests.clients.site import Site, links
from tests.faults.process import process
from tests.origins import serve

SECONDS, CRAWLERS, FLOOR, DOWN = 60.0, 4, 0.25, 15.0
MOST = 1.03
INTERVALS = {"Crawl-delay 0.5": 0.5, "Crawl-delay 1": 1.0, "no Crawl-delay": FLOOR}


@dataclass(frozen=True)
class Part:
    """A part of the crawl in which the service runs, from one instant to another (Unix seconds)."""

    name: str
    begin: float
    end: float


def new_site(name: str, interval: float, seconds: float) -> Site:
    """A site with more pages for each crawler than the rate allows for in so many seconds."""
    delay = f"Crawl-delay: {interval}\n" if name.startswith("Crawl-delay") else ""
    most = int(2 * seconds / interval)
    pages = {
        f"/{crawler}": links(*(f"/{crawler}/{page}" for page in range(most)), f"/private/{crawler}")
        for crawler in range(CRAWLERS)
    }
    return Site(f"User-agent: *\nDisallow: /private/\n{delay}", pages)


async def crawl(service: str, urls: list[str]) -> None:
    """Follow the links from these URLs until cancelled, in a separate process."""
    settings = {"ROBOTS_DECISIONS_URL": service, "LOG_LEVEL": "CRITICAL"}
    async with crawler({"urls": urls, "settings": settings}) as process:
        await process.communicate()


def judge(name: str, site: Site, interval: float, part: Part) -> bool:
    """Print the results of a site for a part of the crawl; return whether they are right."""
    disallowed = [path for path in site.paths if path.startswith("/private/")]
    pages = [at for at, path in site.log if path != "/robots.txt" and part.begin <= at < part.end]
    seconds = pages[-1] - pages[0] if len(pages) > 1 else 0.0
    permitted = seconds / interval
    rate = (len(pages) - 1) / permitted if permitted else 0.0
    print(f"{part.name:<22}{name:<18}{len(pages):>5} pages, {rate:7.1%} of the rate; {len(disallowed)} disallowed")
    return not disallowed and 0 < len(pages) - 1 <= MOST * permitted + 1


async def measure(seconds: float, *, kill: bool) -> bool:
    """Crawl for so many seconds with the service running; return whether all results are right."""
    async with AsyncExitStack() as stack:
        store = stack.enter_context(serve_valkey(None))
        settings = {"REDIS_URL": store, "PACE_FLOOR": str(FLOOR), "ACCESS_LOG": "false", "FETCH_TIMEOUT": "60"}
        service = stack.enter_context(process(**settings))
        url = await asyncio.to_thread(service.wait_ready)
        sites = {name: new_site(name, interval, seconds) for name, interval in INTERVALS.items()}
        places = [await stack.enter_async_context(serve(site)) for site in sites.values()]
        starts = [[f"{place.url}/{crawler}" for place in places] for crawler in range(CRAWLERS)]
        crawls = [asyncio.create_task(crawl(url, urls)) for urls in starts]
        stack.push_async_callback(cancel_and_wait, crawls)
        parts = []
        if kill:
            parts.append(await part("before the kill", sites, seconds / 2))
            service.send_signal(signal.SIGKILL)
            await asyncio.sleep(DOWN)
            again = stack.enter_context(process(**settings, PORT=url.rpartition(":")[2]))
            await asyncio.to_thread(again.wait_ready)
            parts.append(await part("after the restart", sites, seconds / 2))
        else:
            parts.append(await part("all the time", sites, seconds))
    judged = [judge(name, site, INTERVALS[name], one) for one in parts for name, site in sites.items()]
    return all(judged)


async def part(name: str, sites: Mapping[str, Site], seconds: float) -> Part:
    """Wait for a part of the crawl, which begins when all crawlers fetch pages of all sites."""
    before = {site: len(site.log) for site in sites.values()}
    while not all(len(site.log) - count > 2 * CRAWLERS for site, count in before.items()):  # noqa: ASYNC110 - no event
        await asyncio.sleep(0.1)
    begin = time.time()
    await asyncio.sleep(seconds)
    return Part(name, begin, time.time())


async def main() -> int:
    """Run both crawls; return 1 if any result is wrong."""
    seconds = float(os.environ.get("SECONDS") or SECONDS)
    return 0 if all([await measure(seconds, kill=False), await measure(seconds, kill=True)]) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
