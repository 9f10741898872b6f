"""Spec Q9 by the API: a web page in place of a robots.txt."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from robots_core.times import instant
from tests.api.service import START, Service, running
from tests.origins import Exchange, serve, text

pytestmark = pytest.mark.usefixtures("store_client")

RULES = text(200, "User-agent: *\nDisallow: /private\n", {"Content-Type": "text/plain"})
PAGE = text(200, "<!doctype html>\n<title>Making sure you are not a bot</title>\n", {"Content-Type": "text/html"})


class Site:
    """An origin whose answer may be exchanged."""

    def __init__(self) -> None:
        self.answer = RULES

    async def __call__(self, exchange: Exchange) -> None:
        """Send the answer."""
        await exchange.send(self.answer)


@asynccontextmanager
async def visited(store_url: str) -> AsyncIterator[tuple[Site, str, Service]]:
    """A site, the URL of a page that its rules close, and a service that has read them."""
    site = Site()
    async with serve(site) as origin, running(store_url) as service:
        url = f"{origin.url}/private"
        assert (await service.allowed(url))["verdict"] == "disallow"
        yield site, url, service


async def test_a_page_does_not_open_a_site_on_its_first_day(store_url: str) -> None:
    async with visited(store_url) as (site, url, service):
        site.answer = PAGE
        answer: dict[str, Any] = {}
        for hour in range(25, 49):
            service.now = START + 3600 * hour
            answer = await service.allowed(url)
            assert (answer["verdict"], answer["robots"]["cause"]) == ("disallow", "html_page"), hour
        since = instant(START + 3600 * 25)
        assert answer["explanation"]["summary"] == (
            "Line 2 (Disallow: /private) in the group for * disallows this URL; "
            f"a web page (HTML) has come in its place since {since}, so the copy of {instant(START)} is used."
        )
        service.now = START + 3600 * 50
        answer = await service.allowed(url)
        assert (answer["verdict"], answer["robots"]["cause"], answer["robots"]["failing_since"]) == (
            "allow",
            None,
            None,
        )
        assert answer["explanation"]["summary"] == (
            "A web page (HTML) came in place of robots.txt; it has no rules, so every URL is allowed."
        )


async def test_rules_that_come_back_count_at_once(store_url: str) -> None:
    async with visited(store_url) as (site, url, service):
        site.answer = PAGE
        service.now += 30 * 3600
        assert (await service.allowed(url))["robots"]["stale"] is True
        site.answer = text(200, "User-agent: *\nDisallow:\n", {})
        service.now += 2 * 3600
        answer = await service.allowed(url)
        assert (answer["verdict"], answer["robots"]["stale"]) == ("allow", False)


async def test_a_page_without_known_rules_is_an_empty_file(store_url: str) -> None:
    site = Site()
    site.answer = PAGE
    async with serve(site) as origin, running(store_url) as service:
        answer = await service.allowed(f"{origin.url}/private")
        assert (answer["verdict"], answer["reason"]) == ("allow", "no_rules")


async def test_a_page_that_a_crawler_fetched_is_doubted_alike(store_url: str) -> None:
    async with visited(store_url) as (_site, url, service):

        async def sent(at: float) -> dict[str, Any]:
            body = {"status": 200, "observed_at": instant(at), "robots": "<html>", "headers": []}
            answer = await service.client.put("/v1/robots", params={"url": url}, json=body)
            assert answer.status_code == 200, answer.text
            taken: dict[str, Any] = answer.json()["ingested"]
            return taken

        service.now = START + 3660
        for at in START + 3600, START + 1800:  # the later one first
            assert (await sent(at))["in_use"] is False
            answer = await service.allowed(url)
            assert (answer["verdict"], answer["robots"]["cause"]) == ("disallow", "html_page")
