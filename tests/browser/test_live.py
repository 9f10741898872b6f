"""The tester page answers while its user types and pastes, and shows the file beside the verdicts."""

import asyncio
from datetime import timedelta

import pytest
from playwright.async_api import Browser, Route, ViewportSize, expect

from tests.browser.tester import NOW, visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")

CLOSED, OPEN = "User-agent: *\nDisallow: /\n", "User-agent: *\nAllow: /\n"
LARGE_SCREEN = ViewportSize(width=1440, height=900)


async def test_changes_are_tested_without_a_click(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.write("robots", CLOSED)
        await expect(visitor.page.locator("#summary")).to_contain_text("40 verdicts: 0 allowed, 40 blocked.")
        await visitor.write("agents", "ExampleBot")
        await expect(visitor.page.locator("#summary")).to_contain_text("10 verdicts: 0 allowed, 10 blocked.")
        await visitor.page.get_by_label("Google", exact=True).check()
        await expect(visitor.page.locator("#table thead")).to_contain_text("Google")
        await visitor.write("urls", "")
        await expect(visitor.page.locator("#urls-said")).to_have_text("Enter at least one URL.")
        await expect(visitor.page.locator("#stale-why")).to_have_text("The question is incomplete.")


async def test_pasted_file_is_tested_without_a_pause(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.page.clock.pause_at(NOW + timedelta(hours=1))
        asked: list[str] = []

        async def note(route: Route) -> None:
            asked.append((route.request.post_data_json or {})["robots"])
            await route.continue_()

        await visitor.page.route("**/v1/test", note)
        robots = visitor.page.locator("#robots")
        await robots.press("Control+End")
        await robots.press("#")
        await visitor.page.clock.run_for(200)
        assert asked == []
        await visitor.write("robots", CLOSED)
        await visitor.page.clock.run_for(1)
        await expect(visitor.page.locator("#summary")).to_contain_text("40 blocked")
        assert asked == [CLOSED]


async def test_last_answer_wins(service: str, browser: Browser) -> None:
    second_is_shown = asyncio.Event()

    async def late(route: Route) -> None:
        if "Disallow" in (route.request.post_data or ""):
            await second_is_shown.wait()
        await route.continue_()

    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.page.route("**/v1/test", late)
        async with visitor.page.expect_request("**/v1/test"):
            await visitor.write("robots", CLOSED)
        await visitor.write("robots", OPEN)
        await expect(visitor.page.locator("#summary")).to_contain_text("40 allowed")
        second_is_shown.set()
        await visitor.page.unroute_all(behavior="wait")
        assert "40 allowed" in await visitor.text("#summary")
        assert await visitor.page.locator("#verdicts").get_attribute("aria-busy") is None


async def test_live_test_pauses_after_a_failure(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()

        async def refuse(route: Route) -> None:
            await route.fulfill(status=429, body="")

        await visitor.page.route("**/v1/test", refuse)
        await visitor.write("robots", CLOSED)
        await expect(visitor.page.locator("#stale-why")).to_contain_text("The test failed.")
        await visitor.page.unroute("**/v1/test")
        asked = len(visitor.asked)
        await visitor.write("robots", OPEN)
        await expect(visitor.page.locator("#stale-why")).to_have_text("The question has changed.")
        assert len(visitor.asked) == asked
        await visitor.page.locator("#again").click()
        await expect(visitor.page.locator("#summary")).to_contain_text("40 allowed")
        await visitor.write("robots", CLOSED)
        await expect(visitor.page.locator("#summary")).to_contain_text("40 blocked")


async def test_long_text_is_pasted_from_the_clipboard(service: str, browser: Browser) -> None:
    pasted = "".join(f"Disallow: /some/long/path/{number}\n" for number in range(15_000))
    async with visiting(browser, service, permissions=["clipboard-read", "clipboard-write"]) as visitor:
        await visitor.open()
        await visitor.write("robots", "User-agent: *\n# end\n")
        await visitor.evaluate("text => navigator.clipboard.writeText(text)", pasted)
        await visitor.page.locator("#robots").press("Control+Home")
        await visitor.page.keyboard.press("ArrowDown")
        await visitor.page.keyboard.press("Control+V")
        await expect(visitor.page.locator("#listing-facts")).to_contain_text("15,002 lines")
        assert await visitor.value("robots") == f"User-agent: *\n{pasted}# end\n"
        # All of it is copied, though only a part is drawn.
        await visitor.page.keyboard.press("Control+A")
        await visitor.page.keyboard.press("Control+C")
        assert await visitor.evaluate("navigator.clipboard.readText()") == f"User-agent: *\n{pasted}# end\n"


async def test_verdict_and_its_line_are_in_view_together(service: str, browser: Browser) -> None:
    async with visiting(browser, service, viewport=LARGE_SCREEN) as visitor:
        await visitor.open()
        for row in (0, 1, 4):
            await visitor.page.evaluate("scrollTo(0, 0)")
            await visitor.page.locator(f"button[data-row='{row}'][data-column='0']").focus()
            await visitor.page.keyboard.press("Enter")
            await expect(visitor.page.locator("[aria-selected=true]")).to_be_in_viewport(ratio=0.9)
            await expect(visitor.page.locator("#why-body .summary")).to_be_in_viewport(ratio=0.9)
            await expect(visitor.page.locator("#editor")).to_be_in_viewport(ratio=0.9)
        await visitor.choose(2, 0)
        await expect(visitor.page.locator(".is-decides")).to_be_in_viewport()
        # Further down, the lines stay beside the explanation.
        await visitor.page.locator("#why h3").last.scroll_into_view_if_needed()
        await expect(visitor.page.locator(".is-decides")).to_be_in_viewport()
