"""The hooks with a real crawlee, its default HTTP client, and a loopback site."""

import asyncio
from typing import Any

from crawlee import ConcurrencySettings
from crawlee.crawlers import BasicCrawlingContext, HttpCrawler, HttpCrawlingContext
from crawlee.storage_clients import MemoryStorageClient
from robots_decisions import Disallowed
from robots_decisions.crawlee import PermitHooks

from tests.clients.permitting import Permitting, Relay, allow, defer
from tests.clients.site import HTML, TICK, Site, new_address
from tests.origins import serve, text


class Crawl:
    """What came of a crawl."""

    def __init__(self) -> None:
        self.fetched: list[str] = []
        self.versions: set[object] = set()
        self.failed: dict[str, Exception] = {}

    async def run(self, service: str, *urls: str, **settings: Any) -> None:
        """Crawl these URLs."""
        async with PermitHooks(service, agent="ExampleBot", **settings) as hooks:
            crawler = HttpCrawler(
                storage_client=MemoryStorageClient(),
                concurrency_settings=ConcurrencySettings(desired_concurrency=4, max_concurrency=4),
                max_request_retries=1,
                retry_on_blocked=False,
                configure_logging=False,
            )
            hooks.install(crawler)

            @crawler.router.default_handler
            async def page(context: HttpCrawlingContext) -> None:
                self.fetched.append(context.request.url)
                self.versions.add(context.request.user_data.get("robots_version"))

            @crawler.failed_request_handler
            async def failed(context: BasicCrawlingContext, error: Exception) -> None:
                self.failed[context.request.url] = error

            await crawler.run(list(urls))


async def test_crawlee_keeps_the_pace_and_to_the_file(service_url: str) -> None:
    interval = 0.2
    site = Site(
        f"User-agent: *\nDisallow: /private/\nCrawl-delay: {interval}\n",
        {"/busy": [text(503, "busy", {**HTML, "Retry-After": "1"}), text(200, "at last", HTML)]},
    )
    relay = Relay(service_url)
    async with serve(site, host=new_address()) as origin, serve(relay) as between:
        pages = [f"{origin.url}/{number}" for number in range(6)]
        came = Crawl()
        await came.run(between.url, *pages, f"{origin.url}/private/page", f"{origin.url}/busy")
        assert sorted(came.fetched) == sorted([*pages, f"{origin.url}/busy"])
        assert came.versions == {site.version}
        (error,) = came.failed.values()
        assert isinstance(error, Disallowed)
        assert error.rule == "disallow: /private/"
        assert site.ahead_of_turns(origin.url, relay.turns) == []
        assert relay.shortest >= interval - TICK
    assert "/private/page" not in site.paths
    refused, again = site.at("/busy")
    assert again - refused > 1 - 0.01


async def test_deferred_page_is_retried() -> None:
    permitting = Permitting(defer("2026-11-21T18:30:01Z"), allow())
    site = Site("")
    async with serve(permitting) as service, serve(site) as origin:
        came = Crawl()
        await came.run(service.url, f"{origin.url}/page", key="k3y", caller="pod-1")
    assert came.fetched == [f"{origin.url}/page"]
    assert len(permitting.asked) == 2
    assert permitting.asked[0]["caller"] == "pod-1"
    assert permitting.keys == ["Bearer k3y"] * 2
    assert site.paths == ["/page"]


async def test_overloaded_page_is_reported() -> None:
    permitting = Permitting(allow(permit="a"))
    async with serve(permitting) as service, serve(text(429, "", {**HTML, "Retry-After": "3"})) as origin:
        await asyncio.wait_for(Crawl().run(service.url, f"{origin.url}/page"), 60)
    assert ("a", 429, "3") in [(permit, said["status"], said["retry_after"]) for permit, said in permitting.reports]


async def test_service_that_fails_permits_no_page() -> None:
    site = Site("")
    async with serve(text(500)) as service, serve(site) as origin:
        came = Crawl()
        await came.run(service.url, f"{origin.url}/page")
    assert site.log == []
    assert [type(error).__name__ for error in came.failed.values()] == ["ServiceUnavailable"]
