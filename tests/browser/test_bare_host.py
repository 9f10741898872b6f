"""On the page, a bare host means https, and http where https cannot be reached."""

import pytest
from playwright.async_api import Browser, expect

from tests.browser.tester import visiting
from tests.origins import http_only, serve, text

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_site_without_https_is_fetched_by_http(service: str, browser: Browser) -> None:
    reply = text(200, "User-agent: *\nDisallow: /private/\n")
    async with serve(at_once=http_only(reply)) as origin, visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.fetch(f"{origin.url.removeprefix('http://')}/private/page")
        await expect(visitor.page.locator("#site-said")).to_contain_text(f"{origin.url}/robots.txt · fetched just now")
        assert await visitor.page.locator("#site").input_value() == f"{origin.url}/private/page"


async def test_lines_of_the_question_may_be_bare(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.write("urls", "shop.example/basket/1\nshop.example/ allowed\nnonsense")
        await visitor.page.locator("#test").click()
        await expect(visitor.page.locator("#urls-said")).to_contain_text("nonsense")
        await visitor.write("urls", "shop.example/basket/1\nshop.example/ allowed")
        await visitor.page.locator("#test").click()
        await expect(visitor.page.locator("#table")).to_contain_text("shop.example/basket/1/")
