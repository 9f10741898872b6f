"""The aiohttp middleware with real sockets: which requests are sent, when, and what is reported."""

import asyncio
from typing import Any

import aiohttp
import pytest
from robots_decisions.aiohttp import Deferred, Disallowed, NotUnderstood, PermitError, PermitMiddleware
from robots_decisions.aiohttp import ServiceUnavailable as Unavailable

from tests.clients.permitting import Permitting, Relay, allow, defer, disallow, wait_too_long
from tests.clients.site import HTML, TICK, Site, new_address
from tests.origins import serve, text

AGENT = {"User-Agent": "ExampleBot/1.0"}


async def status_of(service: str, url: str, **settings: Any) -> int:
    async with (
        PermitMiddleware(service, **settings) as permits,
        aiohttp.ClientSession(middlewares=[permits], headers=AGENT) as session,
        session.get(url) as response,
    ):
        return response.status


async def test_sessions_share_the_pace_of_a_real_service(service_url: str) -> None:
    interval = 0.15
    site = Site(
        f"User-agent: *\nDisallow: /private/\nCrawl-delay: {interval}\n",
        {"/busy": [text(503, "busy", {**HTML, "Retry-After": "600"})]},
    )
    relay = Relay(service_url)
    async with (
        serve(site, host=new_address()) as origin,
        serve(relay) as between,
        PermitMiddleware(between.url) as permits,
        aiohttp.ClientSession(middlewares=[permits], headers=AGENT) as session,
    ):
        pages = [session.get(f"{origin.url}/{number}") for number in range(8)]
        assert {page.status for page in await asyncio.gather(*pages)} == {200}
        assert site.ahead_of_turns(origin.url, relay.turns) == []
        assert relay.shortest >= interval - TICK
        with pytest.raises(Disallowed) as disallowed:
            await session.get(f"{origin.url}/private/page")
        assert (disallowed.value.rule, disallowed.value.line) == ("disallow: /private/", 2)
        assert isinstance(disallowed.value, aiohttp.ClientError)
        assert (await session.get(f"{origin.url}/busy")).status == 503
        with pytest.raises(Deferred) as deferred:
            await session.get(f"{origin.url}/page")
        assert deferred.value.seconds > 60
    assert "/private/page" not in site.paths
    assert "/page" not in site.paths


async def test_every_hop_of_a_redirect_needs_a_permit() -> None:
    permitting = Permitting(allow(), disallow())
    site = Site("", {"/": [text(302, "", {**HTML, "Location": "/private/"})]})
    async with serve(permitting) as service, serve(site) as origin:
        with pytest.raises(Disallowed):
            await status_of(service.url, f"{origin.url}/")
    assert [asked["url"] for asked in permitting.asked] == [f"{origin.url}/", f"{origin.url}/private/"]
    assert site.paths == ["/"]


async def test_deferred_page_is_asked_about_again() -> None:
    permitting = Permitting(defer("2026-11-21T18:30:01Z"), wait_too_long(0.1), allow())
    async with serve(permitting) as service, serve(Site("")) as origin:
        assert await status_of(service.url, f"{origin.url}/") == 200
    assert len(permitting.asked) == 3


async def test_settings_reach_the_service_and_a_busy_page_is_reported() -> None:
    permitting = Permitting(allow(permit="a"))
    async with serve(permitting) as service, serve(text(429, "", {"Retry-After": "3"})) as origin:
        settings = {"key": "k3y", "agent": "OtherBot", "caller": "pod-1", "max_wait": 7}
        assert await status_of(service.url, f"{origin.url}/a%2Fb?c=d%26e#f", **settings) == 429
    assert permitting.asked == [
        {"url": f"{origin.url}/a%2Fb?c=d%26e", "agent": "OtherBot", "max_wait": 7.0, "wait": 4.667, "caller": "pod-1"}
    ]
    assert permitting.keys[0] == "Bearer k3y"
    assert [(permit, said["status"], said["retry_after"]) for permit, said in permitting.reports] == [("a", 429, "3")]


async def test_service_that_fails_permits_no_request_unless_configured() -> None:
    site = Site("")
    async with serve(b"") as service, serve(site) as origin:
        with pytest.raises(Unavailable, match="no verdict"):
            await status_of(service.url, f"{origin.url}/1")
        assert await status_of(service.url, f"{origin.url}/2", unreachable="allow") == 200
    assert site.paths == ["/2"]


async def test_cancelled_request_releases_its_slot() -> None:
    asleep = asyncio.Event()

    async def sleep(seconds: float) -> None:
        asleep.set()
        await asyncio.Event().wait()

    permitting, site = Permitting(allow(30, permit="held")), Site("")
    async with serve(permitting) as service, serve(site) as origin:
        waiting = asyncio.create_task(status_of(service.url, f"{origin.url}/", sleep=sleep))
        await asleep.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert permitting.reports == [("held", {"released": True})]
    assert site.paths == []


async def test_rejected_question_is_not_understood() -> None:
    async with serve(text(422, '{"detail": "bad"}')) as service:
        with pytest.raises(NotUnderstood, match="bad") as raised:
            await status_of(service.url, "http://127.0.0.1:9/")
    assert isinstance(raised.value, PermitError)
