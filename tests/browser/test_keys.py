"""The tester page of a service with API keys, in a real Chromium."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Route, expect

from app.auth.keys import new_key
from tests.browser.tester import Visitor, serving, violations, visiting
from tests.origins import serve, text

pytestmark = pytest.mark.asyncio(loop_scope="session")

KEY, LINES = new_key("people")
SLOW_KEY, SLOW_LINES = new_key("slow")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("keys") / "keys.toml"
    file.write_text(f"{LINES}{SLOW_LINES}limit = {{requests = 2, seconds = 3600}}\n")
    return file


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def service(store_url: str, keys: Path) -> AsyncIterator[str]:
    async with serving(store_url, keys=keys) as url:
        yield url


async def test_page_asks_for_a_key_and_repeats_the_question(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.page.goto(service)
        field = visitor.page.get_by_label("API key", exact=True)
        await expect(field).to_be_focused()
        assert await field.get_attribute("type") == "password"
        assert await visitor.text("#key-said") == "This needs an API key, or the operator's token."
        assert await violations(visitor) == []
        assert await field.get_attribute("aria-invalid") is None
        await _give(visitor, "people.wrong")
        await expect(visitor.page.locator("#key-said")).to_have_text(
            "Unknown API key. Check it, or ask the operator of this service for a new one."
        )
        assert await field.get_attribute("aria-invalid") == "true"
        await expect(field).to_be_focused()
        await _give(visitor, KEY)
        await expect(visitor.page.locator("#keyed")).to_be_hidden()
        assert (await visitor.cells())[2][0] == "Blocked, line 10"
        await expect(visitor.page.locator("#verdicts")).to_be_focused()


async def test_key_is_stored_for_this_tab_only(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.enter("", KEY)
        await visitor.page.locator("#link").click()
        await expect(visitor.page.locator("#linked")).to_be_visible()
        state = "async () => (await import('./web/state.js')).stateOf(location.hash)"
        assert KEY not in repr(await visitor.evaluate(state))
        kept = "[document.cookie, localStorage.length, history.state, Object.values(sessionStorage)]"
        assert await visitor.evaluate(kept) == ["", 0, None, [KEY]]
        assert not any(KEY in address for address in [visitor.page.url, *visitor.asked])
        await visitor.page.reload()
        await expect(visitor.page.locator("#table button").first).to_be_visible()
        assert await visitor.page.locator("#keyed").is_hidden()
        link = visitor.page.url.removeprefix(service)
    async with visiting(browser, service) as friend:
        await friend.enter(link, KEY)
        assert (await friend.cells())[2][0] == "Blocked, line 10"


async def test_fetch_continues_after_the_key_is_entered(service: str, browser: Browser) -> None:
    async with serve(text(200, "User-agent: *\nDisallow: /x\n")) as origin, visiting(browser, service) as visitor:
        await visitor.enter("", KEY)
        await visitor.page.get_by_role("button", name="Forget the API key").click()
        assert await visitor.evaluate("sessionStorage.length") == 0
        assert await visitor.page.locator("#forget").is_hidden()
        await visitor.fetch(f"{origin.url}/x")
        await expect(visitor.page.locator("#key")).to_be_focused()
        assert origin.requests == []
        await _give(visitor, KEY)
        await expect(visitor.page.locator("#site-said")).to_contain_text("fetched just now")
        await expect(visitor.page.locator("#site")).to_be_focused()
        await expect(visitor.page.locator("#summary")).to_contain_text("5 verdicts: 0 allowed, 5 blocked.")


async def test_aborted_question_does_not_ask_for_a_key_again(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.page.goto(service)
        await expect(visitor.page.locator("#key")).to_be_focused()
        await visitor.page.locator("[data-opens=ask-more]").click()
        async with visitor.page.expect_response(lambda response: response.status == 401):
            await visitor.page.locator("#test").click()
        await expect(visitor.page.locator("#key")).to_be_focused()
        before = len(visitor.asked)
        await _give(visitor, KEY)
        await expect(visitor.page.locator("#table button").first).to_be_visible()
        assert [address.removeprefix(service) for address in visitor.asked[before:]] == ["v1/test", "v1/agents"]
        await expect(visitor.page.locator("#test")).to_be_focused()


async def test_malformed_key_is_not_sent(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.page.goto(service)
        await expect(visitor.page.locator("#key")).to_be_focused()
        before = len(visitor.asked)
        for wrong, said in [
            ("", "Paste your API key"),
            ("a b", "Not a valid API key"),
            ("kl\u00ed\u010d", "Not a valid API key"),
        ]:
            await _give(visitor, wrong)
            await expect(visitor.page.locator("#key-said")).to_contain_text(said)
        assert len(visitor.asked) == before
        assert await visitor.evaluate("sessionStorage.length") == 0


async def test_exceeded_quota_shows_when_to_try_again(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.enter("", SLOW_KEY)
        for _ in range(2):
            await visitor.page.locator("#test").click()
            await expect(visitor.page.locator("#verdicts")).not_to_have_attribute("aria-busy", "true")
        said = visitor.page.locator("#question-said")
        await expect(said).to_contain_text("has used up its quota of 2 requests in 3600 s")
        await expect(said).to_contain_text("Try again in 1")
        assert await visitor.page.locator("#keyed").is_hidden()


async def test_error_of_a_proxy_has_a_readable_message(service: str, browser: Browser) -> None:
    refusals: list[tuple[int, dict[str, str], str]] = [
        (429, {"Retry-After": "90"}, "Too many requests: try again in 90\u00a0s."),
        (503, {}, "The service is not available at the moment."),
        (502, {"Retry-After": "soon"}, "The service answered 502."),
    ]
    async with visiting(browser, service) as visitor:
        await visitor.enter("", KEY)
        left = iter(refusals)

        async def refuse(route: Route) -> None:
            status, headers, _ = next(left)
            await route.fulfill(status=status, headers=headers, body="<h1>No</h1>", content_type="text/html")

        await visitor.page.route("**/v1/test", refuse)
        for _, _, said in refusals:
            await visitor.page.locator("#test").click()
            await expect(visitor.page.locator("#question-said")).to_have_text(said)
        visitor.troubles.clear()  # the browser logs a 5xx as an error of the page


async def test_forbidden_key_can_be_replaced(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.enter("", KEY)
        refused = "{\"detail\": \"The API key 'people' is not for this: it lacks the scope 'read'.\"}"

        async def refuse(route: Route) -> None:
            if (await route.request.header_value("authorization")) == f"Bearer {KEY}":
                await route.fulfill(status=403, body=refused, content_type="application/problem+json")
            else:
                await route.continue_()

        await visitor.page.route("**/v1/test", refuse)
        await visitor.page.locator("#test").click()
        await expect(visitor.page.locator("#key-said")).to_contain_text("it lacks the scope 'read'.")
        await _give(visitor, "people.wrong")
        await expect(visitor.page.locator("#key-said")).to_contain_text("Unknown API key")


async def _give(visitor: Visitor, key: str) -> None:
    await visitor.page.locator("#key").fill(key)
    await visitor.page.locator("#key").press("Enter")
