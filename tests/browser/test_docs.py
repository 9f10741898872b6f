"""The API documentation in Swagger UI works under its policy, and contacts no other host; words of pictures fit."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.browser.tester import PREFIX

pytestmark = pytest.mark.asyncio(loop_scope="session")

ARCHITECTURE = Path(__file__).parents[2] / "docs" / "explanation" / "architecture.svg"

UNFIT = """() => {
    const boxes = [...document.querySelectorAll("rect")].map((rect) => rect.getBBox());
    const room = ({ x, y, width, height }) => boxes
        .filter((box) => box.x < x + width / 2 && x + width / 2 < box.x + box.width)
        .filter((box) => box.y < y + height / 2 && y + height / 2 < box.y + box.height)
        .reduce((least, box) => box.width < least.width ? box : least);
    const fits = (text, box) => box.x + 4 <= text.x && text.x + text.width <= box.x + box.width - 4;
    const words = [...document.querySelectorAll("text")];
    return [words.length, words.filter((it) => !fits(it.getBBox(), room(it.getBBox()))).map((it) => it.textContent)];
}"""

UNKNOWN_FORMAT = "Could not find component: JsonSchema_string_crawler"
"""Warnings of Swagger UI about formats that it does not know."""


@pytest.mark.parametrize("below", ["", f"{PREFIX.removeprefix('/')}/"])
async def test_api_reference_needs_only_the_service(service: str, browser: Browser, below: str) -> None:
    page = await browser.new_page()
    troubles: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    await page.goto(f"{service}{below}docs")
    route = page.locator("#operations-decisions-allowed")
    await route.locator(".opblock-summary-control").click()
    await route.locator(".try-out__btn").click()
    await route.locator("tr[data-param-name=url] input").fill("http://private.example/page")
    await route.locator("tr[data-param-name=agent] input").fill("ExampleBot")
    await route.locator(".execute").click()
    answer = route.locator(".live-responses-table").first
    await expect(answer).to_contain_text("blocked_address")
    await page.close()
    assert [trouble for trouble in troubles if trouble != UNKNOWN_FORMAT] == []
    assert [url for url in asked if not url.startswith(f"{service}{below}")] == []


async def test_words_stay_in_the_boxes_of_the_architecture(browser: Browser) -> None:
    page = await browser.new_page()
    await page.set_content(ARCHITECTURE.read_text())
    words, unfit = await page.evaluate(UNFIT)
    await page.close()
    assert words > 15
    assert unfit == []
