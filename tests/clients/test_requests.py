"""The adapter of requests with real sockets: which requests are sent, when, and what is reported."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import requests
from robots_decisions.requests import UNASKED, VERSION, Deferred, Disallowed, PermitAdapter

from tests.clients.permitting import Permitting, Relay, allow, defer, disallow
from tests.clients.site import HTML, TICK, Site, new_address
from tests.origins import serve, text


async def fetched(service: str, *urls: str, **options: Any) -> list[requests.Response]:
    """The responses of a session, which is closed."""

    def run() -> list[requests.Response]:
        with requests.Session() as session:
            session.headers["User-Agent"] = "ExampleBot/1.0"
            PermitAdapter(service, **options).mount(session)
            return [session.get(url, timeout=30) for url in urls]

    return await asyncio.to_thread(run)


async def test_session_keeps_the_pace_of_a_real_service(service_url: str) -> None:
    interval = 0.2
    site = Site(
        f"User-agent: *\nDisallow: /private/\nCrawl-delay: {interval}\n",
        {"/busy": [text(503, "busy", {**HTML, "Retry-After": "600"})]},
    )
    relay = Relay(service_url)
    async with serve(site, host=new_address()) as origin, serve(relay) as between:
        pages = [f"{origin.url}/{number}" for number in range(4)]
        came = await fetched(between.url, *pages)
        assert [page.status_code for page in came] == [200] * 4
        assert all(len(getattr(page, VERSION)) > 8 for page in came)
        assert site.ahead_of_turns(origin.url, relay.turns) == []
        assert relay.shortest >= interval - TICK
        with pytest.raises(Disallowed) as disallowed:
            await fetched(between.url, f"{origin.url}/private/page")
        assert (disallowed.value.rule, disallowed.value.line) == ("disallow: /private/", 2)
        with pytest.raises(Deferred) as deferred:
            await fetched(between.url, f"{origin.url}/busy", f"{origin.url}/page", max_wait=2)
        assert deferred.value.seconds > 60
    assert not {"/private/page", "/page"} & set(site.paths)


async def test_redirect_to_a_disallowed_page_is_not_followed() -> None:
    permitting = Permitting(allow(permit="first"), disallow())
    moved = text(302, "", {"Location": "/private/page", "Connection": "close"})
    site = Site("", {"/moved": [moved]})
    async with serve(permitting) as service, serve(site) as origin:
        with pytest.raises(Disallowed):
            await fetched(service.url, f"{origin.url}/moved")
        assert [asked["url"] for asked in permitting.asked] == [f"{origin.url}/moved", f"{origin.url}/private/page"]
    assert site.paths == ["/moved"]
    assert [(item["permit"], item["status"]) for item in permitting.collected] == [("first", 302)]


async def test_question_has_what_is_set_and_the_page_is_reported() -> None:
    permitting = Permitting(allow(permit="a"))
    options: dict[str, Any] = {
        "key": "k3y",
        "caller": "pod-1",
        "max_wait": 7,
        "purpose": ["search"],
        "dialect": "google",
    }
    async with serve(permitting) as service, serve(text(429, "", {"Retry-After": "3"})) as origin:
        (page,) = await fetched(service.url, f"{origin.url}/a%2Fb?c=d%26e#f", agent=["A", "B"], max_age=60, **options)
        assert page.status_code == 429
        assert permitting.asked == [
            {
                "url": f"{origin.url}/a%2Fb?c=d%26e",
                "agent": ["A", "B"],
                "purpose": ["search"],
                "dialect": "google",
                "max_age": 60,
                "wait": 4.667,
                "max_wait": 7.0,
                "caller": "pod-1",
            }
        ]
    assert permitting.keys[0] == "Bearer k3y"
    assert [(permit, said["status"], said["retry_after"]) for permit, said in permitting.reports] == [("a", 429, "3")]


async def test_silent_service_marks_the_response() -> None:
    async with serve(text(500)) as service, serve(text(200)) as origin:
        (page,) = await fetched(service.url, f"{origin.url}/page", unreachable="allow")
        assert getattr(page, UNASKED) is True


async def test_interrupted_request_releases_its_slot() -> None:
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    permitting = Permitting(allow(30, permit="held"))

    def run(url: str, sleep: Callable[[float], None]) -> None:
        with requests.Session() as session:
            PermitAdapter(url, sleep=sleep).mount(session)
            with pytest.raises(KeyboardInterrupt):
                session.get("http://h/", headers={"User-Agent": "A"})

    async with serve(permitting) as service:
        await asyncio.to_thread(run, service.url, interrupted)
    assert permitting.reports == [("held", {"released": True})]


@pytest.mark.parametrize("says", [disallow(), defer("2026-11-21T19:30:00Z")])
async def test_errors_are_of_requests_and_not_retried(says: Any) -> None:
    async with serve(Permitting(says)) as service:
        with pytest.raises(requests.RequestException) as raised:
            await fetched(service.url, "http://127.0.0.1:9/")
        assert not isinstance(raised.value, requests.ConnectionError)
