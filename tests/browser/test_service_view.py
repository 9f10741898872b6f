"""The tester page's view "what our crawlers do now": what the fleet is told now, in a real Chromium."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from app.auth.keys import new_key
from tests.browser.tester import NOW, Visitor, serving, visiting
from tests.doubles import Clock
from tests.operator_token import TOKEN_FILE, TOKEN_HEADER
from tests.origins import serve, text

pytestmark = pytest.mark.asyncio(loop_scope="session")

FILE = "User-agent: *\nDisallow: /private/\nCrawl-delay: 7\n"
KEY, LINES = new_key("people")


class Open(NamedTuple):
    """A service without keys, and its operator's client."""

    url: str
    clock: Clock
    client: httpx.AsyncClient


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def service(store_url: str) -> AsyncIterator[Open]:
    clock = Clock(NOW.timestamp())
    async with serving(store_url, clock) as url, httpx.AsyncClient(base_url=url, headers=TOKEN_HEADER) as client:
        yield Open(url, clock, client)


async def _ask_service(visitor: Visitor, **fields: str) -> None:
    for name, value in fields.items():
        await visitor.page.locator(f"#{name}").fill(value)
    async with visitor.page.expect_response(lambda response: response.url.endswith("/v1/allowed") and response.ok):
        await visitor.page.get_by_label("what our crawlers do now").check()
    await expect(visitor.page.locator("#stale")).to_be_hidden()


async def _facts(visitor: Visitor) -> dict[str, str]:
    script = "dl => [...dl.querySelectorAll('dt')].map(dt => [dt.innerText, dt.nextElementSibling.innerText])"
    pairs = await visitor.page.locator(".facts").evaluate(script)
    return {name: " ".join(fact.split()) for name, fact in pairs}


async def test_override_decides_in_the_view_of_the_service(service: Open, browser: Browser) -> None:
    async with serve(text(200, FILE)) as origin, visiting(browser, service.url) as visitor:
        override = {"scope": origin.url, "action": "deny", "reason": "on request", "agents": ["ExampleBot"]}
        (await service.client.put("v1/overrides/closed", json=override)).raise_for_status()
        await visitor.open()
        await visitor.fetch(f"{origin.url}/shop")
        await visitor.ask(agents="ExampleBot\nOtherBot", urls=f"{origin.url}/shop\n{origin.url}/private/x")
        assert await visitor.cells() == [["Allowed, no rule"] * 2, ["Blocked, line 2"] * 2]
        await _ask_service(visitor)
        assert await visitor.cells() == [
            ["Blocked, override", "Allowed, no rule"],
            ["Blocked, override", "Blocked, line 2"],
        ]
        await visitor.choose(0, 0)
        assert "An operator's override closed disallows this URL." in await visitor.text("#why")
        assert (await _facts(visitor))[
            "Override"
        ] == f"closed ({origin.url}) blocks everything in its scope. on request"
        await visitor.choose(1, 1)
        await expect(visitor.page.locator("#editor .is-decides")).to_be_visible()
        assert await visitor.lines(".is-decides") == [2]
        assert await visitor.text(".now-sentence") == "Now, at 10:00 UTC: one page every 7 s"
        facts = await _facts(visitor)
        assert facts["Crawl rate now"] == "one page every 7 s (crawl-delay of line 3)"
        assert "Override" not in facts
        await visitor.page.get_by_label("this text").check()
        await expect(visitor.page.locator(".facts")).to_be_hidden()
        assert (await visitor.cells())[0] == ["Allowed, no rule"] * 2


