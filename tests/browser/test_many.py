"""The tester page with many URLs and crawlers, in a real Chromium: presets, filters, exports, expectations."""

import asyncio
import csv
import io
import json
import re
from collections.abc import Callable

import pytest
from playwright.async_api import Browser, Download, Route, expect

from robots_core.agents.directory import AgentCategory, builtin_directory
from tests.browser.measure_paste import KINDS
from tests.browser.tester import Visitor, visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")

FILE = "User-agent: *\nDisallow: /basket/\n\nUser-agent: FriendlyBot\nUser-agent: friendlybot\nAllow: /\n"

DROP = """(area, [name, text]) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([text], name, { type: "text/plain" }));
    for (const kind of ["dragover", "drop"]) {
        area.dispatchEvent(new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true }));
    }
}"""


# The most nodes that are added to the page without a pause.
COUNT_ADDED = """() => {
    window.mostAdded = 0;
    const size = (node) => 1 + (node.querySelectorAll?.("*").length ?? 0);
    new MutationObserver((changes) => {
        const added = changes.flatMap(({ addedNodes }) => [...addedNodes]);
        window.mostAdded = Math.max(window.mostAdded, added.reduce((sum, node) => sum + size(node), 0));
    }).observe(document.body, { childList: true, subtree: true });
}"""


def _urls(count: int, path: str = "basket") -> str:
    return "".join(f"https://h.example/{path}/{number}\n" for number in range(count))


async def _text_of(download: Download) -> str:
    path = await download.path()
    return (await asyncio.to_thread(path.read_bytes)).decode()


async def _titles(visitor: Visitor) -> list[str]:
    titles = await visitor.page.locator("#table tbody th").all_inner_texts()
    return [title.removeprefix("https://h.example") for title in titles]


async def _heads(visitor: Visitor) -> list[str]:
    """The crawlers of the rows, without what they are for."""
    heads = await visitor.page.locator("#table tbody th[scope=row]").all_inner_texts()
    return [head.split()[0] for head in heads]


