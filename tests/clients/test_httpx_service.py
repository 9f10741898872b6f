"""The httpx transports with a real service and a real origin, judged by the origin's log."""

import asyncio

import httpx
import pytest
from robots_decisions.httpx import AsyncPermittedTransport, Deferred, Disallowed, PermittedTransport

from tests.clients.permitting import Relay
from tests.clients.site import HTML, TICK, Site, new_address
from tests.origins import serve, text

AGENT = {"User-Agent": "ExampleBot/1.0"}


async def test_clients_of_one_agent_share_its_pace_and_its_backoff(service_url: str) -> None:
    interval = 0.15
    site = Site(
        f"User-agent: *\nDisallow: /private/\nCrawl-delay: {interval}\n",
        {"/busy": [text(503, "busy", {**HTML, "Retry-After": "30"})]},
    )
    relay = Relay(service_url)
    async with (
        serve(site, host=new_address()) as origin,
        serve(relay) as between,
        httpx.AsyncClient(transport=AsyncPermittedTransport(between.url), headers=AGENT) as one,
        httpx.AsyncClient(transport=AsyncPermittedTransport(between.url, max_wait=1), headers=AGENT) as other,
    ):
        with httpx.Client(transport=PermittedTransport(between.url), headers=AGENT) as third:
            pages = [one.get(f"{origin.url}/one/{number}") for number in range(6)]
            pages += [asyncio.to_thread(third.get, f"{origin.url}/third/{number}") for number in range(6)]
            assert {page.status_code for page in await asyncio.gather(*pages)} == {200}
        assert len(site.log) == 13
        # A busy machine may delay requests, but none may come before its slot.
        assert site.ahead_of_turns(origin.url, relay.turns) == []
        assert relay.shortest >= interval - TICK
        with pytest.raises(Disallowed) as disallowed:
            await other.get(f"{origin.url}/private/page")
        assert (disallowed.value.rule, disallowed.value.line) == ("disallow: /private/", 2)
        assert (await one.get(f"{origin.url}/busy")).status_code == 503
        with pytest.raises(Deferred) as deferred:
            await other.get(f"{origin.url}/page")
        assert deferred.value.reason == "pace"
        assert 20 < deferred.value.seconds < 31
    assert "/private/page" not in site.paths
    assert "/page" not in site.paths


async def test_unused_slot_is_free_for_the_next(service_url: str) -> None:
    site = Site("User-agent: *\nCrawl-delay: 600\n")
    waits: asyncio.Queue[float] = asyncio.Queue()

    async def never(seconds: float) -> None:
        waits.put_nowait(seconds)
        await asyncio.Event().wait()

    async def wait_and_leave() -> float:
        transport = AsyncPermittedTransport(service_url, max_wait=3600, sleep=never)
        async with httpx.AsyncClient(transport=transport, headers=AGENT) as client:
            waiting = asyncio.create_task(client.get(f"{origin.url}/page"))
            wait = await waits.get()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        return wait

    async with serve(site, host=new_address()) as origin:
        first, second = await wait_and_leave(), await wait_and_leave()
    # The fetch of robots.txt counts as a document, so a slot is ten minutes away; if one were not released, twenty.
    assert second <= first <= 600
    assert site.paths == ["/robots.txt"]
