"""No answer on the tester page stands for another file or question than the one in its fields, in a real Chromium."""

import pytest
from playwright.async_api import Browser, Route, expect

from tests.browser.tester import Visitor, visiting
from tests.origins import serve, text

pytestmark = pytest.mark.asyncio(loop_scope="session")

FILE = "User-agent: *\nDisallow: /private/\nCrawl-delay: 7\n"


FAILURES = [
    (text(404), "Allowed", "answers 404"),
    (text(403), "Allowed", "answers 403"),
    (text(429), "Try later", "429"),
    (text(503), "Try later", "503"),
    (text(403, "<html>Who are you?</html>", {"cf-mitigated": "challenge"}), "Try later", "challenge"),
]


async def test_failed_fetch_says_what_crawlers_do_and_drops_the_former(service: str, browser: Browser) -> None:
    async with serve(text(200, FILE)) as former, visiting(browser, service) as visitor:
        await visitor.open()
        for response, verdict, summary in FAILURES:
            async with serve(response) as empty:
                await visitor.fetch(f"{former.url}/private/page")
                await expect(visitor.page.locator("#summary")).to_contain_text("5 verdicts: 0 allowed, 5 blocked.")
                await visitor.fetch(f"{empty.url}/shop")
                await _says_what_crawlers_do(visitor, f"{empty.url}/robots.txt", verdict, summary)
                assert await visitor.value("urls") == f"{empty.url}/shop"
        await visitor.fetch("http://missing.example/shop")
        await _says_what_crawlers_do(visitor, "http://missing.example/robots.txt", "Try later", "name")


async def _says_what_crawlers_do(visitor: Visitor, url: str, verdict: str, summary: str) -> None:
    await expect(visitor.page.locator("#site-said")).to_contain_text(url)
    await expect(visitor.page.locator("#site-said")).to_be_in_viewport()
    verdicts = visitor.page.locator("#table .cell .verdict")
    await expect(verdicts).to_have_count(5)
    assert [words[1:].strip() for words in await verdicts.all_inner_texts()] == [verdict] * 5
    assert summary in await visitor.text("#why .summary")
    await expect(visitor.page.locator("#stale")).to_be_hidden()
    assert await visitor.value("robots") == ""


async def test_failed_fetch_keeps_text_that_was_typed(service: str, browser: Browser) -> None:
    async with serve(text(404)) as empty, visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.ask(robots=FILE)
        await visitor.fetch(empty.url)
        await expect(visitor.page.locator("#site-said")).to_contain_text("the text here is not of this site")
        await expect(visitor.page.locator("#why-body")).to_contain_text("What the service knows")
        assert await visitor.value("robots") == FILE


