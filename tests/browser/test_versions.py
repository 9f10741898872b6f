"""Earlier versions of a file on the tester page of a service with API keys, in a real Chromium."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from app.auth.keys import Scope, new_key
from tests.browser.tester import CONTRAST, NOW, PHONE, Visitor, serving, violations, visiting
from tests.doubles import Clock
from tests.origins import Reply, serve, text

pytestmark = pytest.mark.asyncio(loop_scope="session")

KEY, LINES = new_key("people")
OPERATOR, OPERATOR_LINES = new_key("operator", Scope.ADMIN)
DAY = timedelta(days=1)
SCHEMES: tuple[Literal["dark", "light"], ...] = ("dark", "light")

OLD = "User-agent: *\nDisallow: /old/\nCrawl-delay: 5\n"
NEW = "User-agent: *\nDisallow: /new/\nCrawl-delay: 9\n\nUser-agent: Foo\nUser-agent: bar\nDisallow: /\nSitemap: http://h/s\n"


class Keyed(NamedTuple):
    """A service with keys, and an operator's client."""

    url: str
    clock: Clock
    operator: httpx.AsyncClient


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("keys") / "keys.toml"
    file.write_text(LINES + OPERATOR_LINES)
    return file


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def service(store_url: str, keys: Path) -> AsyncIterator[Keyed]:
    clock = Clock(NOW.timestamp())
    headers = {"Authorization": f"Bearer {OPERATOR}"}
    async with (
        serving(store_url, clock, keys) as url,
        httpx.AsyncClient(base_url=url, headers=headers) as client,
    ):
        yield Keyed(url, clock, client)


@asynccontextmanager
async def looking(
    browser: Browser, service: Keyed, *replies: Reply, **options: Any
) -> AsyncIterator[tuple[Visitor, str]]:
    """A visitor who has fetched a site, and the site; the service has fetched each of the replies, the last one now."""
    async with serve(*replies) as origin, visiting(browser, service.url, **options) as visitor:
        for days in range(len(replies) - 1, -1, -1):
            service.clock.now = (NOW - days * DAY).timestamp()
            response = await service.operator.post("v1/robots/refresh", params={"url": origin.url})
            assert response.status_code == 200, response.text
        await visitor.enter("", KEY)
        await visitor.fetch(f"{origin.url}/old/page")
        await expect(visitor.page.locator("#versions")).to_be_visible()
        yield visitor, origin.url


async def test_versions_are_listed_with_times_and_outcomes(service: Keyed, browser: Browser) -> None:
    async with looking(browser, service, text(200, OLD), text(404), text(200, OLD), text(200, NEW)) as (visitor, _):
        assert not any("history" in address for address in visitor.asked)
        await _open(visitor)
        assert await _listed(visitor) == [
            f"since 21 Nov 2026, 10:00 UTC {len(NEW)} bytes · fetched version",
            f"20 Nov 2026, 10:00 – 21 Nov 2026, 10:00 UTC {len(OLD)} bytes",
            "19 Nov 2026, 10:00 – 20 Nov 2026, 10:00 UTC no file (status 404)",
            f"18 Nov 2026, 10:00 – 19 Nov 2026, 10:00 UTC {len(OLD)} bytes",
        ]
        assert await visitor.text("#versions-said") == "Choose a version to compare it with the file."
        assert await visitor.page.locator("#versions-said").get_attribute("aria-live") == "polite"
        assert await visitor.page.locator(".versions button").count() == 3


