"""Nothing that is typed on the tester page is lost, in a real Chromium."""

import pytest
from playwright.async_api import Browser, expect

from tests.browser.tester import Visitor, visiting
from tests.origins import serve, text

pytestmark = pytest.mark.asyncio(loop_scope="session")

TYPED = {"robots": "User-agent: *\nDisallow: /mine/\n", "urls": "https://a.example/mine/1", "agents": "ABot\nBBot"}

FILE = "User-agent: *\nDisallow: /theirs/\n"

LONG = "".join(f"Disallow: /{number}\n" for number in range(2000))


async def _fields(visitor: Visitor) -> dict[str, str]:
    return {name: await visitor.value(name) for name in TYPED}


async def test_reload_and_a_new_tab_keep_what_was_typed_until_it_is_cleared(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        example = await _fields(visitor)
        await visitor.ask(**TYPED)
        await visitor.page.locator("#link").click()
        await expect(visitor.page.locator("#linked")).to_be_visible()
        await visitor.write("agents", "CBot")  # after the link was put into the address
        await visitor.page.reload()
        await expect(visitor.page.locator("#table thead")).to_contain_text("CBot")
        assert await _fields(visitor) == {**TYPED, "agents": "CBot"}
        page = await visitor.page.context.new_page()
        await page.goto(service)
        await expect(page.locator("#agents")).to_have_text("CBot")
        await page.close()
        await visitor.unfold()
        await visitor.page.get_by_role("button", name="Clear").click()
        await expect(visitor.page.locator("#back")).to_be_visible()
        assert await _fields(visitor) == example
        assert await visitor.evaluate("[localStorage.length, sessionStorage.length, location.hash]") == [0, 0, ""]
        await visitor.page.locator("#bring-back").click()
        await visitor.holds("agents", "CBot")


async def test_fetch_and_a_link_can_be_undone(service: str, browser: Browser) -> None:
    async with serve(text(200, FILE)) as origin, visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.fetch(origin.url)
        await visitor.holds("robots", FILE)
        await expect(visitor.page.locator("#back")).to_be_hidden()  # it replaced the example
        await visitor.ask(**TYPED)
        await visitor.fetch(origin.url)
        await visitor.holds("robots", FILE)
        await visitor.page.locator("#bring-back").click()
        await expect(visitor.page.locator("#summary")).to_contain_text("2 verdicts: 0 allowed, 2 blocked.")
        assert await _fields(visitor) == TYPED
        # A link that is opened in the tab takes their place, and gives it back.
        question = {"robots": FILE, "urls": "https://b.example/", "agents": "DBot"}
        fragment = "async (state) => (await (await import('./web/state.js')).fragmentOf(state)).fragment"
        await visitor.evaluate("fragment => { location.hash = fragment }", await visitor.evaluate(fragment, question))
        await visitor.holds("agents", "DBot")
        await visitor.page.locator("#bring-back").click()
        await visitor.holds("agents", TYPED["agents"])
        assert await _fields(visitor) == TYPED


async def test_long_paste_can_be_undone(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.ask(**TYPED)
        for name in TYPED:
            field = visitor.page.locator(f"#{name}")
            await visitor.write(name, LONG)
            await visitor.holds(name, LONG)
            await field.press("Control+z")
            await visitor.holds(name, TYPED[name])
        await visitor.write("robots", LONG)
        await visitor.page.locator("#robots").press_sequentially("#")
        for text in (LONG, TYPED["robots"]):
            await visitor.page.keyboard.press("Control+z")
            await visitor.holds("robots", text)


async def test_leaving_asks_only_if_the_text_could_not_be_kept(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.ask(**TYPED)
        asked: list[str] = []

        async def stay(dialog: object) -> None:
            asked.append(dialog.type)  # type: ignore[attr-defined]
            await dialog.accept()  # type: ignore[attr-defined]

        visitor.page.on("dialog", stay)
        await visitor.page.reload()
        assert asked == []
        await visitor.holds("agents", TYPED["agents"])
        await visitor.write("robots", "# comment\n" * 210_000)
        await visitor.page.locator("#agents").press_sequentially("s")  # browsers ask only on pages that are used
        await visitor.page.reload()
        assert asked == ["beforeunload"]
