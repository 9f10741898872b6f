"""The tester page on what a file says besides its rules: purposes as columns, and the advice of warnings."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from robots_core.robots.access import Cause
from tests.browser.tester import Visitor, visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")

FILE = (
    "User-agent: *\nContent-Signal: search=yes, ai-train=no\nDisallow: /basket/\n\n"
    "User-agent: FriendlyBot\nDisallowAITraining: /art/\nAllow: /\n"
)
WRONG = "User-agent: *\nDissalow: /basket/ # not yet\nAllow: /open\nDisallow: search\n"


async def _purposes(visitor: Visitor) -> list[list[str]]:
    """The cells of purposes by row, as "No line 2"."""
    script = """table => [...table.tBodies[0].rows].map(row =>
        [...row.querySelectorAll("[data-purpose]")].map(cell => cell.innerText.split(/\\s+/).join(" ").trim()))"""
    found: list[list[str]] = await visitor.page.locator("#table").evaluate(script)
    return found


async def _heads(visitor: Visitor) -> list[str]:
    return await visitor.page.locator("#table thead tr:last-child th").all_inner_texts()


async def test_purposes_are_columns(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        assert await visitor.page.locator("[data-purpose]").count() == 0
        await visitor.ask(
            robots=FILE, agents="ExampleBot\nFriendlyBot", urls="/basket/1\n/art/1\nhttp://[/ ExampleBot allow"
        )
        await visitor.page.get_by_role("checkbox", name="AI training").check()
        await expect(visitor.page.locator("[data-purpose]")).to_have_count(4)
        await visitor.page.get_by_role("checkbox", name="Search").check()
        await expect(visitor.page.locator("[data-purpose]")).to_have_count(8)
        assert await _purposes(visitor) == [
            ["No line 3", "No line 3", "Unstated", "Unstated"],
            ["Yes line 2", "No line 2", "Unstated", "No line 6"],
            [],
        ]
        assert await _heads(visitor) == ["the standard", "Search", "AI training"] * 2
        widths = await visitor.page.locator("#table thead th[colspan], #table tbody td[colspan]").evaluate_all(
            "cells => cells.map(({ colSpan }) => colSpan)"
        )
        assert widths == [3, 3, 6]
        await visitor.page.get_by_label("Google", exact=True).check()
        await visitor.page.get_by_label("the standard", exact=True).check()
        await expect(visitor.page.locator("[data-purpose]")).to_have_count(16)
        assert (await _heads(visitor))[:6] == [
            "the standard",
            "Search",
            "AI training",
            "Google",
            "Search",
            "AI training",
        ]


async def test_purpose_is_explained_exported_and_linked(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.page.get_by_role("checkbox", name="AI training").check()
        await visitor.ask(robots=FILE, agents="ExampleBot\nFriendlyBot", urls="/art/1")
        await visitor.page.locator("[data-purpose][data-column='1']").click()
        why = await visitor.text("#why")
        assert "FriendlyBot may fetch" in why
        assert "Whether its use is permitted AI training No: line 6 disallowaitraining" in why
        selected = visitor.page.locator("[aria-selected='true'] .cell")
        await expect(selected).to_have_attribute("data-column", "1")
        assert await selected.get_attribute("data-purpose") is None
        async with visitor.page.expect_download() as downloading:
            await visitor.page.locator("#download").click()
        path = await (await downloading.value).path()
        rows = list(csv.DictReader(io.StringIO(Path(path).read_text(), newline="")))  # noqa: ASYNC240 - a small file
        assert [row["ai-train"] for row in rows] == ["no", "no"]
        await visitor.page.locator("#link").click()
        await expect(visitor.page.locator("#linked")).to_be_visible()
        link = await visitor.page.locator("#link-text").input_value()
    async with visiting(browser, service) as friend:
        await friend.open(link.removeprefix(service))
        assert await _purposes(friend) == [["No line 2", "No line 6"]]
        assert await friend.page.get_by_role("checkbox", name="AI training").is_checked()


async def test_arrow_keys_pass_the_cells_of_purposes(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.page.get_by_role("checkbox", name="AI training").check()
        await visitor.ask(robots=FILE, agents="ExampleBot\nFriendlyBot", urls="/art/1\n/art/2")
        await visitor.page.locator(".cell").first.click()
        places = []
        for key in ("ArrowRight", "ArrowRight", "ArrowDown", "End", "Home"):
            await visitor.page.keyboard.press(key)
            script = "() => ({ ...document.activeElement.dataset })"
            focused: dict[str, Any] = await visitor.evaluate(script)
            places.append((focused["row"], focused["column"], focused.get("purpose")))
        assert places == [
            ("0", "0", "ai-train"),
            ("0", "1", None),
            ("1", "1", None),
            ("1", "1", "ai-train"),
            ("1", "0", None),
        ]
        assert await visitor.page.locator("#table [tabindex='0']").count() == 1


async def test_advice_of_a_warning_is_applied_and_undone(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.ask(robots=WRONG, agents="ExampleBot", urls="/basket/1\n/search")
        assert await visitor.cells() == [["Blocked, line 2"], ["Allowed, no rule"]]
        lines = visitor.page.locator("#editor")
        await lines.get_by_role("button", name="Fix it: line 4, write Disallow: /search").click()
        applied = WRONG.replace("Disallow: search", "Disallow: /search")
        assert await visitor.value("robots") == applied
        assert "Line 4 has changed: Disallow: /search" in await visitor.text("#advice-said")
        await expect(visitor.page.locator("#robots")).to_be_focused()
        await expect(visitor.page.locator("#table .verdict").last).to_have_text("✕Blocked")
        await lines.get_by_role("button", name="Fix it: line 2").click()
        assert await visitor.value("robots") == applied.replace("Dissalow", "Disallow")
        await visitor.page.locator("#advice-said").get_by_role("button", name="Undo").click()
        assert await visitor.value("robots") == applied
        # One undo takes back fixes and what was typed before.
        await visitor.page.keyboard.press("Control+z")
        await visitor.holds("robots", WRONG)
        assert await visitor.text("#advice-said") == ""
        await expect(visitor.page.locator("#stale")).to_be_hidden()
        await visitor.write("robots", "User-agent: *\n")
        await expect(lines.locator("[data-advice]")).to_have_count(0)


async def test_advice_of_several_lines_is_applied_in_both_versions(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.page.locator("#compare").click()
        await visitor.ask(robots="User-agent: *\nAllow: /\n", other="User-agent: ABot, BBot # two\nDisallow: /\n")
        fix = visitor.page.locator("#editor .instead")
        assert (await fix.inner_text()).split("\n") == ["User-agent: ABot", "User-agent: BBot"]
        name = "Fix it: line 1, write User-agent: ABot, and below it User-agent: BBot"
        assert await visitor.page.locator("#editor [data-advice]").first.get_attribute("aria-label") == name
        assert "U+000A" not in await visitor.text("main")
        await visitor.page.locator("#editor [data-advice]").first.click()
        assert (
            await visitor.text("#advice-said") == f"{name.replace('Fix it: line 1, write', 'Line 1 has changed:')} Undo"
        )
        written = await visitor.value("other")
        assert written == "User-agent: ABot\nUser-agent: BBot # two\nDisallow: /\n"
        assert await visitor.value("robots") == "User-agent: *\nAllow: /\n"


async def test_misspelt_crawlers_and_a_signal_at_the_end_are_told(service: str, browser: Browser) -> None:
    robots = "User-agent: Gogglebot\nDisallow: /x\n\nUser-agent: ABot\nAllow: /\nContent-Signal: ai-train=no\n"
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.ask(robots=robots, agents="Googlebot\nGPT-Bot", urls="/x Clauderbot allow\n/x ClaudeBots allow")
        said = await visitor.text("#agents-said")
        assert said == "line 2 No crawler GPT-Bot is known. Ask for GPTBot if that is meant."
        assert "line 2 No crawler ClaudeBots is known" in await visitor.text("#urls-said")
        assert await visitor.page.locator("#agents[aria-invalid], #urls[aria-invalid]").count() == 0
        warnings = await visitor.page.locator("#editor .warning").all_inner_texts()
        assert "'User-agent: Googlebot'" in warnings[0]
        assert "binds only 'ABot'" in warnings[1]
        await visitor.page.locator("#editor [data-advice]").click()
        await expect(visitor.page.locator("#table .verdict").first).to_have_text("✕Blocked")


async def test_advice_is_not_applied_to_another_text(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.ask(robots=WRONG, agents="ExampleBot", urls="/basket/1")
        await visitor.page.route("**/v1/test", lambda route: route.abort())
        await visitor.page.locator("#robots").press("Control+Home")
        await visitor.page.keyboard.type("# new\n")
        await visitor.page.keyboard.press("ArrowDown")
        await visitor.page.keyboard.type("x")
        changed = "# new\n" + WRONG.replace("Dissalow", "xDissalow")
        assert await visitor.value("robots") == changed
        await visitor.page.locator("#editor [data-advice]").first.click()
        assert await visitor.text("#advice-said") == "The text has changed since this test: test again."
        assert await visitor.value("robots") == changed
        # A line that has only moved takes its advice along.
        await visitor.page.locator("#editor [data-advice]").last.click()
        assert await visitor.value("robots") == changed.replace("Disallow: search", "Disallow: /search")
        visitor.troubles.clear()  # the aborted requests


async def test_every_cause_has_words(service: str, browser: Browser) -> None:
    script = """async (causes) => {
        const { causeOf } = await import("./web/labels.js");
        return causes.filter((cause) => causeOf(cause) === cause.replaceAll("_", " "));
    }"""
    async with visiting(browser, service) as visitor:
        await visitor.open()
        assert await visitor.evaluate(script, list(Cause)) == []
