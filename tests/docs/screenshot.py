"""Take the picture of the page for README.md: `make generate NAME=screenshot`."""

import asyncio
import sys
from pathlib import Path

from playwright.async_api import ViewportSize, expect

from app.store.embedded import serve
from tests.browser.tester import browsing, serving, visiting

VIEW = ViewportSize(width=1280, height=900)
"""All that the page shows without scrolling."""


async def take(path: Path, store_url: str) -> None:
    """Open the page with its own example, and write a PNG."""
    async with (
        serving(store_url) as url,
        browsing() as browser,
        visiting(browser, url, viewport=VIEW, color_scheme="light") as visitor,
    ):
        await visitor.page.goto(url)
        await expect(visitor.page.locator("#table > thead")).to_contain_text("AI training")
        await expect(visitor.page.locator("#editor .is-decides")).to_be_visible()
        await visitor.page.screenshot(path=path, animations="disabled")


def main() -> None:
    """Write the PNG that the argument names."""
    with serve(None) as store_url:
        asyncio.run(take(Path(sys.argv[1]), store_url))


if __name__ == "__main__":
    main()
