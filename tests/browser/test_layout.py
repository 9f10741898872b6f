"""The answer stands first on the tester page, at every width and in every state, in a real Chromium."""

import pytest
from playwright.async_api import Browser, ViewportSize, expect

from tests.browser.tester import DESKTOP, OVERFLOW, Visitor, violations, visiting
from tests.origins import serve, text

pytestmark = pytest.mark.asyncio(loop_scope="session")

PHONE = ViewportSize(width=390, height=844)
FILE = "User-agent: PetalBot\nDisallow: /a\n\nUser-agent: *\nDisallow: /\nCrawl-delay: 5\n"

IN_VIEW = """selector => [...document.querySelectorAll(selector)].filter((it) => {
    const { top, bottom, left, right } = it.getBoundingClientRect();
    const box = (it.closest(".box") ?? document.documentElement).getBoundingClientRect();
    return top >= 0 && bottom <= innerHeight && left >= 0 && right <= innerWidth
        && top >= box.top - 1 && bottom <= box.bottom + 1 && right <= box.right + 1;
}).length"""

MANY = {"urls": "/\n/checkout/pay", "agents": "@search\n@ai-training\n@ai-search"}


async def _show(visitor: Visitor) -> None:
    await visitor.page.goto(visitor.url)
    await expect(visitor.page.locator("#table > thead")).to_contain_text("AI training")


async def _ask_many(visitor: Visitor) -> None:
    await visitor.open()
    await visitor.ask(**MANY)
    for name in ("ask-urls", "ask-agents", "ask-more"):
        await visitor.page.locator(f"[data-opens={name}]").click()
    await expect(visitor.page.locator("#shares li")).to_have_count(3)


async def test_answer_why_and_file_are_in_view_without_scrolling(service: str, browser: Browser) -> None:
    async with visiting(browser, service, viewport=DESKTOP) as visitor:
        await _show(visitor)
        assert await visitor.evaluate(IN_VIEW, "#sentence, #why, #editor") == 3
        assert await visitor.evaluate(IN_VIEW, "#table .cell") == 40
        await expect(visitor.page.locator(".is-decides")).to_be_in_viewport(ratio=1)
        assert await visitor.evaluate("document.documentElement.scrollHeight") <= DESKTOP["height"]


async def test_many_crawlers_fit_one_screen(service: str, browser: Browser) -> None:
    async with visiting(browser, service, viewport=DESKTOP) as visitor:
        await _ask_many(visitor)
        assert await visitor.page.locator("#table .cell").count() == 16
        assert await visitor.evaluate(IN_VIEW, "#table .cell") >= 14
        sentence = await visitor.text("#sentence")
        assert sentence.endswith(
            "are shut out: Google-Extended, GPTBot, ClaudeBot and CCBot. Search engines are let in."
        )
        shares = await visitor.page.locator("#shares li").all_inner_texts()
        assert shares[0].startswith("AI training 4 of ")
        # Rows of crawlers that fare alike open, and stay where they are.
        more = visitor.page.get_by_role("button", name="crawlers that are not named").first
        before = await visitor.page.locator("#table .cell").count()
        await more.click()
        assert await visitor.page.locator("#table .cell").count() > before
        await expect(more).to_be_focused()
        await expect(more).to_have_attribute("aria-expanded", "true")


async def test_phone_shows_why_below_the_row(service: str, browser: Browser) -> None:
    async with visiting(browser, service, viewport=PHONE, is_mobile=True, has_touch=True) as visitor:
        await _show(visitor)
        await visitor.page.locator("button[data-row='4'][data-column='3']").tap()
        row = visitor.page.locator("#table tr:has([aria-selected=true])")
        below = visitor.page.locator("#table tr.inline #why")
        boxes = [await row.bounding_box(), await below.bounding_box()]
        assert boxes[0] is not None
        assert boxes[1] is not None
        assert 0 <= boxes[1]["y"] - boxes[0]["y"] - boxes[0]["height"] < 20
        assert "Yandex may not fetch /checkout/pay" in await visitor.text("#why")
        await visitor.page.set_viewport_size(DESKTOP)
        await expect(visitor.page.locator(".side > #why")).to_be_visible()


