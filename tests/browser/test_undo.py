"""One undo, and one redo, of all that happens to the file on the tester page, in a real Chromium."""

import re
from itertools import pairwise
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from tests.browser.tester import Visitor, visiting
from tests.origins import serve, text

pytestmark = pytest.mark.asyncio(loop_scope="session")

FIRST = "User-agent: *\nDisallow: private/\nDisallow: /"
TYPED = f"{FIRST}tea"
FIXED = TYPED.replace("private", "/private")
FETCHED = "User-agent: PetalBot\nDisallow: /\n"

FIELDS = ("robots", "other", "urls", "agents")


async def shown(visitor: Visitor) -> dict[str, Any]:
    """What the page shows once it is at rest: its fields, the file, and the table."""
    await expect(visitor.page.locator("#verdicts")).not_to_have_attribute("aria-busy", "true")
    await expect(visitor.page.locator("#stale")).to_be_hidden()
    fields = {name: await visitor.value(name) for name in FIELDS}
    return {
        **fields,
        "lines": await visitor.page.locator("#editor .cm-line").all_text_contents(),
        "crawlers": await visitor.page.locator("#table > thead").text_content(),
        "verdicts": await visitor.cells(),
        "sentence": await visitor.text("#sentence"),
    }


async def change_all(visitor: Visitor, site: str) -> list[dict[str, Any]]:
    """Type, fix, fetch and follow a recipe; what the page shows before, between and afterwards."""
    robots = visitor.page.locator("#robots")
    await visitor.ask(robots=FIRST)
    states = [await shown(visitor)]
    await robots.press("Control+End")
    await robots.press_sequentially("tea")
    states.append(await shown(visitor))
    await visitor.page.get_by_role("button", name="Fix it: line 2").click()
    states.append(await shown(visitor))
    await visitor.fetch(site)
    await visitor.holds("robots", FETCHED)
    states.append(await shown(visitor))
    await visitor.page.get_by_role("button", name="Recipes").click()
    await visitor.page.get_by_role("button", name="Block AI training", exact=True).click()
    await visitor.holds("other", re.compile(".+", re.DOTALL))
    states.append(await shown(visitor))
    assert [state["robots"] for state in states] == [FIRST, TYPED, FIXED, FETCHED, FETCHED]
    for before, after in pairwise(states):
        assert before["verdicts"] != after["verdicts"]
    return states


@pytest.mark.parametrize("place", ["#other", "[data-opens=recipes]"])
async def test_undo_and_redo_go_through_all_that_changed_the_file(service: str, browser: Browser, place: str) -> None:
    async with serve(text(200, FETCHED)) as origin, visiting(browser, service) as visitor:
        await visitor.open()
        states = await change_all(visitor, origin.url)
        await visitor.page.locator(place).focus()
        for state in reversed(states[:-1]):
            await visitor.page.keyboard.press("Control+z")
            assert await shown(visitor) == state
        for key, state in zip(("Control+Shift+z", "Control+y") * 2, states[1:], strict=True):
            await visitor.page.keyboard.press(key)
            assert await shown(visitor) == state


async def test_undo_beside_a_change_takes_back_what_came_after(service: str, browser: Browser) -> None:
    async with serve(text(200, FETCHED)) as origin, visiting(browser, service) as visitor:
        await visitor.open()
        states = await change_all(visitor, origin.url)
        await visitor.page.locator("#bring-back").click()
        assert await shown(visitor) == states[3]
        await expect(visitor.page.locator("#robots")).to_be_focused()
        # What is typed now takes the place of what could be redone.
        await visitor.page.keyboard.press("Control+End")
        await visitor.page.keyboard.type("# end")
        await visitor.page.keyboard.press("Control+y")
        await visitor.holds("robots", f"{FETCHED}# end")
        for state in reversed(states[:-1]):
            await visitor.page.keyboard.press("Control+z")
            assert await shown(visitor) == state
        # Another fetch after an undone one asks about the crawlers that the file names.
        await visitor.fetch(origin.url)
        await visitor.holds("agents", states[3]["agents"])


async def test_text_that_a_failed_fetch_removed_comes_back(service: str, browser: Browser) -> None:
    async with serve(text(503)) as broken, visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.ask(robots=FIRST)
        await visitor.page.reload()  # the text is the kept one now, and not typed
        await visitor.unfold()
        before = await shown(visitor)
        await visitor.fetch(broken.url)
        await visitor.holds("robots", "")
        await expect(visitor.page.locator("#sentence")).to_contain_text("error 503")
        await visitor.page.locator("#robots").press("Control+z")
        assert await shown(visitor) == before
        await visitor.page.locator("#robots").press("Control+y")
        await visitor.holds("robots", "")


async def test_undo_takes_back_a_word_or_a_line_and_not_a_letter(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        robots = visitor.page.locator("#robots")
        for name in ("robots", "urls"):
            field = visitor.page.locator(f"#{name}")
            await visitor.write(name, "/a")
            await field.press_sequentially("bc\nde")
            await field.press("Backspace")
            await field.press("Backspace")
            seen = []
            for _ in range(5):
                await field.press("Control+z")
                seen.append(await visitor.value(name))
            assert seen[:4] == ["/abc\nde", "/abc\n", "/abc", "/a"]
            await field.press("Control+Shift+z")
            await visitor.holds(name, "/a")
        # The cursor goes where the text changes.
        await visitor.write("robots", "/a/c")
        await robots.press("Control+Home")
        await robots.press("ArrowRight")
        await robots.press("ArrowRight")
        await robots.press_sequentially("b")
        await robots.press("Control+End")
        await robots.press("Control+z")
        await robots.press_sequentially("B")
        await visitor.holds("robots", "/aB/c")