async def test_defers_and_blocked_addresses_are_explained(service: Open, browser: Browser) -> None:
    async with serve(text(503)) as broken, serve(text(404)) as empty, visiting(browser, service.url) as visitor:
        await visitor.open()
        await _ask_service(
            visitor,
            urls=f"{broken.url}/x\n{empty.url}/x\nhttp://private.example/x\nnonsense",
            agents="ExampleBot\n!",
        )
        assert await visitor.cells() == [
            ["Try later, fetch failed"],
            ["Allowed, no file"],
            ["Blocked, not a public address"],
            [],
        ]
        assert "3 verdicts: 1 allowed, 1 blocked, 1 to try later." in await visitor.text("#summary")
        assert "2 lines of the question could not be read." in await visitor.text("#summary")
        assert (await visitor.text("#urls-said")).startswith("line 4 'nonsense'")
        assert (await visitor.text("#agents-said")).startswith("line 2 ")
        await visitor.choose(0, 0)
        facts = await _facts(visitor)
        assert facts["Try again"].startswith("in ")
        assert facts["Last fetch"].startswith("failed: the server answered with an error; failing since 21 Nov 2026")
        await expect(visitor.page.locator("#listing-facts")).to_have_text(
            "There is no file. Paste one to test what it would say."
        )
        await visitor.choose(2, 0)
        assert "not public" in (await _facts(visitor))["Last fetch"]
        assert (await visitor.page.locator("#chosen-said").inner_text()).startswith("Blocked: ")
        tip = await visitor.page.locator("#table .verdict").first.get_attribute("title")
        assert tip == "API: defer, unreachable"


async def test_operators_fetch_the_file_again(service: Open, browser: Browser) -> None:
    replies = [text(200, FILE), text(200, "User-agent: *\nDisallow: /\n"), text(200, "User-agent: *\nAllow: /\n")]
    async with serve(*replies) as origin, visiting(browser, service.url) as visitor:
        (await service.client.get("v1/robots", params={"url": origin.url})).raise_for_status()
        service.clock.now += 3 * 3600
        await visitor.become_operator()
        await visitor.open()
        await visitor.fetch(f"{origin.url}/shop")
        await expect(visitor.page.locator("#site-said")).to_contain_text("fetched 3 hours ago")
        await visitor.page.locator("#refetch").click()
        await expect(visitor.page.locator("#site-said")).to_contain_text("fetched just now")
        await expect(visitor.page.locator("#summary")).to_contain_text("0 allowed, 5 blocked")
        await _ask_service(visitor)
        await expect(visitor.page.locator("#summary")).to_contain_text("0 allowed, 5 blocked")
        await visitor.page.locator(".facts").get_by_role("button", name="Fetch again").click()
        await expect(visitor.page.locator("#summary")).to_contain_text("5 allowed, 0 blocked")
        service.clock.now = NOW.timestamp()


async def test_backoff_of_the_fleet_is_shown_to_operators(service: Open, browser: Browser) -> None:
    async with serve(text(200, "User-agent: *\nAllow: /\n")) as origin, visiting(browser, service.url) as visitor:
        asked = {"url": f"{origin.url}/x", "agent": "ExampleBot"}
        permit = (await service.client.post("v1/permits", json=asked)).json()["permit"]
        reported = await service.client.post(f"v1/permits/{permit}/outcome", json={"status": 429, "retry_after": 300})
        assert reported.json()["backoff"] is not None
        service.clock.now += 11  # a list of origins is up to 10 s old
        await visitor.become_operator()
        await visitor.open()
        await _ask_service(visitor, urls=f"{origin.url}/x", agents="ExampleBot")
        assert (await _facts(visitor))["Back-off"].startswith("The fleet leaves this site alone until 21 Nov 2026")
        service.clock.now = NOW.timestamp()


async def test_changed_urls_are_not_fetched_while_typed(service: Open, browser: Browser) -> None:
    async with serve(text(200, FILE)) as origin, visiting(browser, service.url) as visitor:
        await visitor.open()
        await _ask_service(visitor, urls=f"{origin.url}/x")
        await expect(visitor.page.locator("#listing-facts")).to_contain_text("3 lines")
        asked = len(visitor.asked)
        await visitor.write("urls", "https://unfinished.exam")
        await expect(visitor.page.locator("#stale-why")).to_have_text("The question has changed.")
        assert len(visitor.asked) == asked
        # The copy cannot be changed; the text that is tested can.
        await expect(visitor.page.get_by_role("textbox", name="The service's copy of robots.txt")).to_be_visible()
        await visitor.page.get_by_label("this text").check()
        await visitor.write("robots", "User-agent: *\nDisallow: /\n")
        await expect(visitor.page.locator("#summary")).to_contain_text("4 blocked")


