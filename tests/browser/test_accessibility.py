"""The pages by the rules of axe-core: WCAG 2.2 A and AA, and its own best practices."""

import pytest
from playwright.async_api import Browser, expect

from tests.browser.tester import PHONE, violations, visiting
from tests.origins import serve, text

pytestmark = pytest.mark.asyncio(loop_scope="session")

FILE = "User-agent: *\nContent-Signal: search=yes, ai-train=no\nDissalow: /basket/\nCrawl-delay: 5\n"
OTHER = "User-agent: *\nDisallow: /\nRequest-rate: 1/10s 0800-2000\n"


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_example_breaks_no_rule(service: str, browser: Browser, scheme: str) -> None:
    async with visiting(browser, service, color_scheme=scheme) as visitor:
        await visitor.open()
        assert await violations(visitor) == []


async def test_axe_finds_what_is_wrong(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.evaluate("document.getElementById('label-of-urls').remove()")
        assert "aria-input-field-name" in {it.partition(":")[0] for it in await violations(visitor)}


@pytest.mark.parametrize("options", [{}, {"viewport": PHONE, "color_scheme": "dark"}], ids=["desktop", "phone"])
async def test_everything_on_the_page_at_once_breaks_no_rule(
    service: str, browser: Browser, options: dict[str, object]
) -> None:
    urls = "".join(f"/basket/{number} ExampleBot allow\n" for number in range(12)) + "http://[/\n"
    async with visiting(browser, service, **options) as visitor:
        await visitor.open()
        await visitor.page.locator("#compare").click()
        await visitor.page.get_by_role("checkbox", name="AI training").check()
        await visitor.ask(robots=FILE, other=OTHER, agents="ExampleBot\nGooglebot\n!!", urls=urls)
        await visitor.page.locator("#editor .deciding").first.click()
        await visitor.page.locator("#link").click()
        await expect(visitor.page.locator("#linked")).to_be_visible()
        assert await violations(visitor) == []


async def test_view_of_the_service_breaks_no_rule(service: str, browser: Browser) -> None:
    async with serve(text(200, FILE)) as origin, visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.fetch(origin.url)
        await expect(visitor.page.locator("#versions")).to_be_visible()
        async with visitor.page.expect_response(lambda response: response.url.endswith("/v1/allowed")):
            await visitor.page.get_by_label("what our crawlers do now").check()
        await expect(visitor.page.locator(".facts")).to_be_visible()
        assert await violations(visitor) == []


async def test_empty_and_invalid_questions_break_no_rule(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.write("robots", "")
        await visitor.write("urls", "")
        await visitor.page.locator("#test").click()
        await expect(visitor.page.locator("#urls-said")).to_have_text("Enter at least one URL.")
        assert await violations(visitor) == []
        await visitor.page.locator("#site").fill("http://private.example/")
        await visitor.page.locator("#site").press("Enter")
        await expect(visitor.page.locator("#site-said")).to_contain_text("not public")
        await expect(visitor.page.locator(".facts")).to_be_visible()
        assert await violations(visitor) == []


async def test_line_with_undo_breaks_no_rule(service: str, browser: Browser) -> None:
    async with serve(text(200, FILE)) as origin, visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.ask(robots=OTHER, urls="https://a.example/")
        await visitor.fetch(origin.url)
        await expect(visitor.page.locator("#back")).to_be_visible()
        await visitor.write("robots", FILE * 200)
        await expect(visitor.page.get_by_role("button", name="Undo")).to_have_count(2)
        assert await violations(visitor) == []
