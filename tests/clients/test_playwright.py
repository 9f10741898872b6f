"""The guard of a page in a real Chromium: each document waits for its slot, and redirects are asked about first."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import pytest
from playwright.async_api import Error, Page, async_playwright
from robots_decisions import AsyncClient, Deferred, Disallowed, ServiceUnavailable
from robots_decisions.playwright import Guard, guard

from tests.browser.tester import ARGUMENTS, binary
from tests.clients.site import HTML, Site, new_address
from tests.engines import free_port
from tests.origins import serve, text

WAY = ["/to-open", "/hop", "/open"]
ROBOTS = "User-agent: *\nDisallow: /private/\nCrawl-delay: 0.1\n"
CHAIN: Mapping[str, str | Sequence[bytes]] = {
    "/to-private": [text(302, "", {"Location": "/private/from-redirect", **HTML})],
    "/to-open": [text(301, "", {"Location": "/hop", **HTML})],
    "/hop": [text(307, "", {"Location": "/open", **HTML})],
    "/framing": "<iframe src=/private/frame></iframe><iframe src=/open></iframe><img src=/private/image.png>",
    "/busy": [text(503, "", {"Retry-After": "100", **HTML})],
}


class Recording(AsyncClient):
    """A client that notes which permits were asked for."""

    asked: ClassVar[list[str]] = []

    def permit(self, url: str, *arguments: Any, **settings: Any) -> Any:
        self.asked.append(url.partition("#")[0])
        return super().permit(url, *arguments, **settings)


@asynccontextmanager
async def guarded(service: str) -> AsyncIterator[tuple[Page, Guard]]:
    async with async_playwright() as playwright, Recording(service, agent="ExampleBot", max_wait=10) as client:
        browser = await playwright.chromium.launch(executable_path=binary(), args=ARGUMENTS, headless=True)
        try:
            page = await browser.new_page()
            yield page, await guard(page, client)
        finally:
            await browser.close()


async def test_documents_and_redirects_are_fetched_with_slots(service_url: str) -> None:
    site = Site(ROBOTS, CHAIN)
    async with serve(site, host=new_address()) as origin, guarded(service_url) as (page, guarding):
        response = await page.goto(f"{origin.url}/to-open")
        assert response is not None
        assert (response.status, page.url) == (200, f"{origin.url}/open")
        await page.goto(f"{origin.url}/page#part")
    pages = [*WAY, "/page"]
    assert [path for path in site.paths if path in pages] == pages
    assert Recording.asked[-len(pages) :] == [origin.url + path for path in pages]
    assert guarding.error is None


async def test_refused_documents_are_not_requested_also_by_redirects(service_url: str) -> None:
    site = Site(ROBOTS, CHAIN)
    async with serve(site, host=new_address()) as origin, guarded(service_url) as (page, guarding):
        for path, refused in (("/private/x", "/private/x"), ("/to-private", "/private/from-redirect")):
            with pytest.raises(Error, match="ERR_BLOCKED_BY_CLIENT"):
                await page.goto(origin.url + path)
            assert isinstance(guarding.error, Disallowed)
            assert str(guarding.error).startswith(f"{origin.url}{refused} may not be fetched")
    assert not [path for path in site.paths if path.startswith("/private/")]


async def test_frames_are_asked_about_and_other_parts_are_not(service_url: str) -> None:
    site = Site(ROBOTS, CHAIN)
    async with serve(site, host=new_address()) as origin, guarded(service_url) as (page, guarding):
        await page.goto(f"{origin.url}/framing")
    assert isinstance(guarding.error, Disallowed)
    assert {"/open", "/private/image.png"} <= set(site.paths)
    assert "/private/frame" not in site.paths


async def test_statuses_are_reported_so_that_a_busy_site_is_left_alone(service_url: str) -> None:
    async with serve(Site(ROBOTS, CHAIN), host=new_address()) as origin, guarded(service_url) as (page, guarding):
        response = await page.goto(f"{origin.url}/busy")
        assert response is not None
        assert response.status == 503
        with pytest.raises(Error, match="ERR_BLOCKED_BY_CLIENT"):
            await page.goto(f"{origin.url}/page")
    assert isinstance(guarding.error, Deferred)
    assert guarding.error.seconds > 50


async def test_without_a_service_nothing_is_requested() -> None:
    site = Site(ROBOTS)
    async with (
        serve(site, host=new_address()) as origin,
        guarded(f"http://127.0.0.1:{free_port()}") as (page, guarding),
    ):
        with pytest.raises(Error, match="ERR_BLOCKED_BY_CLIENT"):
            await page.goto(f"{origin.url}/page")
    assert isinstance(guarding.error, ServiceUnavailable)
    assert site.log == []