@pytest.mark.parametrize("width", [320, 390, 768, 1024, 1280, 1440, 1920])
async def test_page_does_not_scroll_sideways(service: str, browser: Browser, width: int) -> None:
    async with visiting(browser, service, viewport=ViewportSize(width=width, height=800)) as visitor:
        await _show(visitor)
        assert await visitor.evaluate(OVERFLOW) == 0
        await visitor.unfold()
        assert await visitor.evaluate(OVERFLOW) == 0
        await visitor.ask(robots="User-agent: *\nDisallow: /x\nRequest-rate: 1/10s 0930-1145\n", **MANY)
        await expect(visitor.page.locator("#pace")).to_be_visible()
        assert await visitor.evaluate(OVERFLOW) == 0


async def test_comparison_says_for_whom_the_change_matters(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await _show(visitor)
        await visitor.page.locator("#compare").click()
        await expect(visitor.page.locator("#other")).to_be_focused()
        await expect(visitor.page.locator("#sentence")).to_have_text("Your change alters no verdict.")
        changed = (await visitor.value("other")).replace("Dissalow: /drafts/", "Disallow: /img/")
        await visitor.write("other", changed)
        await expect(visitor.page.locator("#sentence")).to_contain_text(
            "For Googlebot and Bingbot, your change blocks 1 URL and opens 1 URL."
        )
        assert await visitor.page.locator(".changed").count() == 4
        await visitor.page.locator("#compare").click()
        await expect(visitor.page.locator("#sentence")).to_contain_text("GPTBot may fetch none")


async def test_failed_fetch_says_nothing_of_the_former_site(service: str, browser: Browser) -> None:
    async with serve(text(200, FILE)) as former, serve(text(503)) as broken, visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.ask(robots="User-agent: *\nDisallow: /mine/\n")
        await visitor.choose(0, 0)
        await expect(visitor.page.locator("#chosen-said")).to_contain_text("Googlebot")
        await visitor.fetch(broken.url)
        await expect(visitor.page.locator("#sentence")).to_contain_text("error 503")
        await expect(visitor.page.locator("#back")).to_be_hidden()
        await expect(visitor.page.locator("#chosen-said")).to_be_empty()
        # A text that is pasted now is tested for this site, and the failure is no longer said.
        await visitor.ask(robots="User-agent: *\nDisallow: /\n", urls="/x", agents="ExampleBot")
        await expect(visitor.page.locator("#sentence")).to_have_text(
            "ExampleBot may not fetch it: line 2 closes the site."
        )
        await expect(visitor.page.locator("#site-said")).to_be_empty()
        assert await visitor.text("#table thead") == f"URL {broken.url.removeprefix('http://')} ExampleBot"
        await visitor.fetch(former.url)
        await expect(visitor.page.locator("#back")).to_be_visible()


async def test_fetch_asks_about_the_crawlers_that_the_file_names(service: str, browser: Browser) -> None:
    async with serve(text(200, FILE)) as origin, visiting(browser, service) as visitor:
        await _show(visitor)
        refused: list[int] = []
        visitor.page.on("response", lambda response: refused.append(response.status) if response.status > 400 else None)
        await visitor.fetch(origin.url)
        await visitor.holds("agents", "PetalBot\nGooglebot\nBingbot\nGPTBot\nOAI-SearchBot\nChatGPT-User")
        await expect(visitor.page.locator("#sentence")).to_contain_text("PetalBot may fetch this URL.")
        assert refused == []
        await visitor.page.locator("[data-opens=ask-agents]").click()
        await visitor.write("agents", "ExampleBot")
        await visitor.fetch(origin.url)
        await expect(visitor.page.locator("#sentence")).to_contain_text("ExampleBot may not fetch it: line 5")
        assert await visitor.value("agents") == "ExampleBot"


async def test_what_crawlers_would_do_if_the_file_failed(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await _show(visitor)
        said = visitor.page.locator("#what-if")
        await visitor.page.get_by_role("button", name="answers 503").click()
        await expect(said).to_contain_text("Not the real answer: if shop.example answers 503")
        turns = "at first may not fetch this URL; after 29 days fetches nothing, and asks again."
        await expect(said).to_contain_text(f"Googlebot, Bingbot and GPTBot{turns}")
        assert await violations(visitor) == []
        await visitor.page.get_by_role("button", name="a web page").click()
        await expect(said).to_contain_text("Googlebot, Bingbot, GPTBot and Yandexmay fetch this URL.")
        await visitor.unfold()
        await visitor.ask(urls="/x")
        await expect(said).to_be_hidden()