async def test_without_keys_the_token_is_asked_for_when_it_is_needed(service: Open, browser: Browser) -> None:
    replies = [text(200, FILE), text(200, "User-agent: *\nDisallow: /\n")]
    async with serve(*replies) as origin, visiting(browser, service.url) as visitor:
        await visitor.open()
        await visitor.fetch(f"{origin.url}/shop")
        await expect(visitor.page.locator("#keyed")).to_be_hidden()
        await visitor.page.locator("#refetch").click()
        asked = "This needs an API key, or the operator's token."
        await expect(visitor.page.locator("#key-said")).to_have_text(asked)
        await visitor.page.get_by_label("API key", exact=True).fill(TOKEN_FILE.read_text().strip())
        await visitor.page.keyboard.press("Enter")
        await expect(visitor.page.locator("#summary")).to_contain_text("0 allowed, 5 blocked")


async def test_only_operators_may_fetch_again(store_url: str, browser: Browser, tmp_path: Path) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text(LINES)
    async with (
        serve(text(200, FILE)) as origin,
        serving(store_url, keys=keys) as url,
        visiting(browser, url) as visitor,
    ):
        await visitor.enter("", KEY)
        await visitor.fetch(f"{origin.url}/private/")
        await expect(visitor.page.locator("#site-said")).to_contain_text("fetched just now")
        await _ask_service(visitor, agents="ExampleBot")
        await expect(visitor.page.locator("#listing-facts")).to_contain_text("3 lines")
        assert "fetched just now" in (await _facts(visitor))["robots.txt"]
        assert await visitor.page.get_by_role("button", name="Fetch again").count() == 0
        await expect(visitor.page.locator("#keyed")).to_be_hidden()


async def test_link_to_the_view_of_the_service_fetches_nothing(service: Open, browser: Browser) -> None:
    async with serve(text(200, FILE)) as origin:
        async with visiting(browser, service.url) as visitor:
            await visitor.open()
            await _ask_service(visitor, urls=f"{origin.url}/private/", agents="ExampleBot")
            await visitor.page.locator("#link").click()
            await expect(visitor.page.locator("#linked")).to_be_visible()
            link = visitor.page.url
        async with visiting(browser, service.url) as friend:
            await friend.page.goto(link)
            await expect(friend.page.locator("#sentence")).to_have_text("Press Test to see what our crawlers do now.")
            assert not [address for address in friend.asked if "/v1/" in address]
            await friend.page.locator("#test").click()
            await expect(friend.page.locator("#summary")).to_contain_text("1 verdict: 0 allowed, 1 blocked.")


async def test_refused_pages_are_shown_beside_the_verdict(service: Open, browser: Browser) -> None:
    async with serve(text(200, FILE)) as origin, visiting(browser, service.url) as visitor:
        body = {"url": f"{origin.url}/shop", "agent": "ExampleBot", "max_wait": 60}
        for status in (403, 402):
            answer = (await service.client.post("v1/permits", json=body)).json()
            told = await service.client.post(f"v1/permits/{answer['permit']}/outcome", json={"status": status})
            told.raise_for_status()
        await visitor.open()
        await _ask_service(visitor, agents="ExampleBot\nOtherBot", urls=f"{origin.url}/shop")
        assert await visitor.cells() == [["Allowed, no rule"]] * 2
        await visitor.choose(0, 0)
        at = "21 Nov 2026, 10:00 UTC"
        assert (await _facts(visitor))["Pages"] == (
            f"By reports of crawlers, pages have a price for this agent (2 reports since {at}); "
            f"the last had status 402, {at}."
        )
        await visitor.choose(0, 1)
        assert "Pages" not in await _facts(visitor)


async def test_the_next_limit_is_shown_where_none_is_in_force(service: Open, browser: Browser) -> None:
    body = "User-agent: {}\nDisallow: /x\nRequest-rate: 1/20s {}-1200\n"
    body = body.format("a", "1130") + body.format("b", "0900")
    async with serve(text(200, body)) as origin, visiting(browser, service.url) as visitor:
        await visitor.open()
        await _ask_service(visitor, agents="a\nb", urls=f"{origin.url}/shop")
        for column, shown in enumerate(
            (
                "no limit, until 21 Nov 2026, 11:30 UTC; then one page every 20 s",
                "one page every 20 s (request-rate of line 6), until 21 Nov 2026, 12:00 UTC; then no limit",
            )
        ):
            await visitor.choose(0, column)
            assert (await _facts(visitor))["Crawl rate now"] == shown
