"""A service for the tests of a module, and a browser for those of a process."""

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser

from tests.browser.tester import browsing, serving


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def service(store_url: str) -> AsyncIterator[str]:
    """The URL of a service without API keys."""
    async with serving(store_url) as url:
        yield url


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """A browser with a temporary profile. To start it takes as long as several tests."""
    async with browsing() as browser:
        yield browser
