"""The first table on a slow net: few requests, few bytes, and none that waits for another without need."""

import asyncio

import pytest
from playwright.async_api import Browser, Route, expect

from tests.browser.tester import Visitor, visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")

MOST_REQUESTS = 8
MOST_BYTES = 75_000


async def _hold_script(visitor: Visitor, until: asyncio.Event) -> None:
    """Hold the script of the page back."""

    async def hold(route: Route) -> None:
        await until.wait()
        await route.continue_()

    await visitor.page.route("**/web/page.js", hold)


async def test_first_table_takes_few_requests_and_bytes(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        sizes: list[int] = []
        session = await visitor.page.context.new_cdp_session(visitor.page)
        await session.send("Network.enable")
        session.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
        # What crawlers are for is known only after the table.
        await visitor.page.route("**/v1/agents", lambda route: route.fulfill(json={"agents": []}))
        await visitor.page.goto(service)
        await expect(visitor.page.locator("#table button").first).to_be_visible()
        assert 4 < len(visitor.asked) <= MOST_REQUESTS, visitor.asked
        assert 40_000 < sum(sizes) < MOST_BYTES


async def test_example_is_asked_about_before_the_script_is_there(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        answered = asyncio.Event()
        await _hold_script(visitor, answered)
        visitor.page.on("response", lambda response: answered.set() if "v1/test" in response.url else None)
        await visitor.page.goto(service)
        await expect(visitor.page.locator("#sentence")).to_contain_text("GPTBot may fetch none")
        assert [url for url in visitor.asked if "v1/test" in url] == [f"{service}v1/test"]


@pytest.mark.parametrize("known", ["#1=x", "draft"])
async def test_example_is_not_asked_about_if_the_page_begins_otherwise(
    service: str, browser: Browser, known: str
) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        if known == "draft":
            await visitor.ask(agents="ExampleBot")
            await visitor.page.reload()  # which keeps the draft
            await visitor.holds("agents", "ExampleBot")
            known = ""
        await visitor.page.goto("about:blank")
        visitor.asked.clear()
        for_ever = asyncio.Event()
        await _hold_script(visitor, for_ever)
        await visitor.page.goto(f"{service}{known}", wait_until="commit")
        await visitor.evaluate("import('/web/first.js')")  # it has run
        assert [url for url in visitor.asked if "v1/" in url] == []
        for_ever.set()
        await expect(visitor.page.locator("#table button").first).to_be_visible()


async def test_answer_that_comes_late_is_not_taken_for_a_later_question(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        shown = asyncio.Event()

        async def hold(route: Route) -> None:
            await shown.wait()
            await route.continue_()

        await visitor.page.route("**/web/first.js", hold)
        await visitor.page.goto(service, wait_until="commit")
        await expect(visitor.page.locator("#table button").first).to_be_visible()
        shown.set()
        await visitor.evaluate("import('/web/first.js')")  # it has run
        assert len([url for url in visitor.asked if "v1/test" in url]) == 1
        async with visitor.page.expect_response("**/v1/test"):
            await visitor.page.keyboard.press("Control+Enter")
