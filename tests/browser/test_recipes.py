"""Recipes: each writes lines that the warnings accept, shows whom it hits, and is taken back by one undo."""

import pytest
from playwright.async_api import Browser, expect

from tests.browser.tester import PHONE, Visitor, violations, visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")

CLOSED_TO_OTHERS = "whole-site-closed"
"""What the recipe for search engines is about: the warning says so."""

RECIPES = {
    "Block AI training": ("Meta-ExternalAgent", "disallow", set()),
    "Keep images out": ("Googlebot-Image", "disallow", set()),
    "Open only for search": ("AhrefsBot", "disallow", {CLOSED_TO_OTHERS}),
    "Slow down": ("Bingbot", "allow", set()),
}
"""A crawler, its verdict on the home page by the recipe, and the warnings that come with it."""

FILES = {
    "shop": "User-agent: *\nDisallow: /basket/\nAllow: /basket/help\n\nUser-agent: GPTBot\nDisallow: /\n",
    "empty": "",
    "shared": "\ufeffuser-agent: Other\n# and all\nUser-agent: *\nDisallow: /a\nSitemap: https://a.example/s.xml",
    "named": "User-agent: Googlebot-Image\nUser-agent: SeznamBot\nAllow: /x\n",
}


async def follow(visitor: Visitor, recipe: str) -> str:
    """Follow a recipe; the text of the version that it writes."""
    if await visitor.page.locator("#recipes").is_hidden():
        await visitor.page.get_by_role("button", name="Recipes").click()
    await visitor.page.get_by_role("button", name=recipe, exact=True).click()
    await expect(visitor.page.locator("#back")).to_be_visible()
    await expect(visitor.page.locator("#verdicts")).not_to_have_attribute("aria-busy", "true")
    return await visitor.value("other")


async def verdict_on(visitor: Visitor, robots: str, agent: str) -> tuple[str, set[str]]:
    """The verdict on the home page, and the codes of the warnings."""
    body = {"robots": robots, "urls": ["https://a.example/"], "agents": [agent]}
    response = await visitor.page.request.post(f"{visitor.url}v1/test", data=body)
    answer = await response.json()
    return answer["rows"][0]["verdict"], {warning["code"] for warning in answer["warnings"]}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("recipe", RECIPES)
async def test_recipe_writes_lines_that_the_warnings_accept(
    service: str, browser: Browser, recipe: str, file: str
) -> None:
    agent, verdict, more = RECIPES[recipe]
    async with visiting(browser, service) as visitor:
        await visitor.open()
        await visitor.ask(robots=FILES[file], urls="https://a.example/")
        written = await follow(visitor, recipe)
        found, codes = await verdict_on(visitor, written, agent)
        _, before = await verdict_on(visitor, FILES[file], agent)
        assert codes - before <= more
        assert found == ("allow" if (file, recipe) == ("named", "Keep images out") else verdict)
        if recipe == "Open only for search":
            assert (await verdict_on(visitor, written, "Qwantbot"))[0] == "allow"


async def test_recipe_shows_whom_it_hits_and_is_taken_back(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        agents = await visitor.value("agents")
        await follow(visitor, "Keep images out")
        await expect(visitor.page.locator("#sentence")).to_contain_text("For Googlebot-Image, ")
        await expect(visitor.page.locator("#sentence")).to_contain_text("your change blocks 8 URLs")
        assert await violations(visitor) == []
        await visitor.page.locator("#bring-back").click()
        await expect(visitor.page.locator("#sentence")).to_contain_text("GPTBot may fetch none")
        assert await visitor.value("agents") == agents
        assert await visitor.value("other") == ""


async def test_recipe_that_has_nothing_to_change_says_so(service: str, browser: Browser) -> None:
    async with visiting(browser, service, viewport=PHONE, color_scheme="dark") as visitor:
        await visitor.open()
        await visitor.page.get_by_role("button", name="Recipes").click()
        await visitor.page.get_by_role("button", name="Slow down", exact=True).click()
        await expect(visitor.page.locator("#advice-said")).to_contain_text("have a Crawl-delay already")
        assert await visitor.value("other") == ""
        assert await violations(visitor) == []
