"""What a page itself says, beside the verdict: one fetch at a click, for fetched sites alone."""

import pytest
from playwright.async_api import Browser, expect

from tests.browser.tester import PHONE, violations, visiting
from tests.origins import Exchange, serve, text

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGE = "<link rel=stylesheet href=/closed/a.css><script src=/b.js></script><meta name=robots content=noindex>"
RULES = "User-agent: *\nDisallow: /closed/\n\nUser-agent: GPTBot\nDisallow: /\n"
HTML = {"Content-Type": "text/html", "X-Robots-Tag": "nofollow"}
QUESTION = "What does the page itself say?"


@pytest.mark.parametrize("options", [{}, {"viewport": PHONE, "color_scheme": "dark"}], ids=["desktop", "phone"])
async def test_rules_of_the_page_and_what_it_loads_are_shown(
    service: str, browser: Browser, options: dict[str, object]
) -> None:
    async def reply(exchange: Exchange) -> None:
        await exchange.send(text(200, RULES) if exchange.path == "/robots.txt" else text(200, PAGE, HTML))

    async with serve(reply) as origin, visiting(browser, service, **options) as visitor:
        await visitor.page.goto(service)
        await visitor.fetch(origin.url)
        await expect(visitor.page.locator("#sentence")).to_contain_text("GPTBot may not fetch it: line 5")
        await visitor.page.locator("#table .cell", has_text="Allowed").first.click()
        button = visitor.page.get_by_role("button", name=QUESTION)
        await expect(button).to_be_visible()
        assert len(origin.requests) == 1
        await button.click()
        said = visitor.page.locator(".page-itself")
        await expect(said).to_contain_text("not to be shown in search results, to follow no link")
        await expect(said).to_contain_text("nofollow, noindex (X-Robots-Tag and a meta tag)")
        await expect(said).to_contain_text("1 of the 2 style sheets and scripts that it loads")
        await expect(said).to_contain_text("/closed/a.css, line 2")
        assert await violations(visitor) == []
        # It is kept while other verdicts are chosen, and asked for once for each crawler.
        await visitor.page.locator("#table .cell", has_text="Blocked").first.click()
        await visitor.page.get_by_role("button", name=QUESTION).click()
        await expect(said).to_contain_text("is never read")
        await visitor.page.locator("#table .cell", has_text="Allowed").first.click()
        await expect(said).to_contain_text("/closed/a.css, line 2")
        assert len(origin.requests) == 3


async def test_page_that_the_service_may_not_fetch_says_so(service: str, browser: Browser) -> None:
    rules = "User-agent: RobotsDecisions\nDisallow: /\n"
    async with serve(text(200, rules)) as origin, visiting(browser, service) as visitor:
        await visitor.page.goto(service)
        await visitor.fetch(origin.url)
        await visitor.page.get_by_role("button", name=QUESTION).click()
        await expect(visitor.page.locator(".page-itself")).to_contain_text("closed to RobotsDecisions by line 2")
        assert len(origin.requests) == 1


async def test_pages_of_the_example_are_not_asked_about(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await expect(visitor.page.get_by_role("button", name=QUESTION)).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_how_it_decides_is_told_on_the_page(service: str, browser: Browser, scheme: str) -> None:
    async with visiting(browser, service, color_scheme=scheme) as visitor:
        await visitor.open()
        await visitor.page.get_by_role("button", name="How it decides").click()
        await expect(visitor.page.locator("#how")).to_contain_text("the longest rule that matches")
        assert await violations(visitor) == []