async def test_failed_test_marks_the_former_answer(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()

        async def refuse(route: Route) -> None:
            await route.fulfill(status=429, body="", headers={"Retry-After": "90"})

        await visitor.page.route("**/v1/test", refuse)
        await visitor.page.locator("#facts").scroll_into_view_if_needed()
        await visitor.page.keyboard.press("Control+Enter")
        await expect(visitor.page.locator("#question-said")).to_contain_text("Too many requests")
        await expect(visitor.page.locator("#question-said")).to_be_in_viewport()
        await expect(visitor.page.locator("#stale-why")).to_have_text("The test failed. These results are out of date.")
        for part in ("#table-box", "#why", "#listing"):
            grey = "element => getComputedStyle(element).filter"
            assert await visitor.page.locator(part).evaluate(grey) == "grayscale(1)"
        await visitor.page.unroute("**/v1/test")
        await visitor.page.locator("#again").click()
        await expect(visitor.page.locator("#stale")).to_be_hidden()
        await expect(visitor.page.locator("#answer")).not_to_have_class("outdated")


async def test_fetch_of_another_site_replaces_the_urls(service: str, browser: Browser) -> None:
    async with (
        serve(text(200, FILE)) as former,
        serve(text(200, "User-agent: *\nDisallow: /\n")) as latter,
        visiting(browser, service) as visitor,
    ):
        await visitor.open()
        await visitor.fetch(former.url)
        asked = f"{former.url}/private/a\n{former.url}/b"
        await visitor.ask(urls=asked)
        await visitor.fetch(f"{latter.url}/c")
        await expect(visitor.page.locator("#summary")).to_contain_text("5 verdicts: 0 allowed, 5 blocked.")
        said = visitor.page.locator("#urls-replaced")
        assert await visitor.value("urls") == f"{latter.url}/c"
        await expect(said).to_have_text("2 URLs of other sites replaced. Undo")
        await said.get_by_role("button").click()
        assert await visitor.value("urls") == asked
        await expect(said).to_be_hidden()


async def test_urls_of_another_host_are_marked(service: str, browser: Browser) -> None:
    async with serve(text(200, FILE)) as origin, visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.ask(agents="ExampleBot", urls=f"{origin.url}/private/a\nhttps://other.example/private/a")
        await visitor.fetch(origin.url)
        await expect(visitor.page.locator("#site-said")).to_contain_text("fetched just now")
        await expect(visitor.page.locator("#summary")).to_contain_text(
            "1 URL of another host: this file does not decide there."
        )
        titles = await visitor.page.locator("#table tbody th").all_inner_texts()
        assert ["another host’s robots.txt decides this" in title for title in titles] == [False, True]
        # Of text without a site, the first URL says whose file it is.
        await visitor.ask(robots=FILE, urls="https://a.example/\nhttps://b.example/\nhttp://a.example/")
        titles = await visitor.page.locator("#table tbody th").all_inner_texts()
        assert ["another host" in title for title in titles] == [False, True, True]


async def test_edited_file_is_no_longer_shown_as_fetched(service: str, browser: Browser) -> None:
    async with serve(text(200, FILE)) as origin, visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.fetch(origin.url)
        said = visitor.page.locator("#site-said")
        await expect(said).to_contain_text("fetched just now")
        await visitor.page.locator("#robots").press_sequentially("#")
        await expect(said).to_contain_text("edited since")
        await visitor.write("robots", "")
        await expect(said).to_be_empty()


async def test_cut_file_is_told_beside_the_verdict(service: str, browser: Browser) -> None:
    lines = "".join(f"Disallow: /some/long/path/{number:06}\n" for number in range(16_000))
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.ask(
            robots=f"User-agent: *\n{lines}Disallow: /x\n", urls="https://h.example/x", agents="ExampleBot"
        )
        assert await visitor.cells() == [["Allowed, no rule"]]
        assert await visitor.text("#table .expected") == "not all lines read"
        assert "lines beyond them could change 1 verdict." in await visitor.text("#summary")
        assert "only the first 512,000 bytes of a file count" in await visitor.text("#why .stale")
        await visitor.ask(robots=FILE)
        assert await visitor.page.locator("#why .stale, #table .expected").count() == 0
        # A file that was fetched comes without its end.
        async with serve(text(200, f"User-agent: *\n{lines}Disallow: /x\n")) as origin:
            await visitor.fetch(f"{origin.url}/x")
            await expect(visitor.page.locator("#summary")).to_contain_text("could change 1 verdict.")
            assert await visitor.text("#table .expected") == "not all lines read"
            assert "on could change this verdict." in await visitor.text("#why .stale")
            # One that no line could change is not marked, nor are its details, which are asked for apart.
            pages = "".join(f"{origin.url}/x?{number}\n" for number in range(120))
            await visitor.ask(urls=f"{origin.url}/robots.txt\n{pages}")
            await expect(visitor.page.locator("#summary")).to_contain_text("could change 120 verdicts.")
            await visitor.choose(0, 0)
            await expect(visitor.page.locator("#why-body")).to_contain_text("may always be fetched")
            assert await visitor.page.locator("#why .stale").count() == 0
            await visitor.choose(1, 0)
            await expect(visitor.page.locator("#why-body")).to_contain_text("Path used for matching")
            assert "on could change this verdict." in await visitor.text("#why .stale")
