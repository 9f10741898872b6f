"""A real Scrapy with PermitScheduler: what is left of a job that is killed, and who waits for whom."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.clients import crawling
from tests.clients.crawling import crawl_by_scrapy as crawl
from tests.clients.site import Site, links, new_address
from tests.origins import serve

SCHEDULER = "robots_decisions.scrapy_scheduler.PermitScheduler"


async def until(condition: Callable[[], bool]) -> None:
    """Return once the condition holds; a test's own limit ends it otherwise."""
    while not condition():  # noqa: ASYNC110 - there is no event
        await asyncio.sleep(0.02)


async def test_job_that_is_killed_loses_no_page(tmp_path: Path, service_url: str) -> None:
    pages = [f"/{number}" for number in range(40)]
    site = Site(
        "User-agent: *\nCrawl-delay: 0.1\n",
        {"/": links(*pages[:20]), "/3": links(*pages[20:]), "/33": links("/late")},
    )
    expected = {"/", *pages, "/late"}
    async with serve(site, host=new_address()) as origin:
        job: dict[str, Any] = {"SCHEDULER": SCHEDULER, "JOBDIR": str(tmp_path)}
        plan = {"urls": [f"{origin.url}/"], "settings": {"ROBOTS_DECISIONS_URL": service_url, **job}}
        kills = 0
        for reached in (3, 12, 25):
            async with crawling.crawler(plan) as process:
                await until(lambda: len(site.paths) > reached)  # noqa: B023 - it is awaited here
                process.kill()
                await process.wait()
                kills += 1
        came = await crawl(f"{origin.url}/", service=service_url, **job)
    counts = Counter(path for path in site.paths if path != "/robots.txt")
    assert counts.keys() == expected
    assert came["stats"]["finish_reason"] == "finished"
    # Only what was in flight as the process was killed comes again.
    assert sum(counts.values()) - len(expected) <= kills


async def test_flood_from_start_delays_no_other_origin(service_url: str) -> None:
    flood, other, count = Site("User-agent: *\nCrawl-delay: 0.2\n"), Site("User-agent: *\nDisallow:\n"), 3000
    async with serve(flood, host=new_address()) as one, serve(other, host=new_address()) as two:
        came = await crawl(
            f"{two.url}/page",
            f"{one.url}/page",
            service=service_url,
            plan={"close_at": two.url, "close_after": 1, "close_waiting": 0, "count": count},
            SCHEDULER=SCHEDULER,
        )
    assert f"{two.url}/page" in came["fetched"]
    # All of the flood came out of start() first, and none of it is lost in the downloader.
    assert came["stats"]["scheduler/enqueued"] >= count
    assert len(flood.paths) < count / 10


async def test_request_that_cannot_be_stored_is_kept_in_memory(tmp_path: Path, service_url: str) -> None:
    site = Site("User-agent: *\nDisallow: /private\n", {"/": links("/private", "/1")})
    async with serve(site, host=new_address()) as origin:
        came = await crawl(
            f"{origin.url}/", service=service_url, plan={"unstorable": True}, JOBDIR=str(tmp_path), SCHEDULER=SCHEDULER
        )
    assert sorted(came["fetched"]) == [f"{origin.url}/", f"{origin.url}/1"]
    assert came["failed"] == {f"{origin.url}/private": "Disallowed"}
    assert came["stats"]["scheduler/unserializable"] == 3


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter"}, "DUPEFILTER_CLASS is not supported"),
        ({"DOWNLOADER_MIDDLEWARES": {}}, "needs PermitMiddleware in DOWNLOADER_MIDDLEWARES"),
    ],
)
async def test_settings_that_do_not_go_with_it(settings: dict[str, Any], remedy: str) -> None:
    site = Site("")
    async with serve(site) as origin:
        came = await crawl(f"{origin.url}/page", service="http://127.0.0.1:9", SCHEDULER=SCHEDULER, **settings)
    assert site.log == []
    assert remedy in came["complaints"]


async def test_job_of_another_scheduler_is_not_taken_over(tmp_path: Path, service_url: str) -> None:
    site = Site("User-agent: *\nDisallow:\n")
    async with serve(site, host=new_address()) as origin:
        await crawl(f"{origin.url}/1", service=service_url, JOBDIR=str(tmp_path))
        before = site.paths
        came = await crawl(f"{origin.url}/2", service=service_url, JOBDIR=str(tmp_path), SCHEDULER=SCHEDULER)
    assert site.paths == before
    assert "was begun with another scheduler" in came["complaints"]


async def test_job_that_another_process_runs_is_refused(tmp_path: Path, service_url: str) -> None:
    site = Site("User-agent: *\nCrawl-delay: 600\n")
    async with serve(site, host=new_address()) as origin:
        job: dict[str, Any] = {"SCHEDULER": SCHEDULER, "JOBDIR": str(tmp_path)}
        urls = [f"{origin.url}/{number}" for number in range(5)]
        plan = {"urls": urls, "settings": {"ROBOTS_DECISIONS_URL": service_url, **job}}
        async with crawling.crawler(plan):
            await until(lambda: "/robots.txt" in site.paths)
            came = await crawl(*urls, service=service_url, **job)
    assert "Does another process use this JOBDIR?" in came["complaints"]
    assert came["fetched"] == []
