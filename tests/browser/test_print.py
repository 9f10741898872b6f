"""The tester page on paper: all of what was found, and no fields."""

import pytest
from playwright.async_api import Browser, ViewportSize, expect

from tests.browser.tester import visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAPER = ViewportSize(width=720, height=1020)

LINES = 3000
FILE = "User-agent: *\n" + "".join(f"Disallow: /a/{number}/\n" for number in range(LINES - 2)) + "Dissalow: /b\n"

CRAWLERS = ("Googlebot", "Bingbot", "GPTBot", "ClaudeBot", "CCBot", "SeznamBot", "Applebot", "YandexBot", "ABot")

COUNT = """() => {
    const cells = [...document.querySelectorAll("#table tbody td:has(.cell)")];
    window.printed = {
        rows: document.querySelectorAll("#table tbody tr:not(.inline)").length,
        lines: document.querySelectorAll("#editor .cm-line").length,
        warnings: document.querySelectorAll("#editor .warning").length,
        clipped: cells.filter((it) => it.getBoundingClientRect().right > document.documentElement.clientWidth).length,
    };
}"""

SCROLLING = """[...document.querySelectorAll(".box, .lines, #editor .cm-scroller, #editor .cm-editor")]
    .filter((it) => getComputedStyle(it).overflowY !== "visible").length"""

NAMES = ["#site", "#urls", "#test", "#format", "#summary", "#table", "#why-body", "#robots"]
SEEN = "names => names.filter((it) => document.querySelector(it).getClientRects().length > 0)"


async def test_all_rows_lines_and_warnings_are_printed(service: str, browser: Browser) -> None:
    async with visiting(browser, service, viewport=PAPER) as visitor:
        await visitor.open()
        urls = "".join(f"/a/{number}\n" for number in range(210))
        await visitor.ask(robots=FILE, agents="\n".join(CRAWLERS), urls=urls)
        rows = visitor.page.locator("#table tbody tr:not(.inline)")
        assert await rows.count() == 200
        await visitor.evaluate(f"addEventListener('beforeprint', {COUNT})")
        # CodeMirror draws all lines once the medium has changed.
        await visitor.evaluate(f"matchMedia('print').addEventListener('change', (it) => it.matches && ({COUNT})())")
        await visitor.page.pdf(format="A4")
        printed = await visitor.evaluate("window.printed")
        assert (printed["rows"], printed["lines"], printed["warnings"]) == (210, LINES + 1, 1)
        assert await rows.count() == 200
        await visitor.page.locator("#editor").scroll_into_view_if_needed()
        await expect(visitor.page.locator("#editor .cm-line")).not_to_have_count(LINES + 1)
        title = "getComputedStyle(document.querySelector('#table tbody td'), '::before').content"
        for crawlers, shown in ((CRAWLERS, '"Googlebot, Google"'), (CRAWLERS[:4], "none")):
            await visitor.page.emulate_media(media="screen")
            await visitor.ask(agents="\n".join(crawlers), urls="".join(f"/a/{number}/\n" for number in range(9)))
            await visitor.page.emulate_media(media="print")
            await visitor.evaluate("dispatchEvent(new Event('beforeprint'))")
            assert (await visitor.evaluate("window.printed"))["clipped"] == 0
            assert await visitor.evaluate(SCROLLING) == 0
            assert await visitor.evaluate(title) == shown
            assert await visitor.evaluate(SEEN, NAMES) == ["#summary", "#table", "#why-body", "#robots"]
            await visitor.evaluate("dispatchEvent(new Event('afterprint'))")
