"""The tester page in a real Chromium, against the real service."""

import re
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from tests.browser.tester import CONTRAST, NOW, PHONE, PREFIX, Visitor, visiting
from tests.origins import serve, text

pytestmark = pytest.mark.asyncio(loop_scope="session")


RATES = "User-agent: *\nDisallow: /x\nRequest-rate: 1/10s 0930-1145\nRequest-rate: 1/60s 1800-1900\n"

HOSTILE = (
    "User-agent: *\n"
    "Disallow: /<script>window.pwned = 1</script>\n"
    "Disallow: /<img src=x onerror='window.pwned = 1'>\n"
    "Disallow: /\u202egnp.exe\u202c/\u0007\u200b\u2028\U000e0041/\u009b\n"
    "Disallow: /\u05d0\u05d1\n"
    "</code></div><style>*{display:none}</style><svg onload='window.pwned = 1'>\n"
)


async def test_first_visit_shows_an_evaluated_example(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        assert await visitor.text("#summary") == "40 verdicts: 24 allowed, 16 blocked. 1 warning about the file."
        assert await visitor.text("#sentence") == (
            "Googlebot, Bingbot and Yandex may fetch 8 of 10 URLs. GPTBot may fetch none: line 18 closes the site."
        )
        assert await visitor.text("#site-said") == "An example: the robots.txt of a shop"
        for needless in ("#keyed", "#forget", "#versions", "#diff-summary", "#notice", "#shares"):
            assert await visitor.page.locator(needless).is_hidden()
        blocked, allowed = [f"Blocked, line {line}" for line in (10, 10, 18)], "Allowed, no rule"
        assert (await visitor.cells())[2] == [*blocked, allowed]
        await expect(visitor.page.locator("#table thead")).to_have_text(
            "URLshop.exampleGooglebotSearch enginesBingbotSearch enginesGPTBotAI trainingYandexSearch engines"
        )
        why = await visitor.text("#why")
        assert "Googlebot may not fetch /private/x" in why
        assert "A group names googlebot, so the one for * does not count (line 8)." in why
        assert "line 10 Disallow: /private/ 9 decided" in why


async def test_deciding_line_and_its_group_are_highlighted(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        assert await visitor.lines(".is-decides") == [10]
        assert await visitor.lines(".in-group") == [8, 9, 10, 11, 12]
        await visitor.choose(5, 3)
        assert await visitor.lines(".is-decides.allow") == [5]
        assert await visitor.lines(".is-matches") == [3]
        assert await visitor.lines(".in-group") == [2, 3, 4, 5, 6]
        assert (await visitor.text(".is-decides")).endswith("decides")
        await visitor.choose(0, 0)
        assert await visitor.lines(".is-decides") == []
        assert "No rule in the group for googlebot" in await visitor.text("#why")


async def test_warnings_are_shown_at_their_lines(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        assert await visitor.lines(".warned") == [11]
        warning = await visitor.text(".warning")
        assert warning == "Only some crawlers read 'Dissalow' as intended. Write 'Disallow: /drafts/'. Fix it"
        await visitor.ask(robots="User-agent: *\n" * 200 + "Dissalow: /a\n" + "# b\n" * 200 + "Dissalow: /c\n")
        more = visitor.page.get_by_role("button", name="2 warnings")
        for line in (201, 402, 201):
            await more.click()
            below = visitor.page.locator(".warning", has_text=f"/{'a' if line == 201 else 'c'}'")
            await expect(below).to_be_in_viewport()


async def test_dialects_are_shown_side_by_side(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.page.get_by_label("the standard", exact=True).check()
        await visitor.page.get_by_label("the draft of 1996").check()
        await expect(visitor.page.locator("#table thead")).to_contain_text("1996 draft")
        await visitor.ask(agents="ExampleBot", urls="https://shop.example/checkout/help")
        assert await visitor.cells() == [["Allowed, line 5", "Blocked, line 3"]]
        assert await visitor.text("#table thead") == "URL shop.example ExampleBot the standard 1996 draft"
        await visitor.choose(0, 1)
        assert "the first in the file decides" in await visitor.text("#why")


async def test_a_guessed_crawler_is_noted(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.ask(
            robots="User-agent: *\nDisallow: /", agents="Mozilla/5.0 (X11) Gecko/1 Firefox/130.0", urls="/a"
        )
        why = await visitor.text("#why")
        assert "Mozilla may not fetch" in why
        assert "names no crawler, so its first product, Mozilla, was taken" in why


async def test_day_band_has_a_marker_for_now(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.ask(robots=RATES, agents="SeznamBot", urls="https://h.example/x")
        assert await visitor.text(".now-sentence") == "Now, at 10:00 UTC: one page every 10 s"
        clamped = "Request-rate of line 4, which asks for 60 s; Seznam waits no longer than this"
        spans = await visitor.evaluate("[...document.querySelectorAll('.spans tbody tr')].map(it => it.innerText)")
        assert [" ".join(span.split()) for span in spans] == [
            "00:00–09:30 no limit",
            "09:30–11:45 one page every 10 s Request-rate of line 3 now",
            "11:45–18:00 no limit",
            f"18:00–19:00 one page every 10 s {clamped}",
            "19:00–24:00 no limit",
        ]
        drawn = """(() => {
            const day = document.querySelector(".band").getBoundingClientRect();
            const clock = (x) => Math.round((x - day.left) / day.width * 24 * 12) * 5 / 60;
            const sides = ({ left, right }) => [clock(left), clock(right)];
            const ends = (element) => sides(element.getBoundingClientRect());
            return { now: ends(document.querySelector(".now"))[0],
                     limits: [...document.querySelectorAll(".segment:not(.open)")].map(ends) };
        })()"""
        assert await visitor.evaluate(drawn) == {"now": 10, "limits": [[9.5, 11.75], [18, 19]]}
        assert await visitor.lines(".is-pace") == [3, 4]
        await visitor.page.clock.set_fixed_time(NOW.replace(hour=20))
        await visitor.ask(agents="Googlebot")
        assert "No crawl rate limit applies" in await visitor.text("#pace")


async def test_second_version_shows_changed_verdicts(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        first = "User-agent: *\nDisallow: /a\n" + "# the same\n" * 9 + "Allow: /z\n"
        await visitor.page.locator("#compare").click()
        await visitor.ask(
            robots=first,
            other=first.replace("/a", "/b") + "# end\n",
            agents="ExampleBot",
            urls="https://h.example/a\nhttps://h.example/b\nhttps://h.example/c",
        )
        assert await visitor.cells() == [
            ["Blocked > Allowed, no rule"],
            ["Allowed > Blocked, line 2"],
            ["Allowed, no rule"],
        ]
        assert "With your version, 2 of them change." in await visitor.text("#summary")
        diff = await visitor.evaluate("[...document.querySelectorAll('#diff .line')].map(it => it.innerText)")
        assert [" ".join(line.split()) for line in diff] == [
            "1 1 User-agent: *",
            "2 − removed: Disallow: /a",
            "2 + added: Disallow: /b",
            "3 3 # the same",
            "4 4 # the same",
            "5 5 # the same",
            "4 unchanged lines",
            "10 10 # the same",
            "11 11 # the same",
            "12 12 Allow: /z",
            "13 + added: # end",
        ]
        await visitor.choose(0, 0)
        assert await visitor.text(".verdict-line") == "✓Allowed"
        await visitor.page.get_by_label("the file", exact=True).check()
        assert await visitor.text(".verdict-line") == "✕Blocked"
        await visitor.page.get_by_label("your version", exact=True).check()
        assert (await visitor.text("#listing-facts")).startswith("13 lines")


DIFFERENCES = """async (pairs) => {
    const { differences } = await import("./web/diff.js");
    return pairs.map(([before, after]) => {
        const steps = differences(before, after);
        const old = steps.filter(({ before }) => before !== null).map((step) => before[step.before]);
        const fresh = steps.filter(({ after }) => after !== null).map((step) => after[step.after]);
        const same = steps.filter(({ kind }) => kind === "same");
        return { old, fresh, same: same.length, true: same.every((it) => before[it.before] === after[it.after]) };
    });
}"""


async def test_diff_contains_both_versions_in_order(service: str, browser: Browser) -> None:
    long = [f"line {number}" for number in range(3000)]
    pairs = [
        ([], []),
        ([], ["a"]),
        (["a", "b", "c"], ["b", "c", "d"]),
        (["a", "a", "b"], ["a", "b", "b", "a"]),
        (long, [line if number % 7 else f"{line}!" for number, line in enumerate(long)]),
        (long, long[::-1]),
        (["x", "y"] * 1500, ["y", "x", "x"] * 1000),
    ]
    async with visiting(browser, service) as visitor:
        await visitor.open()
        found = await visitor.evaluate(DIFFERENCES, pairs)
    assert [(each["old"], each["fresh"], each["true"]) for each in found] == [(old, new, True) for old, new in pairs]
    assert [each["same"] for each in found[:5]] == [0, 0, 2, 2, 3000 - 429]


async def test_page_works_by_keyboard_alone(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.page.goto(service)
        await expect(visitor.page.locator("#table > thead")).to_contain_text("AI training")
        keyboard = visitor.page.keyboard
        order = []
        for _ in range(38):
            await keyboard.press("Tab")
            name = "(it => it.id || it.value || it.innerText)(document.activeElement)"
            order.append(" ".join((await visitor.evaluate(name)).split()))
            around = "document.activeElement.closest('.line-numbers, .editor:has(.cm-content:focus)')"
            outlined = f"{around} ?? document.activeElement"
            width = f"parseFloat(getComputedStyle({outlined}).outlineWidth)"
            assert await visitor.evaluate(f"{width} >= 2"), order[-1]
        assert order[:6] == ["Skip to the verdicts", "site", "fetch", "How it decides", "link", "API"]
        assert order[6:9] == ["10 URLs", "4 crawlers", "Options"]
        assert order[9:14] == ["✕Blocked line 10", "answers 503", "404", "a web page", "nothing"]
        assert order[14:20] == ["link-cell", "How this was decided", "next-warning", "Recipes", "compare", "robots"]
        assert order[20] == "Fix it"
        assert order[21] not in ("robots", "Fix it")  # the editor is left
        # What a click on the number of a line shows, by a key.
        await visitor.page.locator("#robots").focus()
        await keyboard.press("Control+Home")
        for _ in range(9):
            await keyboard.press("ArrowDown")
        await keyboard.press("Alt+Enter")
        assert await visitor.text("#picked-said") == "Line 10 decides 2 verdicts on 1 URL."
        await visitor.page.locator("#all-rows").click()
        await visitor.page.locator("#table [tabindex='0']").focus()
        for key, line in [
            ("ArrowUp", None),
            ("ArrowRight", None),
            ("End", None),
            ("ArrowDown", None),
            ("ArrowLeft", 18),
        ]:
            await keyboard.press(key)
            assert await visitor.lines(".is-decides") == ([] if line is None else [line]), key
        for key, line in [("Home", 10), ("ArrowRight", 10), ("Control+End", None), ("Control+Home", None)]:
            await keyboard.press(key)
            assert await visitor.lines(".is-decides") == ([] if line is None else [line]), key
        assert await visitor.evaluate("document.activeElement.closest('[aria-selected=true]') !== null")
        await visitor.unfold()
        await visitor.page.locator("#urls").focus()
        await keyboard.press("Control+A")
        await keyboard.type("https://shop.example/search")
        await keyboard.press("Control+Enter")
        await expect(visitor.page.locator("#summary")).to_contain_text("4 verdicts")
        for name in ("site", "link-text"):
            assert await visitor.evaluate("id => document.getElementById(id).labels.length", name) == 1
        for name in ("Text of robots.txt", "URLs, one per line", "Crawlers, one per line"):
            await expect(visitor.page.get_by_role("textbox", name=name)).to_have_count(1)
        for selector in ("#urls-said", "#robots-said", "#agents-said"):
            assert await visitor.page.locator(selector).get_attribute("aria-live") == "polite"


async def test_hostile_text_is_shown_as_text(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.page.locator("#compare").click()
        await visitor.ask(
            robots=HOSTILE,
            other="<b>" + HOSTILE,
            agents="ExampleBot\n<i>x",
            urls="https://h.example/<script>window.pwned = 1</script>\nhttps://h.example/\u202egnp.exe",
        )
        assert (
            await visitor.evaluate(
                "document.querySelectorAll('main img[src], style, svg, script:not([src]), i, b').length"
            )
            == 0
        )
        assert await visitor.evaluate("window.pwned === undefined")
        lines = await visitor.page.locator("#editor .cm-line").all_inner_texts()
        assert lines[1] == "Disallow: /<script>window.pwned = 1</script>"
        shown = lines[3]
        assert shown == "Disallow: /U+202Egnp.exeU+202C/U+0007 U+200B U+2028 U+E0041/U+009B"
        assert "U+202Egnp.exe" in await visitor.text("#table")
        unseen = r"/(?!\n|\t)[\p{Cc}\p{Cf}\u2028\u2029]/u"
        assert not await visitor.evaluate(f"{unseen}.test(document.querySelector('main').innerText)")
        direction = "getComputedStyle(document.querySelectorAll('#editor .cm-line')[4])"
        assert await visitor.evaluate(f"[{direction}.direction, {direction}.unicodeBidi]") == ["ltr", "isolate"]


@pytest.mark.parametrize(
    ("robots", "lines"),
    [
        ("User-agent: *\n" + "Disallow: /some/long/path/of/a/page\n" * 13_999 + "Disallow: /x\n", 14_001),
        ("\n" * 499_000 + "User-agent: *\nDisallow: /x\n", 499_002),
        ("User-agent: *\nDisallow: /x\n# " + "\u0001a" * 240_000, 3),
    ],
    ids=["rules", "blank lines", "one line"],
)
async def test_page_stays_usable_with_half_a_megabyte(service: str, browser: Browser, robots: str, lines: int) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.ask(robots=robots, agents="ExampleBot", urls="https://h.example/x\nhttps://h.example/y")
        assert (await visitor.text("#listing-facts")).startswith(f"{lines:,} lines")
        await visitor.choose(0, 0)
        [deciding] = await visitor.lines(".is-decides")
        assert robots.splitlines()[deciding - 1] == "Disallow: /x"
        await visitor.page.locator("#editor").scroll_into_view_if_needed()
        await expect(visitor.page.locator(".is-decides")).to_be_in_viewport()
        await visitor.page.locator("#editor .cm-scroller").evaluate("box => { box.scrollTop = box.scrollHeight / 2 }")
        await expect(visitor.page.locator("#editor .cm-line").first).to_be_attached()
        assert await visitor.evaluate("document.querySelectorAll('*').length") < 8000
        await visitor.choose(1, 0)
        assert await visitor.lines(".is-decides") == []


async def test_phone_does_not_scroll_sideways(service: str, browser: Browser) -> None:
    async with visiting(browser, service, viewport=PHONE, is_mobile=True, has_touch=True) as visitor:
        await visitor.open()
        overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert await visitor.evaluate(overflow) == 0
        await visitor.page.locator("button[data-row='4'][data-column='0']").tap()
        assert await visitor.evaluate(overflow) == 0
        await visitor.page.locator("#compare").tap()
        for dialect in ("rfc9309", "google", "seznam", "draft1996", "v2"):
            await visitor.page.locator(f"input[value={dialect}]").check()
        long = "Disallow: /" + "x" * 3000
        await visitor.ask(
            robots=RATES + long,
            other=RATES + "Disallow: /",
            agents="A" * 200 + "\nExampleBot",
            urls=f"https://h.example/{'y' * 3000}\nnonsense{'z' * 300}\nhttps://{'h' * 60}.example/x",
        )
        assert await visitor.evaluate(overflow) == 0
        await visitor.page.locator("#link").tap()
        await expect(visitor.page.locator("#linked")).to_be_visible()
        assert await visitor.evaluate(overflow) == 0
        assert await visitor.evaluate("(it => it.scrollWidth > it.clientWidth)(document.querySelector('#table-box'))")
        assert (await visitor.text("#table tbody th")).startswith("/yyy")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_colour_schemes_have_enough_contrast(service: str, browser: Browser, scheme: str) -> None:
    async with visiting(browser, service, color_scheme=scheme, reduced_motion="reduce") as visitor:
        await visitor.open()
        await visitor.page.locator("#compare").click()
        await visitor.ask(other="User-agent: *\nDisallow: /\u0001\n", urls="https://h.example/basket/1\nnonsense")
        found = await visitor.evaluate(CONTRAST)
        assert found["low"] == []
        assert (found["ground"] < 0.05) is (scheme == "dark")
        assert await visitor.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"


async def test_link_reproduces_the_state(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.page.locator("#compare").click()
        await visitor.page.get_by_label("Seznam").check()
        state = {
            "robots": HOSTILE + RATES,
            "other": "User-agent: *\nAllow: /\n",
            "urls": "https://h.example/x\n\nhttps://h.example/%D7%90%D7%91",
            "agents": "ExampleBot\nSeznamBot",
        }
        await visitor.ask(**state)
        await visitor.choose(1, 1)
        await visitor.page.get_by_label("your version", exact=True).check()
        await visitor.page.locator("#link").click()
        await expect(visitor.page.locator("#link-text")).to_have_value(re.compile("#1="))
        link = await visitor.page.locator("#link-text").input_value()
        assert link == visitor.page.url
        before = await _state(visitor)
    async with visiting(browser, service) as friend:
        await friend.open(link.removeprefix(service))
        assert await _state(friend) == before
        assert {**before, **state, "dialects": ["seznam"]} == before
        assert not any("#" in address or "1=" in address for address in friend.asked[1:])


async def test_link_names_the_site_if_the_file_is_too_large(service: str, browser: Browser) -> None:
    rules = "".join(f"Disallow: /{number * number}\n" for number in range(20_000))
    async with serve(text(200, f"User-agent: *\n{rules}Disallow: /x\n")) as origin:
        async with visiting(browser, service) as visitor:
            await visitor.open()
            await visitor.fetch(origin.url)
            await expect(visitor.page.locator("#listing-facts")).to_contain_text("20,002 lines")
            await visitor.ask(urls=f"{origin.url}/x", agents="ExampleBot")
            await visitor.page.locator("#link").click()
            await expect(visitor.page.locator("#link-said")).to_contain_text("too large for a link")
            assert "so the link names the site" in await visitor.text("#link-said")
            link = visitor.page.url
            assert len(link) < 1000
        async with visiting(browser, service) as friend:
            await friend.open(link.removeprefix(service))
            assert await friend.cells() == [["Blocked, line 20002"]]


async def test_unreadable_link_shows_the_example_and_an_error(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        for fragment in ("#1=", "#1=AAAA", "#1=%00", "#1=q1YqLs0rycxLV7JSMtQxUqoFAA", "#1=" + "A" * 40_000):
            await visitor.open(fragment)
            await expect(visitor.page.locator("#question-said")).to_have_text(
                "The link cannot be read; this is an example."
            )
            assert (await visitor.cells())[2][0] == "Blocked, line 10"
            await visitor.ask(urls="https://h.example/")
            await expect(visitor.page.locator("#question-said")).to_be_empty()
            await visitor.page.get_by_role("button", name="Clear").click()
            await expect(visitor.page.locator("#back")).to_be_visible()


async def test_invalid_url_is_reported_at_its_line(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.ask(
            urls="https://h.example/checkout/\n\nshop\nhttps://\nhttps://h.example/", agents="ExampleBot\n!\nB"
        )
        said = await visitor.text("#urls-said")
        assert said.startswith("line 3 'shop' is not an absolute URL: start it with http:// or https:// line 4 ")
        assert (await visitor.text("#agents-said")).startswith("line 2 the agent '!' holds no product token")
        marked = "[...document.querySelectorAll('.line-numbers .cm-gutterElement.wrong')].map(it => it.innerText)"
        assert await visitor.evaluate(marked) == ["3", "4", "2"]
        assert await visitor.page.locator("#urls").get_attribute("aria-invalid") == "true"
        assert await visitor.cells() == [["Blocked, line 3"] * 2, [], [], ["Allowed, no rule"] * 2]
        assert "3 lines of the question could not be read." in await visitor.text("#summary")
        await visitor.page.locator("#urls-said button").first.click()
        assert await visitor.evaluate("getSelection().toString()") == "shop"
        await visitor.page.keyboard.type("https://shop.example/")
        assert await visitor.text("#urls-said") == ""


async def test_missing_or_too_many_pages_are_reported(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.write("urls", "\n \n")
        await visitor.page.locator("#test").click()
        await expect(visitor.page.locator("#urls-said")).to_have_text("Enter at least one URL.")
        await visitor.write("urls", "https://h.example/\n" * 2501)
        await visitor.write("agents", "ExampleBot\n" * 20)
        await visitor.page.locator("#test").click()
        await expect(visitor.page.locator("#question-said")).to_contain_text(
            "50,020 verdicts: this page asks for 50,000 at most."
        )
        await visitor.write("urls", "nonsense\n" * 40)
        await visitor.page.locator("#test").click()
        await expect(visitor.page.locator("#question-said")).to_contain_text("More than 25 lines cannot be read")


async def test_file_is_fetched_from_its_site(service: str, browser: Browser) -> None:
    file = "User-agent: *\r\nDisallow: /private/\r\n"
    async with serve(text(200, file)) as origin, visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.fetch(f"{origin.url}/private/page")
        await expect(visitor.page.locator("#summary")).to_contain_text("5 verdicts: 0 allowed, 5 blocked.")
        said = f"{origin.url}/robots.txt · fetched just now"
        assert await visitor.text("#site-said") == said
        assert await visitor.lines(".is-decides") == [2]
        assert await visitor.value("urls") == f"{origin.url}/private/page"


async def test_failed_fetch_shows_the_reason(service: str, browser: Browser) -> None:
    async with serve(text(404)) as empty, serve(text(503)) as broken, visiting(browser, service) as visitor:
        await visitor.open()
        for site, expected, verdicts in [
            (empty.url, f"{empty.url}/robots.txt · status 404 · asked just now", 4),
            (broken.url, f"{broken.url}/robots.txt · error 503 · asked just now", 4),
            ("private.example", "private.example/robots.txt · resolves to an address that is not public", 4),
            ("unknown.example", "unknown.example/robots.txt · the host name was not found", 4),
            ("ftp://h.example/", "'ftp://h.example/'", 0),
            ("", "Name a site", 0),
        ]:
            await visitor.fetch(site)
            await expect(visitor.page.locator("#site-said")).to_contain_text(expected)
            # Only what the user can mend is wrong in the field.
            assert (await visitor.page.locator("#site").get_attribute("aria-invalid")) == (None if verdicts else "true")
            await expect(visitor.page.locator("#table .cell")).to_have_count(verdicts)


async def test_page_works_below_a_path_prefix(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open(f"{PREFIX[1:]}/")
        assert (await visitor.cells())[2][0] == "Blocked, line 10"
        assert all(f"{PREFIX}/" in address for address in visitor.asked)


async def _state(visitor: Visitor) -> dict[str, Any]:
    ticked = "[...document.querySelectorAll('input[name=dialect]:checked')].map(it => it.value)"
    return {
        **{name: await visitor.value(name) for name in ("robots", "other", "urls", "agents")},
        "dialects": await visitor.evaluate(ticked),
        "cells": await visitor.cells(),
        "why": await visitor.text("#why"),
        "lines": await visitor.text("#editor"),
        "chosen": await visitor.page.locator("[aria-selected=true]").evaluate_all("it => it.map(td => td.cellIndex)"),
    }
