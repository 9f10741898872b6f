"""How long a paste of a large robots.txt blocks the page: `python -m tests.browser.measure_paste [LINES]`.

Prints, for several pastes of each kind, the longest task and the sum of all long tasks of the main thread, from the
paste until its lines and verdicts are shown; how long the service took to answer; and how long all of it took. Run it
in a quiet minute.
"""

import asyncio
import sys
from collections.abc import Callable, Sequence

from playwright.async_api import Page, expect

from app.store.embedded import serve
from tests.browser.tester import DESKTOP, PASTE, browsing, serving

PASTES = 5

OBSERVE = """() => {
    window.tasks = [];
    new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map((it) => it.duration)))
        .observe({ type: "longtask" });
    new MutationObserver(() => requestAnimationFrame(() => setTimeout(() => (window.shown = performance.now()), 0)))
        .observe(document.getElementById("listing-facts"), { childList: true });
}"""

BEGIN = f"""(field) => {{
    window.tasks.length = 0;
    window.begun = performance.now();
    ({PASTE})(field, window.text);
}}"""


def rules(lines: int, number: int) -> str:
    """A file of so many lines, most of them rules."""
    groups = (f"User-agent: Bot{at}\nDisallow: /private/{at}-{number}/*.html$\n" for at in range(lines // 20))
    paths = (f"Disallow: /section/{at}/{number}/page?id=\n" for at in range(lines - 2 * (lines // 20) - 1))
    return "User-agent: *\n" + "".join(paths) + "".join(groups)


def mistakes(lines: int, number: int) -> str:
    """A file of so many lines, most of which are warned about, and all of which match."""
    return "User-agent: *\n" + "".join(f"Dissalow: {'*' * (at % 9)}/*{number}\n" for at in range(lines - 1))


def groups(lines: int, number: int) -> str:
    """A file of so many lines, each of which names a crawler, with one rule at the end."""
    return "".join(f"User-agent: Bot{at}-{number}\n" for at in range(lines - 1)) + "Disallow: /\n"


KINDS: Sequence[Callable[[int, int], str]] = (rules, mistakes, groups)


async def paste(page: Page, text: str, lines: int) -> tuple[float, float, float, float]:
    """The longest task, the sum of the long tasks, the time of the request and of everything, in milliseconds."""
    await page.evaluate("text => { window.text = text; }", text)
    await asyncio.sleep(0.5)  # until the browser is idle again
    async with page.expect_response(lambda response: response.url.endswith("/v1/test") and response.ok):
        await page.locator("#robots").evaluate(BEGIN)
    await expect(page.locator("#listing-facts")).to_contain_text(f"{lines:,} lines")
    await expect(page.locator("#stale")).to_be_hidden()
    await asyncio.sleep(0.5)  # entries of the observer come late
    took = await page.evaluate("window.shown - window.begun")
    tasks: list[float] = await page.evaluate("window.tasks")
    asked = "performance.getEntriesByType('resource').findLast(({ name }) => name.endsWith('/v1/test')).duration"
    return max(tasks, default=0.0), sum(tasks), await page.evaluate(asked), took


async def measure(lines: int) -> None:
    """Measure and print."""
    with serve(None) as store:
        async with serving(store) as url, browsing() as browser:
            page = await (await browser.new_context(viewport=DESKTOP)).new_page()
            await page.goto(url)
            await expect(page.locator("#table button").first).to_be_visible()
            await expect(page.locator("#editor .cm-content")).to_be_visible()
            await page.evaluate(OBSERVE)
            for kind in KINDS:
                for number in range(PASTES):
                    longest, total, asked, took = await paste(page, kind(lines, number), lines)
                    print(
                        f"{kind.__name__:<9} longest task {longest:5.0f} ms, long tasks {total:5.0f} ms, "
                        f"request {asked:5.0f} ms, all {took:5.0f} ms"
                    )


if __name__ == "__main__":
    asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 15_000))
