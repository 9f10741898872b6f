"""The URLs of a fetched file's sitemaps: read when the user asks, and tested by a button with their number."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, expect

from tests.browser.tester import Visitor, violations, visiting
from tests.origins import Exchange, LoopbackOrigin, serve, text

pytestmark = pytest.mark.asyncio(loop_scope="session")

RULES = "User-agent: *\nDisallow: /private/\n"


@asynccontextmanager
async def site(status: int, sitemap: str, rules: str = RULES) -> AsyncIterator[LoopbackOrigin]:
    """A site with one sitemap, in which `{}` is its URL."""

    async def reply(exchange: Exchange) -> None:
        if exchange.path == "/robots.txt":
            await exchange.send(text(200, f"{rules}Sitemap: {origin.url}/sitemap.xml\n"))
        else:
            await exchange.send(text(status, sitemap.replace("{}", origin.url)))

    async with serve(reply) as origin:
        yield origin


async def opened(visitor: Visitor, origin: LoopbackOrigin) -> None:
    await visitor.page.goto(visitor.url)
    await visitor.fetch(origin.url)
    await expect(visitor.page.locator("#facts")).to_contain_text("1 sitemap named.")


async def test_urls_of_the_sitemap_are_tested_by_two_keys(service: str, browser: Browser) -> None:
    urls = "".join(f"{{}}/{'private' if number % 3 == 0 else 'open'}/{number}\n" for number in range(12))
    urls += "https://other.example/\n"
    async with site(200, urls) as origin, visiting(browser, service) as visitor:
        await opened(visitor, origin)
        assert [url for url in visitor.asked if "sitemaps" in url] == []
        await visitor.page.get_by_role("button", name="Read its URLs").focus()
        await visitor.page.keyboard.press("Enter")
        test = visitor.page.get_by_role("button", name="Test its 12 URLs")
        await expect(test).to_be_focused()
        await expect(visitor.page.locator("#facts")).to_contain_text("1 URL of other sites left out.")
        assert await violations(visitor) == []
        await visitor.page.keyboard.press("Enter")
        await expect(visitor.page.locator("[data-opens=ask-urls]")).to_have_text("12 URLs")
        await expect(visitor.page.locator("#sentence")).to_contain_text("may fetch 8 of 12 URLs")
        await visitor.unfold()
        await visitor.page.locator("#urls").focus()
        await visitor.page.keyboard.press("Control+z")
        await visitor.holds("urls", origin.url)


@pytest.mark.parametrize(
    ("status", "sitemap", "rules", "said"),
    [
        (404, "", RULES, "It answers 404."),
        (200, "<!DOCTYPE html>", RULES, "It is a web page."),
        (200, "<urlset/>", "User-agent: RobotsDecisions\nDisallow: /\n", "closed to RobotsDecisions by line 2"),
        (200, "<urlset/>", RULES, "No URL of this site is listed."),
    ],
)
async def test_sitemap_without_urls_says_why(
    service: str, browser: Browser, status: int, sitemap: str, rules: str, said: str
) -> None:
    async with site(status, sitemap, rules) as origin, visiting(browser, service) as visitor:
        await opened(visitor, origin)
        await visitor.page.get_by_role("button", name="Read its URLs").click()
        await expect(visitor.page.locator("#facts")).to_contain_text(said)


async def test_sitemaps_of_a_file_that_cannot_be_read_now(service: str, browser: Browser) -> None:
    answer = {"urls": [], "sitemaps": [], "other_origins": 0, "unread": 0, "complete": False, "version": None}
    async with site(200, "<urlset/>") as origin, visiting(browser, service) as visitor:
        await opened(visitor, origin)
        await visitor.page.route("**/v1/robots/sitemaps*", lambda route: route.fulfill(json=answer))
        await visitor.page.get_by_role("button", name="Read its URLs").click()
        said = "robots.txt cannot be read now, so no sitemap is known. Try again later."
        await expect(visitor.page.locator("#facts [role=status]")).to_have_text(said)


async def test_sitemap_of_a_pasted_file_is_only_counted(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await expect(visitor.page.locator("#facts")).to_contain_text("1 sitemap named.")
        await expect(visitor.page.get_by_role("button", name="Read its URLs")).to_have_count(0)
