"""Every state of the tester page: what is said first, at every width, light and dark, by the rules of axe-core."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack

import pytest
from playwright.async_api import Browser, ViewportSize, expect

from tests.browser.tester import OVERFLOW, Visitor, violations, visiting
from tests.origins import Exchange, Reply, serve, text

pytestmark = pytest.mark.asyncio(loop_scope="session")

WIDTHS = [320, 390, 768, 1024, 1280, 1440, 1920]
FILE = "User-agent: PetalBot\nDisallow: /a\n\nUser-agent: *\nDisallow: /\nCrawl-delay: 5\n"
PAGE = "<!doctype html>\n<html><head><title>Shop</title></head>\n<body>Page not found</body></html>\n"
REGIONS = "[...document.querySelectorAll('.answer [role=status]')].filter((it) => it.offsetParent !== null).length"

Act = Callable[[Visitor, AsyncExitStack], Awaitable[None]]


async def empty(visitor: Visitor, stack: AsyncExitStack) -> None:
    await visitor.page.locator("#robots").focus()
    await visitor.write("robots", "")


async def many(visitor: Visitor, stack: AsyncExitStack) -> None:
    await visitor.unfold()
    await visitor.ask(urls="/\n/checkout/pay", agents="@search\n@ai-training\n@ai-search")
    for name in ("ask-urls", "ask-agents", "ask-more"):
        await visitor.page.locator(f"[data-opens={name}]").click()
    await expect(visitor.page.locator("#shares li")).to_have_count(3)


async def compared(visitor: Visitor, stack: AsyncExitStack) -> None:
    await many(visitor, stack)
    await visitor.page.locator("#compare").click()
    await visitor.write("other", "User-agent: GPTBot\nDisallow: /private/\n")


async def recipe(visitor: Visitor, stack: AsyncExitStack) -> None:
    await visitor.page.locator("[data-opens=recipes]").click()
    await visitor.page.locator("[data-recipe=images]").click()
    await expect(visitor.page.locator("#back")).to_be_visible()


def fetched(*replies: Reply) -> Act:
    async def act(visitor: Visitor, stack: AsyncExitStack) -> None:
        origin = await stack.enter_async_context(serve(*replies))
        await visitor.fetch(origin.url)

    return act


def if_it(name: str) -> Act:
    async def act(visitor: Visitor, stack: AsyncExitStack) -> None:
        await visitor.page.locator(f"[data-if='{name}']").click()
        await expect(visitor.page.locator("#what-if")).to_contain_text("Not the real answer: if shop.example")
        await expect(visitor.page.locator("#what-if dt").first).to_be_visible()

    return act


async def silent(exchange: Exchange) -> None:
    await exchange.stall()


STATES: Mapping[str, tuple[Act, str, str]] = {
    "empty": (empty, "Whose robots.txt do you want to test?", ""),
    "loading": (fetched(silent), "GPTBot may fetch none", ""),
    "file": (fetched(text(200, FILE)), "PetalBot may fetch this URL.", ""),
    "404": (fetched(text(404)), "has no robots.txt: crawlers may fetch everything.", ""),
    "503": (
        fetched(text(503)),
        "did not give its robots.txt: error 503. Crawlers fetch nothing, and ask again at",
        "Mend the server",
    ),
    "page": (
        fetched(text(200, PAGE)),
        "This is a web page, not a robots.txt. Crawlers find no rule in it",
        "Let it answer 404",
    ),
    "long": (
        fetched(text(200, f"# {'x' * 600_000}\n")),
        "may fetch",
        "Crawlers read only the first 512,000 bytes",
    ),
    "many": (many, "are shut out", ""),
    "compare": (compared, "opens 2 URLs", ""),
    "recipe": (recipe, "your change blocks 8 URLs", ""),
    **{f"what if {name}": (if_it(name), "GPTBot may fetch none", "") for name in ("503", "404", "page", "timeout")},
}
"""How each state comes about, and what is said then: the sentence, and the notice below it."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("state", STATES)
async def test_every_state_says_the_answer_first_fits_and_breaks_no_rule(
    service: str, browser: Browser, scheme: str, state: str
) -> None:
    act, sentence, notice = STATES[state]
    async with AsyncExitStack() as stack, visiting(browser, service, color_scheme=scheme) as visitor:
        await visitor.page.goto(service)
        await expect(visitor.page.locator("#table > thead")).to_contain_text("AI training")
        await act(visitor, stack)
        await expect(visitor.page.locator("#sentence")).to_contain_text(sentence)
        await expect(visitor.page.locator("#notice")).to_contain_text(notice)
        await expect(visitor.page.locator(".loading")).to_have_count(1 if state == "loading" else 0)
        assert await visitor.evaluate(REGIONS) <= 2
        assert await violations(visitor) == []
        for width in WIDTHS:
            await visitor.page.set_viewport_size(ViewportSize(width=width, height=800))
            assert (width, await visitor.evaluate(OVERFLOW)) == (width, 0)
        await visitor.page.set_viewport_size(ViewportSize(width=WIDTHS[0], height=800))
        assert await violations(visitor) == []
