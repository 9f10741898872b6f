"""The hooks with a real crawlee, its default HTTP client, and a loopback site."""

import asyncio
from typing import TYPE_CHECKING, Any

import httpx
from robots_decisions import Disallowed

from tests.clients.permitting import Permitting, Relay, allow, defer, disallow
from tests.clients.site import HTML, TICK, Site, new_address
from tests.origins import serve, text

if TYPE_CHECKING:
    from crawlee.crawlers import BasicCrawlingContext, HttpCrawlingContext


class Crawl:
    """What came of a crawl."""

    def __init__(self, *, own_client: bool = True) -> None:
        self._own_client = own_client
        self.fetched: list[str] = []
        self.versions: set[object] = set()
        self.failed: dict[str, Exception] = {}

    async def run(self, service: str, *urls: str, **settings: Any) -> None:
        """Crawl these URLs."""
        # Each process of the tests collects this file, and crawlee takes half a second to import.
        from crawlee import ConcurrencySettings
        from crawlee.crawlers import HttpCrawler
        from crawlee.http_clients import ImpitHttpClient
        from crawlee.storage_clients import MemoryStorageClient
        from robots_decisions.crawlee import PermitHooks

        async with PermitHooks(service, agent="ExampleBot", **settings) as hooks:
            crawler = HttpCrawler(
                http_client=hooks.http_client() if self._own_client else ImpitHttpClient(),
                storage_client=MemoryStorageClient(),
                concurrency_settings=ConcurrencySettings(desired_concurrency=4, max_concurrency=4),
                max_request_retries=1,
                retry_on_blocked=False,
                configure_logging=False,
            )
            hooks.install(crawler)

            @crawler.router.default_handler
            async def page(context: "HttpCrawlingContext") -> None:
                self.fetched.append(context.request.url)
                self.versions.add(context.request.user_data.get("robots_version"))

            @crawler.failed_request_handler
            async def failed(context: "BasicCrawlingContext", error: Exception) -> None:
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


async def test_page_waits_for_a_service_that_fails() -> None:
    permitting, site = Permitting(httpx.Response(500), httpx.Response(502), allow()), Site("")
    async with serve(permitting) as service, serve(site) as origin:
        came = Crawl()
        await came.run(service.url, f"{origin.url}/page")
    assert (came.fetched, came.failed) == ([f"{origin.url}/page"], {})
    assert (len(permitting.asked), site.paths) == (3, ["/page"])


async def redirected(own_client: bool, location: str) -> tuple[Crawl, Site, Permitting]:
    """A crawl of a page that redirects."""
    moved = text(302, "", {**HTML, "Location": location})
    site = Site("", {"/moved": [moved]})
    permitting = Permitting(
        lambda asked: disallow() if "/private/" in asked["url"] else allow(permit=asked["url"].rpartition("/")[2])
    )
    came = Crawl(own_client=own_client)
    async with serve(permitting) as service, serve(site) as origin:
        await came.run(service.url, f"{origin.url}/moved")
    return came, site, permitting


async def test_redirect_to_a_disallowed_page_is_not_followed() -> None:
    came, site, permitting = await redirected(True, "/private/page")
    assert (site.paths, came.fetched) == (["/moved"], [])
    assert [type(error).__name__ for error in came.failed.values()] == ["Disallowed"]
    assert len(permitting.asked) == 2


async def test_redirect_is_followed_in_its_own_slot() -> None:
    came, site, permitting = await redirected(True, "/page")
    assert site.paths == ["/moved", "/page"]
    assert [url.rpartition("/")[2] for url in came.fetched] == ["moved"]
    assert [(item["permit"], item["status"]) for item in permitting.collected] == [("moved", 302), ("page", 200)]


async def test_page_behind_a_redirect_to_a_disallowed_one_fails() -> None:
    came, _, _ = await redirected(False, "/private/page")
    assert came.fetched == []
    assert [type(error).__name__ for error in came.failed.values()] == ["Disallowed"]


async def test_endless_redirect_fails() -> None:
    came, site, _ = await redirected(True, "/moved")
    assert came.fetched == []
    assert "behind more than 20 redirects" in str(next(iter(came.failed.values())))
    assert len(site.log) % 21 == 0
