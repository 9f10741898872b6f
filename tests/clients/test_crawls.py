"""The crawls of clients/conformance.json, by each integration of Python, and by an agent over MCP."""

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp.types import TextContent

from tests.clients import integrations
from tests.clients.agents import over_stdio
from tests.clients.crawling import crawl, crawl_by_scrapy
from tests.clients.crawls import Came, Crawler, Naming, Options, crawl_names, differences

WITHOUT_QUEUE = [
    "aiohttp", "client", "client-threads", "httpx", "httpx-threads", "httpx2", "httpx2-threads", "requests",
]  # fmt: skip
CRAWLS = pytest.mark.parametrize("name", crawl_names())


async def by_integration(integration: str, service: str, options: Options, pages: list[str], _: Path) -> Came:
    came = await asyncio.to_thread(integrations.crawl, integration, {"service": service, **options}, pages)
    return Came({url: (it, it.message) for url, it in came.items() if isinstance(it, integrations.Failed)})


async def by_scrapy(service: str, options: Options, pages: list[str], folder: Path, scheduler: str) -> Came:
    own = {f"ROBOTS_DECISIONS_{name.upper()}": value for name, value in options.items()}
    came = await crawl_by_scrapy(
        *pages, service=service, JOBDIR=str(folder), SCHEDULER=scheduler, RETRY_TIMES=0, HTTPERROR_ALLOW_ALL=True, **own
    )
    stopped = came["stats"]["finish_reason"] == "robots_decisions_misconfigured"
    failed: Mapping[str, Any] = came["failed"]
    return Came(
        {url: (kind, came["messages"][url]) for url, kind in failed.items()}, came["complaints"] if stopped else ""
    )


async def by_crawlee(service: str, options: Options, pages: list[str], folder: Path) -> Came:
    plan = {"service": service, "storage": str(folder), "urls": pages, "options": dict(options)}
    came = await crawl(plan, "queued")
    failed = {url: (text.partition("(")[0], text) for url, text in came["failed"].items()}
    return Came(failed, came["misconfigured"])


async def by_agent(service: str, options: Options, pages: list[str], _: Path) -> Came:
    """Calls the tools as they say."""
    failed: dict[str, tuple[str, str]] = {}
    purposes = [f"--purpose={purpose}" for purpose in options.get("purpose", ())]
    key = {"ROBOTS_API_KEY": options["key"]} if "key" in options else {}
    arguments = ("--agent", "ExampleBot", "--server", service, *purposes)
    async with over_stdio(*arguments, **key) as agent, httpx.AsyncClient() as http:
        for url in pages:
            while url not in failed:
                result = await agent.call_tool("reserve", {"url": url})
                slot = result.structured_content or {}
                if result.is_error:
                    (said,) = result.content
                    assert isinstance(said, TextContent)
                    if "Set " in said.text:  # else nothing is known about the page, and the agent asks again
                        failed[url] = ("Misconfigured", said.text)
                elif slot["outcome"] == "disallow":
                    failed[url] = ("Disallowed", slot["why"])
                elif slot["outcome"] == "defer":
                    await asyncio.sleep(slot["ask_again_in"])
                else:
                    page = await http.get(url)
                    price = page.headers.get("crawler-price")
                    known = {"url": url, "price": price} if price else {}
                    told = {"permit": slot["permit"], "status": page.status_code, "seconds": 0.1, **known}
                    assert not (await agent.call_tool("report", told)).is_error
                    break
    return Came(failed)


@CRAWLS
async def test_every_crawl_holds_for_an_agent(name: str, tmp_path: Path) -> None:
    naming = Naming("ROBOTS_API_KEY", "--server")
    assert await differences(name, by_agent, tmp_path, naming, has_queue=False) == []


@CRAWLS
@pytest.mark.parametrize("integration", WITHOUT_QUEUE)
async def test_every_crawl_holds_without_a_queue(integration: str, name: str, tmp_path: Path) -> None:
    crawler = partial(by_integration, integration)
    assert await differences(name, crawler, tmp_path, Naming(), has_queue=False) == []


SETTINGS = Naming("ROBOTS_DECISIONS_KEY", "ROBOTS_DECISIONS_URL")
WITH_QUEUE: dict[str, tuple[Crawler, Naming]] = {
    "crawlee": (by_crawlee, Naming()),
    "scrapy": (partial(by_scrapy, scheduler="scrapy.core.scheduler.Scheduler"), SETTINGS),
    "scrapy-permits": (partial(by_scrapy, scheduler="robots_decisions.scrapy_scheduler.PermitScheduler"), SETTINGS),
}


@CRAWLS
@pytest.mark.parametrize("crawler", WITH_QUEUE)
async def test_every_crawl_holds_with_a_queue(crawler: str, name: str, tmp_path: Path) -> None:
    crawls, naming = WITH_QUEUE[crawler]
    assert await differences(name, crawls, tmp_path, naming, has_queue=True) == []
