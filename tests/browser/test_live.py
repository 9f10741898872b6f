"""The tester page answers while its user types and pastes, and shows the file beside the verdicts."""

import asyncio
from datetime import timedelta

import pytest
from playwright.async_api import Browser, Route, ViewportSize, expect

from tests.browser.tester import NOW, PASTE, visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")

CLOSED, OPEN = "User-agent: *\nDisallow: /\n", "User-agent: *\nAllow: /\n"
LARGE_SCREEN = ViewportSize(width=1440, height=900)

BROWSER_PASTES = """field => {
    window.pasted = 0;
    field.addEventListener("beforeinput", (event) => { window.pasted += event.inputType === "insertFromPaste"; });
}"""


async def test_changes_are_tested_without_a_click(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.page.locator("#robots").fill(CLOSED)
        await expect(visitor.page.locator("#summary")).to_contain_text("40 verdicts: 0 allowed, 40 blocked.")
        await visitor.page.locator("#agents").fill("ExampleBot")
        await expect(visitor.page.locator("#summary")).to_contain_text("10 verdicts: 0 allowed, 10 blocked.")
        await visitor.page.get_by_label("Google", exact=True).check()
        await expect(visitor.page.locator("#table thead")).to_contain_text("Google")
        await visitor.page.locator("#urls").fill("")
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
        await robots.evaluate(PASTE, CLOSED)
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
            await visitor.page.locator("#robots").fill(CLOSED)
        await visitor.page.locator("#robots").fill(OPEN)
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
        await visitor.page.locator("#robots").fill(CLOSED)
        await expect(visitor.page.locator("#stale-why")).to_contain_text("The test failed.")
        await visitor.page.unroute("**/v1/test")
        asked = len(visitor.asked)
        await visitor.page.locator("#robots").fill(OPEN)
        await expect(visitor.page.locator("#stale-why")).to_have_text("The question has changed.")
        assert len(visitor.asked) == asked
        await visitor.page.locator("#again").click()
        await expect(visitor.page.locator("#summary")).to_contain_text("40 allowed")
        await visitor.page.locator("#robots").fill(CLOSED)
        await expect(visitor.page.locator("#summary")).to_contain_text("40 blocked")


async def test_long_paste_does_not_go_through_the_browser(service: str, browser: Browser) -> None:
    pasted = "".join(f"Disallow: /some/long/path/{number}\n" for number in range(15_000))
    async with visiting(browser, service, permissions=["clipboard-read", "clipboard-write"]) as visitor:
        await visitor.open()
        robots = visitor.page.locator("#robots")
        await robots.fill("User-agent: *\n# end\n")
        await robots.evaluate(BROWSER_PASTES)
        await visitor.evaluate("text => navigator.clipboard.writeText(text)", pasted)
        await robots.focus()
        await robots.evaluate("field => field.setSelectionRange(14, 14)")
        await visitor.page.keyboard.press("Control+V")
        await expect(visitor.page.locator("#listing-facts")).to_contain_text("15,002 lines")
        assert await robots.input_value() == f"User-agent: *\n{pasted}# end\n"
        assert await robots.evaluate("field => field.selectionStart") == 14 + len(pasted)
        assert await visitor.evaluate("window.pasted") == 0
        # A short paste is the browser's own, so that it can be undone.
        await visitor.evaluate("text => navigator.clipboard.writeText(text)", "Allow: /x\n")
        await visitor.page.keyboard.press("Control+V")
        await expect(visitor.page.locator("#listing-facts")).to_contain_text("15,003 lines")
        assert await visitor.evaluate("window.pasted") == 1


async def test_verdict_and_its_line_are_in_view_together(service: str, browser: Browser) -> None:
    async with visiting(browser, service, viewport=LARGE_SCREEN) as visitor:
        await visitor.open()
        for row in (0, 1, 4):
            await visitor.page.evaluate("scrollTo(0, 0)")
            await visitor.page.locator(f"button[data-row='{row}'][data-column='0']").focus()
            await visitor.page.keyboard.press("Enter")
            await expect(visitor.page.locator("[aria-selected=true]")).to_be_in_viewport(ratio=0.9)
            await expect(visitor.page.locator("#why-body .summary")).to_be_in_viewport(ratio=0.9)
            await expect(visitor.page.locator("#lines")).to_be_in_viewport(ratio=0.9)
        await visitor.choose(2, 0)
        await expect(visitor.page.locator(".is-decides")).to_be_in_viewport()
        # Further down, the lines stay beside the explanation.
        await visitor.page.locator("#why h3").last.scroll_into_view_if_needed()
        await expect(visitor.page.locator(".is-decides")).to_be_in_viewport()
