"""`unreachable="allow"` in every integration: it opens for a silent service only, and keeps a second for a host.

The answers are those of clients/conformance.json.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.clients.conformance import Conformance, conformance
from tests.clients.crawling import crawl
from tests.clients.site import Site, new_address
from tests.origins import serve

EACH = ["httpx", "httpx-threads", "httpx2", "aiohttp", "requests", "crawlee", "client", "client-threads"]

OUTCOMES = {"misconfigured": "Misconfigured", "not_understood": "NotUnderstood", "deferred": "Deferred"}


@asynccontextmanager
async def served(site: Site) -> AsyncIterator[tuple[Conformance, str]]:
    """The cases, and the URL of the site."""
    async with conformance() as (_, cases), serve(site, host=new_address()) as origin:
        yield cases, origin.url


@pytest.mark.parametrize("integration", EACH)
async def test_nothing_but_silence_opens(integration: str) -> None:
    site = Site("")
    # Crawlee waits for a service that is busy, for ten minutes here.
    failures = ("never-opens-",) if integration == "crawlee" else ("never-opens-", "later-")
    async with served(site) as (cases, origin):
        closed = {
            name: OUTCOMES[case.expected["error"]]
            for name, case in cases.cases.items()
            if name.endswith("-allow-permit") and name.startswith(failures)
        }
        plan = {
            "integration": integration,
            "service": [cases.cases[name].service for name in closed],
            "urls": [f"{origin}/page"],
            "options": {"unreachable": "allow", "max_wait": 2},
        }
        came = await crawl(plan, "integrations")
    results = {name: next(iter(one.values())) for name, one in zip(closed, came["results"], strict=True)}
    assert len(closed) > 40
    assert results == closed
    assert site.log == []


@pytest.mark.parametrize("integration", EACH)
async def test_silence_opens_at_a_second_for_each_host(integration: str) -> None:
    site = Site("")
    waits = integration == "crawlee"  # whose queue waits
    async with served(site) as (cases, origin):
        silent = [name for name in cases.cases if name.startswith("opens-") and name.endswith("-allow-permit")]
        services = [cases.cases[name].service for name in silent]
        options = {"unreachable": "allow", "max_wait": 4 if waits else 0}
        urls = [f"{origin}/1?", f"{origin}/2?"]
        plan = {"integration": integration, "service": services, "urls": urls, "options": options}
        came = await crawl(plan, "integrations")
    assert len(silent) > 6
    each = [sorted(map(str, one.values())) for one in came["results"]]
    assert each == [["200", "200" if waits else "Deferred"]] * len(silent)
    assert len(site.log) == len(silent) * (2 if waits else 1)
