"""The box with the file: a plain field until the editor has come, one history, and what it tells screen readers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, ConsoleMessage, Route, expect

from tests.browser.measure_paste import rules
from tests.browser.tester import Visitor, violations, visiting
from tests.origins import serve, text

pytestmark = pytest.mark.asyncio(loop_scope="session")

FILE = "User-agent: *\nDisallow: /theirs/\n"
MINE = "User-agent: *\nDisallow: /mine/\n"
FAILED = "The editor could not be loaded, so no line is marked here. Load the page again to try once more."


@asynccontextmanager
async def before_the_editor(visitor: Visitor) -> AsyncIterator[None]:
    """The page with its verdicts, while the editor is on its way; it arrives at the end."""
    may_come = asyncio.Event()

    async def hold(route: Route) -> None:
        await may_come.wait()
        await route.continue_()

    await visitor.page.route("**/web/codemirror.js", hold)
    await visitor.page.goto(visitor.url)
    await expect(visitor.page.locator("#table button").first).to_be_visible()
    yield
    may_come.set()
    await expect(visitor.page.locator("#editor .cm-content")).to_be_visible()


async def test_text_that_is_typed_before_the_editor_comes_stays(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        async with before_the_editor(visitor):
            field = visitor.page.locator("textarea#robots")
            example = await field.input_value()
            await field.fill("User-agent: GPTBot\nDisallow: /private/\n")
            await field.evaluate("field => field.setSelectionRange(5, 10)")
            await expect(visitor.page.locator("#sentence")).to_contain_text("GPTBot may fetch 8 of 10 URLs.")
            await visitor.page.locator("[data-opens=ask-agents]").click()
            await visitor.page.locator("textarea#agents").fill("GPTBot")
            await field.focus()
        await expect(visitor.page.locator("#robots")).to_be_focused()
        await visitor.page.keyboard.type("x")
        await visitor.holds("robots", "User-x: GPTBot\nDisallow: /private/\n")
        assert await visitor.value("agents") == "GPTBot"
        # The typed text is a step.
        await visitor.page.keyboard.press("Control+z")
        await visitor.page.keyboard.press("Control+z")
        await visitor.holds("robots", example)


async def test_without_the_editor_the_box_is_a_plain_field(service: str, browser: Browser) -> None:
    async with serve(text(200, FILE)) as origin, visiting(browser, service) as visitor:
        await visitor.page.route("**/web/codemirror.js", lambda route: route.abort())
        await visitor.page.goto(service)
        await expect(visitor.page.locator("#editor-keys")).to_have_text(FAILED)
        field = visitor.page.locator("textarea#robots")
        await field.fill(MINE)
        await expect(visitor.page.locator("#summary")).to_contain_text("40 allowed, 0 blocked.")
        await visitor.fetch(origin.url)
        await expect(field).to_have_value(FILE)
        await visitor.page.locator("#bring-back").click()
        await expect(field).to_have_value(MINE)
        await visitor.page.locator("#compare").click()
        other = visitor.page.get_by_label("Text of your version")
        await expect(other).to_have_value(MINE)
        await other.fill("User-agent: *\nDisallow: /\n")
        await expect(visitor.page.locator("#sentence")).to_contain_text("your change blocks")
        await visitor.page.get_by_label("the file", exact=True).check()
        await expect(field).to_have_value(MINE)
        assert await violations(visitor) == []
        visitor.troubles.clear()  # the aborted request


async def test_undo_of_a_paste_over_a_fetched_file_names_its_site_again(service: str, browser: Browser) -> None:
    async with serve(text(200, FILE)) as origin, visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.fetch(origin.url)
        said = visitor.page.locator("#site-said")
        await expect(said).to_contain_text("fetched just now")
        fact = await said.inner_text()
        await visitor.ask(urls="/theirs/1", agents="ExampleBot")
        host = origin.url.removeprefix("http://")
        assert await visitor.text("#table thead") == f"URL {host} ExampleBot"
        await visitor.write("robots", MINE)
        await expect(said).to_be_empty()
        await expect(visitor.page.locator("#table .verdict")).to_have_text("✓Allowed")
        for key, text_, told in [("Control+z", FILE, fact), ("Control+y", MINE, ""), ("Control+z", FILE, fact)]:
            await visitor.page.locator("#robots").press(key)
            await visitor.holds("robots", text_)
            await expect(said).to_have_text(told)
        await expect(visitor.page.locator("#table .verdict")).to_have_text("✕Blocked")


async def test_clear_and_a_link_are_steps_of_the_undo(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.ask(robots=FILE, agents="ABot")
        await visitor.ask(robots=MINE)
        await visitor.page.get_by_role("button", name="Clear").click()
        await visitor.holds("agents", "Googlebot\nBingbot\nGPTBot\nYandex")
        script = "async (state) => (await (await import('./web/state.js')).fragmentOf(state)).fragment"
        state = {"robots": "User-agent: CBot\n", "other": "", "urls": "https://c.example/", "agents": "CBot"}
        await visitor.evaluate("it => { location.hash = it }", await visitor.evaluate(script, state))
        await visitor.holds("agents", "CBot")
        example = visitor.page.locator("#robots")
        await example.press("Control+z")
        await visitor.holds("agents", "Googlebot\nBingbot\nGPTBot\nYandex")
        await example.press("Control+z")
        await visitor.holds("agents", "ABot")
        await visitor.holds("robots", MINE)
        await example.press("Control+z")
        await visitor.holds("robots", FILE)
        for _ in range(3):
            await example.press("Control+y")
        await visitor.holds("agents", "CBot")
        await visitor.holds("robots", "User-agent: CBot\n")


async def test_lines_that_end_in_other_ways_are_the_same_lines(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.ask(robots="User-agent: *\r\nDisallow: /a\rAllow: /\n", urls="/a", agents="ABot")
        assert await visitor.cells() == [["Blocked, line 2"]]
        assert await visitor.value("robots") == "User-agent: *\nDisallow: /a\nAllow: /\n"


async def test_what_screen_readers_are_told(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.ask(robots=rules(15_000, 0))
        session = await visitor.page.context.new_cdp_session(visitor.page)
        await session.send("Accessibility.enable")
        tree = (await session.send("Accessibility.getFullAXTree"))["nodes"]
        [box] = [
            it
            for it in tree
            if it.get("name", {}).get("value") == "Text of robots.txt" and it["role"]["value"] == "textbox"
        ]
        told = {it["name"]: it["value"].get("value") for it in box["properties"]}
        assert (told["multiline"], told["editable"], told["focusable"]) == (True, "plaintext", True)
        assert "Alt+Enter shows its verdicts" in box["description"]["value"]
        # Only the lines that are drawn are in the tree; the others are as soon as the cursor is there.
        assert "User-agent: *" in box["value"]["value"]
        assert box["value"]["value"].count("\n") < 200
        await visitor.page.locator("#robots").press("Control+End")
        [line] = await visitor.page.locator("#editor .cm-line").filter(has_text="Bot749").all_inner_texts()
        assert line == "User-agent: Bot749"


async def test_deciding_line_is_named_in_the_colours_of_the_system(service: str, browser: Browser) -> None:
    async with visiting(browser, service, forced_colors="active") as visitor:
        await visitor.open()
        await expect(visitor.page.locator("#editor .is-decides .tag")).to_have_text("decides")
        assert await violations(visitor) == []


async def test_search_finds_lines_that_are_not_drawn(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.ask(robots=rules(15_000, 0))
        assert "Bot700" not in await visitor.text("#editor")
        await visitor.page.locator("#robots").press("Control+f")
        await visitor.page.keyboard.type("Bot700")
        await visitor.page.keyboard.press("Enter")
        await expect(visitor.page.locator("#editor .cm-line", has_text="User-agent: Bot700")).to_be_in_viewport()
        assert await violations(visitor) == []
        await visitor.page.keyboard.press("Escape")
        await expect(visitor.page.locator("#editor .cm-search")).to_have_count(0)


async def test_nothing_is_said_on_the_console(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        said: list[ConsoleMessage] = []
        visitor.page.on("console", lambda message: said.append(message))
        await visitor.open()
        for number in range(3):
            await visitor.write("robots", "User-agent: *\n" + f"Dissalow: {'/*' * 60}{number}\n" * 2000)
            await expect(visitor.page.locator("#listing-facts")).to_contain_text("2,001 lines")
            for part in (0.5, 1, 0.2):
                await visitor.page.locator("#editor .cm-scroller").evaluate(
                    f"it => {{ it.scrollTop = it.scrollHeight * {part} }}"
                )
                await visitor.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
        assert [it.text for it in said] == []