async def test_earlier_version_is_compared_with_the_file(service: Keyed, browser: Browser) -> None:
    async with looking(browser, service, text(200, OLD), text(200, NEW)) as (visitor, site):
        await visitor.ask(urls=f"{site}/old/page\n{site}/new/page\n{site}/", agents="ExampleBot")
        await _open(visitor)
        await _choose(visitor, 0)
        # From the past to the present; a pasted version is a possible future.
        assert await visitor.cells() == [
            ["Blocked > Allowed, no rule"],
            ["Allowed > Blocked, line 2"],
            ["Allowed, no rule"],
        ]
        assert "Since the earlier version, 2 of them have changed." in await visitor.text("#summary")
        assert await visitor.value("other") == OLD
        assert await visitor.text("#changes-title") == "From the version of 20 Nov 2026, 10:00 UTC to the file"
        assert await visitor.text("#changes-facts") == "2 lines removed, 7 added"
        assert await visitor.text("#diff .gone") == "2 − removed: Disallow: /old/"
        await visitor.choose(0, 0)
        await visitor.page.get_by_label("earlier version", exact=True).check()
        assert await visitor.lines(".is-decides.disallow") == [2]
        await visitor.write("other", "User-agent: *\n")
        assert await visitor.page.locator(".versions [aria-pressed=true]").count() == 0
        await visitor.page.locator("#test").click()
        await expect(visitor.page.locator("#changes-title")).to_have_text("From the file to your version")
        assert await visitor.page.locator("#diff-summary").is_hidden()


async def test_changes_are_listed_by_crawler(service: Keyed, browser: Browser) -> None:
    async with looking(browser, service, text(200, OLD), text(200, NEW)) as (visitor, _):
        await _open(visitor)
        await _choose(visitor, 0)
        assert await visitor.text("#diff-summary-title") == "What changed for whom since 20 Nov 2026, 10:00 UTC"
        assert await visitor.text("#diff-summary-said") == (
            "Read as the standard, something changed for all other crawlers and for 2 named crawlers. "
            "One path per rule was tested; the earlier version stands before the arrow."
        )
        assert await _summary_rows(visitor) == [
            "all other crawlers (*) 1 path lost, 1 path gained, 1 rule removed, 1 rule added, another rate",
            "− lost /new/ ✓ Allowed, no rule → ✕ Blocked, line 2 Disallow: /new/",
            "+ gained /old/ ✕ Blocked, line 2 Disallow: /old/ → ✓ Allowed, no rule",
            "− rule removed, line 2 Disallow: /old/",
            "+ rule added, line 2 Disallow: /new/",
            "• rate one page every 5 s (line 3) → one page every 9 s (line 3)",
            "bar, Foo 1 path lost, 1 rule removed, 1 rule added, another rate",
            "− lost / ✓ Allowed, no rule → ✕ Blocked, line 7 Disallow: /",
            "− rule removed, line 2 Disallow: /old/",
            "+ rule added, line 7 Disallow: /",
            "• rate one page every 5 s (line 3) → no limit",
            "Sitemaps",
            "+ added http://h/s",
        ]
        await visitor.page.get_by_label("Both read as").select_option("google")
        await expect(visitor.page.locator("#diff-summary-said")).to_contain_text("Read as Google")
        assert not [rows for rows in await _summary_rows(visitor) if "rate" in rows]


async def test_what_changed_for_whom_follows_the_verdicts(service: Keyed, browser: Browser) -> None:
    order = "[...document.querySelectorAll('#diff-summary, #verdicts, #changes')].map(({ id }) => id)"
    async with looking(browser, service, text(200, OLD), text(200, NEW)) as (visitor, _):
        await _open(visitor)
        await _choose(visitor, 0)
        await expect(visitor.page.locator("#diff-summary-said")).to_contain_text("Read as")
        assert await visitor.evaluate(order) == ["verdicts", "diff-summary", "changes"]
        summary, verdicts = [await visitor.page.locator(it).bounding_box() for it in ("#diff-summary", "#verdicts")]
        assert summary is not None
        assert verdicts is not None
        assert verdicts["y"] + verdicts["height"] <= summary["y"]
        await visitor.page.get_by_role("button", name="See what changed").click()
        await expect(visitor.page.locator("#diff-summary")).to_be_focused()
        assert await violations(visitor) == []