async def test_presets_add_crawlers(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.write("robots", FILE)
        add, preset = visitor.page.locator("#add-preset"), visitor.page.locator("#preset")
        await add.click()
        await visitor.holds("agents", "FriendlyBot\n*")
        await preset.select_option("ai-training")
        await add.click()
        await visitor.holds("agents", re.compile("FriendlyBot\n[*]\n.*GPTBot.*", re.DOTALL))
        first = await visitor.value("agents")
        await add.click()
        assert await visitor.value("agents") == first
        listed = await preset.locator("option").evaluate_all("options => options.map(({ value }) => value)")
        assert listed == ["named", *AgentCategory]
        for category in (AgentCategory.SEARCH, AgentCategory.SOCIAL):
            await preset.select_option(category)
            await add.click()
            last = builtin_directory().of(category)[-1].agent.token
            await visitor.holds("agents", re.compile(rf"\b{last}\b"))
        agents = (await visitor.value("agents")).split("\n")
        assert len(agents) == len({name.lower() for name in agents})
        await expect(visitor.page.locator("#verdicts")).not_to_have_attribute("aria-busy", "true")
        assert await visitor.text("#agents-said") == ""


async def test_thousands_of_verdicts_come_in_parts(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        parts: list[int] = []

        async def count(route: Route) -> None:
            asked = json.loads(route.request.post_data or "")
            if not asked["explain"]:
                parts.append(len(asked["urls"]))
            if len(parts) == 2:
                await expect(visitor.page.locator("#progress")).to_contain_text("1,000 of 2,600 verdicts")
            await route.continue_()

        await visitor.page.route("**/v1/test", count)
        await visitor.write("agents", "a\nb")
        await visitor.write("robots", FILE)
        await visitor.write("urls", _urls(1300))
        await expect(visitor.page.locator("#stale-why")).to_have_text("The question has changed.")
        parts.clear()
        await visitor.page.locator("#test").click()
        await expect(visitor.page.locator("#summary")).to_contain_text("2,600 verdicts: 0 allowed, 2,600 blocked.")
        assert parts == [500, 500, 300]
        await expect(visitor.page.locator("#progress")).to_be_hidden()
        assert await visitor.page.locator("#table tbody tr").count() == 200
        await visitor.page.get_by_role("button", name="Show more: 1,100 URLs are left").click()
        assert await visitor.page.locator("#table tbody tr").count() == 400


@pytest.mark.parametrize("kind", KINDS)
async def test_long_file_is_drawn_in_slices(service: str, browser: Browser, kind: Callable[[int, int], str]) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.evaluate(COUNT_ADDED)
        await visitor.ask(robots=kind(15_000, 0), urls="/section/7/a.html")
        await expect(visitor.page.locator("#listing-facts")).to_contain_text("15,000 lines")
        most = await visitor.evaluate("window.mostAdded")
        assert 100 < most <= 6_000
        assert await visitor.page.locator("#editor .cm-line").count() <= 500


async def test_details_of_a_verdict_are_asked_for_when_it_is_opened(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        explained: list[list[str]] = []
        broken = False

        async def watch(route: Route) -> None:
            asked = json.loads(route.request.post_data or "")
            if asked["explain"]:
                explained.append(asked["urls"])
            if asked["explain"] and broken:
                await route.fulfill(status=503, body="")
            else:
                await route.continue_()

        await visitor.page.route("**/v1/test", watch)
        why, cells = visitor.page.locator("#why-body"), visitor.page.locator("#table tbody button")
        await visitor.ask(robots=FILE, agents="ExampleBot", urls=_urls(101))
        await expect(why).to_contain_text("Every rule that matched")
        await cells.nth(7).click()
        await expect(why).to_contain_text("/basket/7")
        await expect(why).to_contain_text("Every rule that matched")
        opened = [urls[0].rpartition("/")[2] for urls in explained]
        assert opened[-2:] == ["0", "7"]  # the cell chosen before, and this one
        await cells.nth(0).click()
        await expect(why).to_contain_text("/basket/0")
        await expect(why).to_contain_text("Every rule that matched")
        assert len(explained) == len(opened)
        broken = True
        await cells.nth(8).click()
        await expect(why).to_contain_text("The details are missing: The service is not available at the moment")
        await expect(why).to_contain_text("Disallow: /basket/")
        await expect(visitor.page.locator("#pace")).to_be_hidden()
        visitor.troubles.clear()  # Chromium notes the 503


async def test_test_in_parts_can_be_cancelled(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        asked: list[Route] = []

        async def hold(route: Route) -> None:
            asked.append(route)
            if len(asked) == 1:
                await route.continue_()

        await visitor.write("agents", "a\nb\nc")
        await visitor.write("urls", _urls(900))
        await visitor.page.route("**/v1/test", hold)
        await visitor.page.locator("#test").click()
        await visitor.page.get_by_role("button", name="Cancel").click()
        await expect(visitor.page.locator("#stale-why")).to_contain_text("The test was cancelled.")
        await expect(visitor.page.locator("#progress")).to_be_hidden()
        assert len(asked) == 2
        await asked[1].abort()


async def test_rows_are_filtered_and_sorted(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.ask(robots=FILE, agents="ExampleBot\nFriendlyBot", urls=_urls(8, "open") + _urls(4))
        await visitor.page.locator("#filter").fill("ket/1")
        assert await _titles(visitor) == ["/basket/1"]
        assert await visitor.text("#filter-said") == "1 URL of 12"
        assert await visitor.page.locator("#table [tabindex='0']").count() == 1
        await visitor.page.locator("#filter").fill("")
        await visitor.page.locator("#only").select_option("differ")
        assert await _titles(visitor) == [f"/basket/{number}" for number in range(4)]
        await visitor.page.locator("#only").select_option("all")
        await visitor.page.locator("#order").select_option("blocked")
        assert (await _titles(visitor))[3:5] == ["/basket/3", "/open/0"]
        await visitor.choose(11, 0)
        assert "/basket/3" in await visitor.text("#why")


async def test_click_on_a_line_shows_what_it_decides(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.ask(robots=FILE, agents="ExampleBot\nFriendlyBot", urls=_urls(1, "open") + _urls(2))
        line = visitor.page.locator("#editor .deciding").first
        await line.hover()
        await expect(line).to_have_attribute("title", "decides 2 verdicts: show them")
        await line.click()
        assert await visitor.text("#picked-said") == "Line 2 decides 2 verdicts on 2 URLs."
        assert await _titles(visitor) == ["/basket/0", "/basket/1"]
        assert await visitor.page.locator(".picked").count() == 2
        assert "/basket/0" in await visitor.text("#why")
        await expect(visitor.page.locator(".picked").first).to_be_in_viewport()
        await visitor.page.get_by_role("button", name="Show all URLs").click()
        assert len(await _titles(visitor)) == 3


async def test_verdicts_are_exported(service: str, browser: Browser) -> None:
    async with visiting(browser, service, permissions=["clipboard-read", "clipboard-write"]) as visitor:
        await visitor.open()
        await visitor.ask(
            robots=FILE, agents="ExampleBot\nFriendlyBot", urls='https://h.example/basket/"a",b|c allowed'
        )
        texts = {}
        for name in ("csv", "json", "markdown"):
            await visitor.page.locator("#format").select_option(name)
            async with visitor.page.expect_download() as downloading:
                await visitor.page.locator("#download").click()
            download = await downloading.value
            texts[download.suggested_filename] = await _text_of(download)
        assert list(texts) == ["verdicts.csv", "verdicts.json", "verdicts.md"]
        rows = list(csv.DictReader(io.StringIO(texts["verdicts.csv"], newline="")))
        assert [(row["url"], row["crawler"], row["verdict"], row["line"], row["expected"]) for row in rows] == [
            ('https://h.example/basket/"a",b|c', "ExampleBot", "disallow", "2", "allow"),
            ('https://h.example/basket/"a",b|c', "FriendlyBot", "allow", "6", "allow"),
        ]
        [first, _] = json.loads(texts["verdicts.json"])
        assert (first["reason"], first["line"]) == ("rule", 2)
        assert first["explanation"].startswith("Line 2 (Disallow: /basket/)")
        assert texts["verdicts.md"] == (
            "| URL | ExampleBot | FriendlyBot |\n| --- | --- | --- |\n"
            '| https://h.example/basket/"a",b\\|c | Blocked (line 2) | Allowed (line 6) |\n'
        )
        await visitor.page.locator("#copy").click()
        await expect(visitor.page.locator("#exported-said")).to_have_text("Copied.")
        assert await visitor.evaluate("navigator.clipboard.readText()") == texts["verdicts.md"]


async def test_exported_text_is_no_formula(service: str, browser: Browser) -> None:
    script = """async () => {
        const { exported } = await import("./web/export.js");
        const explanation = { summary: "-" };
        const row = { agent: "@a", dialect: "", verdict: "allow", reason: "rule", rule: null, explanation };
        return exported("csv", [{ text: "=1+1", row: 0 }], [[row]], null).text;
    }"""
    async with visiting(browser, service) as visitor:
        await visitor.open()
        assert (await visitor.evaluate(script)).split("\r\n")[1] == "'=1+1,'@a,,allow,rule,,false,'-,"


async def test_expectations_are_compared_with_verdicts(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.ask(
            robots=FILE,
            agents="ExampleBot\nFriendlyBot",
            urls="https://h.example/basket/1 blocked\nhttps://h.example/basket/2 allowed friendlybot\nhttps://h.example/",
        )
        summary = visitor.page.locator("#summary")
        await expect(summary).to_contain_text("3 verdicts compared with what is expected: 1 is not as expected.")
        assert await visitor.text(".unmet") == "✓Allowed line 6 expected: Blocked"
        assert await visitor.page.locator(".unmet").count() == 1
        await visitor.ask(urls="https://h.example/basket/1 blocked ExampleBot")
        await expect(summary).to_contain_text("1 verdict compared with what is expected: All are as expected.")
        # With a second version, it is the one that has to meet them.
        await visitor.page.locator("#compare").click()
        closed = "User-agent: *\nDisallow: /\n"
        await visitor.ask(other=closed, urls="/basket/1 blocked\n/open allowed ExampleBot\n/open blocked FriendlyBot")
        assert (await visitor.text("#summary")).startswith("Changed for FriendlyBot (3), ExampleBot (2). 6 verdicts")
        await expect(summary).to_contain_text("4 verdicts compared with what is expected: 1 is not as expected.")
        assert await visitor.page.locator(".unmet").count() == 1
        assert (await visitor.text(".unmet")).endswith("expected: Allowed")


async def test_expectations_of_the_command_line_are_read(service: str, browser: Browser) -> None:
    lines = "# shop\n/basket/1 FriendlyBot allow\n/basket/1 Mozilla/5.0 (compatible; GPTBot/1.2) allow\n/ A.B defer\n"
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.ask(robots=FILE, agents="ExampleBot", urls=lines)
        await expect(visitor.page.locator("#summary")).to_contain_text(
            "3 verdicts compared with what is expected: 2 are"
        )
        # There are more crawlers than URLs, so they are the rows.
        assert await _heads(visitor) == ["ExampleBot", "FriendlyBot", "GPTBot", "A"]
        heads = await visitor.page.locator("#table thead code").all_inner_texts()
        assert heads == ["/basket/1", "/basket/1", "/"]
        unmet = visitor.page.locator(".unmet")
        assert [" ".join(it.split()) for it in await unmet.all_inner_texts()] == [
            "✕Blocked line 2 expected: Allowed",
            "✓Allowed no rule expected: Try later",
        ]
        await visitor.ask(urls="/basket/1 !! allow\n/ ExampleBot allow\n")
        assert "line 1" in await visitor.text("#urls-said")
        assert await visitor.text("#agents-said") == ""


async def test_crawlers_of_a_category_are_tested(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.ask(robots=FILE, agents="@AI-search\nPerplexityBot\n@nothing", urls="/basket/1")
        tokens = [it.agent.token for it in builtin_directory().of(AgentCategory.AI_SEARCH)]
        await expect(visitor.page.locator("#table .kind")).to_have_text(
            [f"AI search {len(tokens)} crawlers, none named in the file"]
        )
        await visitor.page.get_by_role("button", name=f"{len(tokens)} crawlers that are not named").click()
        assert await _heads(visitor) == [
            *(token for token in tokens if token != "PerplexityBot"),
            "PerplexityBot",
        ]
        said = await visitor.text("#agents-said")
        assert "line 3" in said
        assert "ai-training" in said
        await visitor.page.get_by_label("what our crawlers do now").check()
        await expect(visitor.page.locator("#table tbody .cell")).to_have_count(len(tokens))


async def test_link_to_one_verdict_shows_it_alone(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        before = visitor.page.url
        await visitor.choose(2, 1)
        await visitor.page.get_by_role("button", name="Copy link to this verdict").click()
        await expect(visitor.page.locator("#linked")).to_be_visible()
        link = await visitor.page.locator("#link-text").input_value()
        assert visitor.page.url == before
    async with visiting(browser, service) as friend:
        await friend.open(link.removeprefix(service))
        assert await friend.cells() == [["Blocked, line 10"]]
        assert "/private/x" in await friend.text("#why")


async def test_dropped_file_is_tested(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.page.locator("#robots").evaluate(DROP, ["robots.txt", "User-agent: *\nDisallow: /\n"])
        await expect(visitor.page.locator("#summary")).to_contain_text("0 allowed, 40 blocked")
        assert await visitor.value("robots") == "User-agent: *\nDisallow: /\n"
        await visitor.page.locator("#robots").evaluate(DROP, ["large", "x" * 2_000_001])
        await expect(visitor.page.locator("#robots-said")).to_contain_text("This file has 2,000,001 bytes")
        await visitor.page.locator("#compare").click()
        await visitor.page.locator("#other").evaluate(DROP, ["robots.txt", FILE])
        await expect(visitor.page.locator("#summary")).to_contain_text("With your version")