async def test_version_without_a_file_has_no_line_diff(service: Keyed, browser: Browser) -> None:
    async with looking(browser, service, text(404), text(200, OLD)) as (visitor, _):
        await _open(visitor)
        await _choose(visitor, 0)
        assert await visitor.text("#versions-said") == (
            "There was no file to compare, 20 Nov 2026, 10:00 – 21 Nov 2026, 10:00 UTC. See what changed"
        )
        assert await visitor.page.locator("#changes").is_hidden()
        assert (await _summary_rows(visitor))[
            1
        ] == "− lost /old/ ✓ Allowed, no file → ✕ Blocked, line 2 Disallow: /old/"
        await visitor.page.get_by_role("button", name="See what changed").press("Enter")
        await expect(visitor.page.locator("#diff-summary")).to_be_focused()
        await expect(visitor.page.locator("#diff-summary-title")).to_be_in_viewport()


async def test_deleted_file_can_be_tested_as_it_was(service: Keyed, browser: Browser) -> None:
    async with looking(browser, service, text(200, OLD), text(404)) as (visitor, site):
        await expect(visitor.page.locator("#site-said")).to_contain_text("status 404")
        await visitor.write("urls", f"{site}/old/page")
        await visitor.write("agents", "ExampleBot")
        await _open(visitor)
        assert await visitor.text("#versions-said") == "Choose a version to test it."
        await _choose(visitor, 0)
        assert await visitor.value("robots") == OLD
        assert await visitor.cells() == [["Blocked, line 2"]]
        assert (await _summary_rows(visitor))[
            1
        ] == "+ gained /old/ ✕ Blocked, line 2 Disallow: /old/ → ✓ Allowed, no file"


async def test_another_site_resets_the_versions(service: Keyed, browser: Browser) -> None:
    async with (
        serve(text(200, NEW)) as other,
        looking(browser, service, text(200, OLD), text(200, NEW)) as (visitor, _),
    ):
        await _open(visitor)
        await _choose(visitor, 0)
        await visitor.fetch(other.url)
        await expect(visitor.page.locator("#site-said")).to_contain_text(other.url)
        await expect(visitor.page.locator("#changes")).to_be_hidden()
        assert await visitor.page.locator("#diff-summary").is_hidden()
        assert await visitor.value("other") == ""
        await _open(visitor)
        assert await visitor.text("#versions-said") == "No earlier version is known."
        assert await visitor.page.locator(".versions button").count() == 0


async def test_link_reproduces_the_comparison(service: Keyed, browser: Browser) -> None:
    async with looking(browser, service, text(200, OLD), text(200, NEW)) as (visitor, _):
        await _open(visitor)
        await _choose(visitor, 0)
        await visitor.page.get_by_label("Both read as").select_option("seznam")
        await expect(visitor.page.locator("#diff-summary-said")).to_contain_text("Read as Seznam")
        await visitor.page.locator("#link").click()
        await expect(visitor.page.locator("#linked")).to_be_visible()
        before = await _state(visitor)
        link = visitor.page.url.removeprefix(service.url)
        async with visiting(browser, service.url) as friend:
            await friend.enter(link, KEY)
            await expect(friend.page.locator("#diff-summary-said")).to_contain_text("Read as Seznam")
            assert await _state(friend) == before
            assert await friend.page.locator(".versions [aria-pressed=true]").count() == 1
            state = await friend.evaluate("async () => (await import('./web/state.js')).stateOf(location.hash)")
        state["earlier"]["id"] = "0123456789abcdef"
        forged = await visitor.evaluate(FRAGMENT, {**state, "other": "User-agent: *\nDisallow: /forged\n"})
        async with visiting(browser, service.url) as friend:
            await friend.enter(forged, KEY)
            assert await friend.text("#versions-said") == "The version in this link is no longer known."
            assert await friend.text("#changes-title") == "From the file to your version"
            assert await friend.page.locator("#diff-summary").is_hidden()
        past = {**state, "earlier": None, "fetched": {**state["fetched"], "at": "2026-11-20T10:00:00Z"}}
        async with visiting(browser, service.url) as friend:
            await friend.enter(await visitor.evaluate(FRAGMENT, past), KEY)
            await _open(friend)
            assert [listed.rpartition(" · ")[2] for listed in await _listed(friend)] == ["later", "fetched version"]
            assert await friend.page.locator(".versions button").count() == 0


FRAGMENT = "async (state) => (await (await import('./web/state.js')).fragmentOf(state)).fragment"
READ_BACK = """async (state) => {
    const { fragmentOf, stateOf } = await import("./web/state.js");
    return (await stateOf((await fragmentOf(state)).fragment)) ?? null;
}"""


async def test_link_with_an_invalid_version_is_read_without_it(service: Keyed, browser: Browser) -> None:
    site = {"url": "https://h.example/", "at": "2026-11-21T10:00:00Z", "file": True, "cut": False}
    version = {"id": "0123456789abcdef", "from": "2026-11-20T10:00:00Z"}
    question = {"urls": "https://h.example/", "agents": "a"}
    async with visiting(browser, service.url) as visitor:
        await visitor.enter("", KEY)
        for fetched, earlier, read in [
            (site, version, [site, {**version, "reader": ""}]),
            (None, version, [None, None]),
            ({**site, "url": 1}, version, [None, None]),
            ({**site, "at": "<b>"}, version, [None, None]),
            (site, {**version, "from": 1}, [site, None]),
            (site, [version], [site, None]),
        ]:
            state = await visitor.evaluate(READ_BACK, {**question, "fetched": fetched, "earlier": earlier})
            assert [state["fetched"], state["earlier"]] == read


async def test_hostile_text_in_a_version_is_shown_as_text(service: Keyed, browser: Browser) -> None:
    hostile = (
        "User-agent: <img src=x onerror='window.pwned = 1'>\nUser-agent: *\n"
        "Disallow: /<script>window.pwned = 1</script>\nDisallow: /\u202egnp.exe\u0007\n"
        "Sitemap: http://h/<svg onload='window.pwned = 1'>\n"
    )
    async with looking(browser, service, text(200, hostile), text(200, OLD)) as (visitor, _):
        await _open(visitor)
        await _choose(visitor, 0)
        assert await visitor.evaluate("document.querySelectorAll('main img[src], main svg, main script').length") == 0
        assert await visitor.evaluate("window.pwned === undefined")
        rows = await _summary_rows(visitor)
        assert "− rule removed, line 3 Disallow: /<script>window.pwned = 1</script>" in rows
        assert "− rule removed, line 4 Disallow: /U+202Egnp.exeU+0007" in rows
        unseen = r"/(?!\n|\t)[\p{Cc}\p{Cf}\u2028\u2029]/u"
        assert not await visitor.evaluate(f"{unseen}.test(document.querySelector('main').innerText)")


async def test_page_stays_usable_with_large_versions(service: Keyed, browser: Browser) -> None:
    old, new = (
        "User-agent: *\n" + "".join(f"Disallow: /{name}/some/long/path/{number}\n" for number in range(13_000))
        for name in ("old", "new")
    )
    async with looking(browser, service, text(200, old), text(200, new)) as (visitor, _):
        await _open(visitor)
        await _choose(visitor, 0)
        assert await visitor.text("#changes-facts") == "13,000 lines removed, 13,000 added"
        assert "only a part of it is shown" in await visitor.text("#diff-summary-said")
        await visitor.page.locator("#diff-summary .lines").evaluate("box => { box.scrollTop = box.scrollHeight / 2 }")
        await expect(visitor.page.locator("#diff-summary .change").first).to_be_attached()
        assert await visitor.evaluate("document.querySelectorAll('*').length") < 12_000


async def test_versions_do_not_scroll_sideways_on_a_phone(service: Keyed, browser: Browser) -> None:
    long = f"User-agent: {'a' * 300}\nUser-agent: *\nDisallow: /{'x' * 1500}\nRequest-rate: 1/7s 0900-1700\n"
    options = {"viewport": PHONE, "is_mobile": True, "has_touch": True}
    async with looking(browser, service, text(200, long), text(404), text(200, OLD), **options) as (visitor, _):
        await visitor.page.locator("#versions summary").tap()
        overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        for index in (0, 1):
            await _choose(visitor, index)
            assert await visitor.evaluate(overflow) == 0
        boxes = "[...document.querySelectorAll('#diff-summary .lines, .versions')]"
        inner = f"{boxes}.map(it => it.scrollWidth - it.clientWidth)"
        assert await visitor.evaluate(inner) == [0, 0]


async def test_versions_have_enough_contrast_in_both_schemes(service: Keyed, browser: Browser) -> None:
    async with looking(browser, service, text(200, OLD), text(200, NEW)) as (visitor, _):
        await _open(visitor)
        await _choose(visitor, 0)
        await visitor.page.get_by_role("button", name="Forget the API key").click()
        await visitor.page.locator("#test").click()
        await expect(visitor.page.locator("#key")).to_be_focused()
        for scheme in SCHEMES:
            await visitor.page.emulate_media(color_scheme=scheme)
            found = await visitor.evaluate(CONTRAST)
            assert (found["low"], found["ground"] < 0.05) == ([], scheme == "dark")


async def test_versions_are_chosen_by_keyboard(service: Keyed, browser: Browser) -> None:
    async with looking(browser, service, text(200, OLD), text(200, NEW)) as (visitor, _):
        keyboard = visitor.page.keyboard
        await visitor.page.locator("#robots").focus()
        await keyboard.press("Tab")
        await keyboard.press("Enter")
        await expect(visitor.page.locator(".versions button")).to_be_visible()
        await keyboard.press("Tab")
        assert await visitor.evaluate("document.activeElement.matches('.versions button')")
        assert await visitor.evaluate("parseFloat(getComputedStyle(document.activeElement).outlineWidth) >= 2")
        await keyboard.press("Enter")
        await expect(visitor.page.locator("#versions-said")).to_contain_text("The second version is the file as it was")
        assert await visitor.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
        unnamed = """[...document.querySelectorAll("input, select, textarea")].filter(it => it.labels.length !== 1)"""
        assert await visitor.evaluate(f"{unnamed}.length") == 0


async def _open(visitor: Visitor) -> None:
    await visitor.page.locator("#versions summary").click()
    await expect(visitor.page.locator(".versions li").first).to_be_visible()


async def _choose(visitor: Visitor, index: int) -> None:
    """Choose one of the versions that can be, and wait for all that is rows about it."""
    await visitor.page.locator(".versions button").nth(index).click()
    await expect(visitor.page.locator(".versions button").nth(index)).to_have_attribute("aria-pressed", "true")
    await expect(visitor.page.get_by_role("button", name="See what changed")).to_be_visible()


async def _listed(visitor: Visitor) -> list[str]:
    return [" ".join(it.split()) for it in await visitor.page.locator(".versions li").all_inner_texts()]


async def _summary_rows(visitor: Visitor) -> list[str]:
    """The rows of gained and lost paths."""
    rows = visitor.page.locator("#diff-summary .lines > *")
    return [" ".join(it.split()) for it in await rows.all_inner_texts()]


async def _state(visitor: Visitor) -> dict[str, Any]:
    return {
        "cells": await visitor.cells(),
        "summary": await visitor.text("#summary"),
        "changes": await visitor.text("#changes"),
        "rows": await _summary_rows(visitor),
        "title": await visitor.text("#diff-summary-title"),
    }
