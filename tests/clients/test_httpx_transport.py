"""The transports for httpx and httpx2: which requests are sent, when, and what is reported to the service."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import httpx
import httpx2
import pytest
from robots_decisions import Deferred, Disallowed, NotUnderstood, PermitError, ServiceUnavailable
from robots_decisions import httpx as for_httpx
from robots_decisions import httpx2 as for_httpx2
from robots_decisions.httpx import UNASKED, VERSION, AsyncPermittedTransport, PermittedTransport
from robots_decisions.permits import ANSWER_LIMIT

from tests.clients.permitting import Permitting, allow, defer, disallow, mock, wait_too_long
from tests.doubles import SleepingClock
from tests.origins import Exchange, head, serve, text

PAGE = "http://www.example.com/page"
AGENT = {"User-Agent": "ExampleBot/1.0"}


class Pages:
    """A fake web: its answers, and its requests with their times."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self._answers = answers or (httpx.Response(200, text="a page"),)
        self.clock = SleepingClock()
        self.log: list[tuple[float, str]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        answer = self._answers[min(len(self.log), len(self._answers) - 1)]
        self.log.append((self.clock.now - 1000.0, str(request.url)))
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def urls(self) -> list[str]:
        return [url for _, url in self.log]


class Get(NamedTuple):
    """Requests by the client of a library, asynchronous or not, with the transport for it."""

    library: Any
    transports: Any
    waits: bool

    async def __call__(self, permitting: Permitting, pages: Pages, *urls: str, **settings: Any) -> Any:
        transport = (self.transports.PermittedTransport if self.waits else self.transports.AsyncPermittedTransport)(
            "http://service",
            mock(self.library, pages),
            service_transport=permitting.transport(self.library),
            monotonic=pages.clock,
            sleep=pages.clock.sleep if self.waits else pages.clock.asleep,
            **settings,
        )
        with_agent = {"transport": transport, "headers": AGENT, "follow_redirects": True}
        if self.waits:
            with self.library.Client(**with_agent) as client:
                return [client.get(url) for url in urls or (PAGE,)][-1]
        async with self.library.AsyncClient(**with_agent) as client:
            return [await client.get(url) for url in urls or (PAGE,)][-1]


every = pytest.mark.parametrize(
    "get",
    [
        pytest.param(Get(httpx, for_httpx, False), id="httpx-async"),
        pytest.param(Get(httpx, for_httpx, True), id="httpx-sync"),
        pytest.param(Get(httpx2, for_httpx2, False), id="httpx2-async"),
        pytest.param(Get(httpx2, for_httpx2, True), id="httpx2-sync"),
    ],
)


@every
async def test_permitted_request_is_sent_in_its_slot(get: Get) -> None:
    permitting, pages = Permitting(allow(0), allow(2.5)), Pages()
    assert (await get(permitting, pages, PAGE, PAGE)).text == "a page"
    assert pages.log == [(0.0, PAGE), (2.5, PAGE)]
    assert permitting.reports == []
    assert [(item["permit"], item["status"]) for item in permitting.collected] == [("cGVybWl0", 200)] * 2


@every
async def test_agent_is_the_user_agent_or_the_configured_one(get: Get) -> None:
    permitting = Permitting(allow())
    await get(permitting, Pages(), "http://me:secret@h/a?b#c", key="k3y", caller="pod-1", max_wait=7)
    assert permitting.asked == [
        {"url": "http://h/a?b", "agent": "ExampleBot/1.0", "max_wait": 7.0, "wait": 4.667, "caller": "pod-1"}
    ]
    assert permitting.keys == ["Bearer k3y"]
    await get(permitting, Pages(), agent="OtherBot")
    assert permitting.asked[1]["agent"] == "OtherBot"


@every
async def test_a_disallowed_page_is_never_fetched(get: Get) -> None:
    pages = Pages()
    with pytest.raises(Disallowed) as refused:
        await get(Permitting(disallow("/page", 7)), pages)
    error = refused.value
    assert (error.reason, error.rule, error.line) == ("rule", "disallow: /page", 7)
    why = "line 7 of robots.txt: disallow: /page."
    assert str(error) == f"{PAGE} may not be fetched, says http://service: {why}"
    assert isinstance(error, get.library.RequestError)
    assert not isinstance(error, get.library.TransportError)
    assert isinstance(error, get.transports.Disallowed)
    assert str(error.request.url) == PAGE
    assert pages.log == []


@every
async def test_every_hop_of_a_redirect_needs_a_permit(get: Get) -> None:
    elsewhere = "http://other.example/private/"
    permitting = Permitting(allow(), disallow())
    pages = Pages(httpx.Response(302, headers={"Location": elsewhere}))
    with pytest.raises(Disallowed):
        await get(permitting, pages)
    assert [asked["url"] for asked in permitting.asked] == [PAGE, elsewhere]
    assert pages.urls == [PAGE]


@every
async def test_request_waits_for_its_slot_and_a_deferred_verdict(get: Get) -> None:
    permitting = Permitting(wait_too_long(20), defer("2026-11-21T18:30:15Z"), allow(5))
    pages = Pages()
    await get(permitting, pages, max_wait=60)
    assert pages.log == [(40.0, PAGE)]
    assert [asked["max_wait"] for asked in permitting.asked] == [60, 40, 25]


@every
async def test_wait_beyond_max_wait_raises_with_retry_at(get: Get) -> None:
    pages = Pages()
    begun = datetime.now(UTC)
    with pytest.raises(Deferred) as deferred:
        await get(Permitting(defer("2026-11-21T18:31:01Z")), pages, max_wait=60)
    assert (deferred.value.reason, deferred.value.seconds) == ("unreachable", 61.0)
    assert (deferred.value.retry_at - begun).total_seconds() >= 61
    with pytest.raises(Deferred, match="the slots of the site are taken") as paced:
        await get(Permitting(wait_too_long(0.5)), pages, max_wait=0)
    assert paced.value.reason == "pace"
    assert pages.log == []


@every
@pytest.mark.parametrize("status", [429, 503])
async def test_overloaded_page_is_reported(get: Get, status: int) -> None:
    permitting = Permitting(allow(permit="first"))
    response = await get(permitting, Pages(httpx.Response(status, headers={"Retry-After": "120"}, text="busy")))
    assert (response.status_code, response.text) == (status, "busy")
    assert permitting.reports == [("first", {"status": status, "elapsed": 0.0, "retry_after": "120"})]


@every
@pytest.mark.parametrize("status", [401, 402, 403, 451])
async def test_refused_page_is_reported(get: Get, status: int) -> None:
    permitting = Permitting(allow(permit="first"))
    assert (await get(permitting, Pages(httpx.Response(status)))).status_code == status
    assert permitting.reports == [("first", {"status": status, "elapsed": 0.0})]


@every
async def test_success_is_reported_where_the_service_knows_of_refusals(get: Get) -> None:
    permitting = Permitting(allow(permit="first") | {"edge": {"state": "refused", "count": 2}})
    assert (await get(permitting, Pages(httpx.Response(204)))).status_code == 204
    assert permitting.reports == [("first", {"status": 204, "elapsed": 0.0})]
    permitting = Permitting(allow(permit="second"))
    assert (await get(permitting, Pages(httpx.Response(204)))).status_code == 204
    assert permitting.reports == []
    assert permitting.collected == [{"permit": "second", "status": 204, "elapsed": 0.0}]


@every
async def test_other_failures_are_not_urgent(get: Get) -> None:
    permitting = Permitting(allow())
    assert (await get(permitting, Pages(httpx.Response(500)))).status_code == 500
    assert permitting.reports == []
    assert permitting.collected == [{"permit": "cGVybWl0", "status": 500, "elapsed": 0.0}]


@every
async def test_slot_without_a_request_is_released(get: Get) -> None:
    permitting = Permitting(allow(permit="unused"))
    with pytest.raises(get.library.PoolTimeout):
        await get(permitting, Pages(httpx.PoolTimeout("no connection is free")))
    assert permitting.reports == [("unused", {"released": True})]


@every
async def test_refused_connection_has_used_its_slot(get: Get) -> None:
    permitting = Permitting(allow())
    with pytest.raises(get.library.ConnectError):
        await get(permitting, Pages(httpx.ConnectError("refused")))
    assert permitting.reports == []


@every
@pytest.mark.parametrize(
    "says",
    [
        httpx.ConnectError("refused"),
        httpx.ReadTimeout(""),
        httpx.Response(500),
        httpx.Response(401, json={"detail": "This needs an API key."}),
        httpx.Response(200, text="<html>"),
        httpx.Response(302, headers={"Location": "http://service/v1/other"}),
        httpx.Response(200, content=b"x" * (ANSWER_LIMIT + 1)),
        httpx.Response(200, json={**allow(), "allowed": False}),
    ],
)
async def test_nothing_is_sent_without_a_verdict(get: Get, says: httpx.Response | Exception) -> None:
    pages = Pages()
    with pytest.raises(ServiceUnavailable, match="no verdict"):
        await get(Permitting(says), pages)
    assert pages.log == []


@every
async def test_unreachable_wait_retries_a_silent_service(get: Get) -> None:
    pages = Pages()
    await get(Permitting(httpx.ConnectError("refused"), httpx.Response(502), allow(1)), pages, unreachable="wait")
    assert pages.log == [(2.5, PAGE)]
    with pytest.raises(ServiceUnavailable):
        await get(Permitting(httpx.ConnectError("refused")), pages, unreachable="wait", max_wait=5)


@every
@pytest.mark.parametrize(
    ("version", "kept"), [("6d0ce32d0ecd166d", "6d0ce32d0ecd166d"), (None, None), (7, None), ("6d0ce32d\n", None)]
)
async def test_a_page_has_the_version_that_decided(get: Get, version: object, kept: str | None) -> None:
    response = await get(Permitting({**allow(), "version": version}), Pages())
    assert response.extensions.get(VERSION) == kept


@every
async def test_unreachable_allow_sends_without_a_permit(get: Get) -> None:
    down, pages = httpx.ConnectError("refused"), Pages()
    response = await get(Permitting(down), pages, unreachable="allow")
    assert response.extensions[UNASKED] is True
    assert pages.urls == [PAGE]
    assert UNASKED not in (await get(Permitting(allow()), Pages(), unreachable="allow")).extensions
    with pytest.raises(Disallowed):
        await get(Permitting(disallow()), pages, unreachable="allow")


@every
async def test_page_that_the_service_rejects_is_not_fetched(get: Get) -> None:
    pages = Pages()
    with pytest.raises(NotUnderstood, match="not an agent"):
        await get(Permitting(httpx.Response(422, json={"detail": "'?' is not an agent"})), pages, unreachable="allow")
    assert pages.log == []


async def test_request_without_an_agent_is_rejected() -> None:
    transport = AsyncPermittedTransport("http://service", service_transport=Permitting(allow()).transport())
    async with httpx.AsyncClient(transport=transport, headers={"User-Agent": ""}) as client:
        with pytest.raises(NotUnderstood, match="has no agent"):
            await client.get(PAGE)


@pytest.mark.parametrize(
    "wrong",
    [
        {"service": "service:8080"},
        {"service": "http://"},
        {"key": "two words"},
        {"agent": " "},
        {"caller": "a/b"},
        {"max_wait": -1},
        {"max_wait": float("nan")},
        {"unreachable": "open"},
    ],
)
@pytest.mark.parametrize("kind", [AsyncPermittedTransport, PermittedTransport])
def test_invalid_argument_is_named(kind: Callable[..., object], wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        kind(**{"service": "http://service", **wrong})


async def test_cancelled_request_releases_its_slot() -> None:
    asleep = asyncio.Event()

    async def sleep(seconds: float) -> None:
        asleep.set()
        await asyncio.Event().wait()

    permitting, pages = Permitting(allow(30, permit="held")), Pages()
    transport = AsyncPermittedTransport(
        "http://service", httpx.MockTransport(pages), service_transport=permitting.transport(), sleep=sleep
    )
    async with httpx.AsyncClient(transport=transport, headers=AGENT) as client:
        task = asyncio.create_task(client.get(PAGE))
        await asleep.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert permitting.reports == [("held", {"released": True})]
    assert pages.log == []


def test_interrupted_request_releases_its_slot() -> None:
    def sleep(seconds: float) -> None:
        raise KeyboardInterrupt

    permitting, pages = Permitting(allow(30, permit="held")), Pages()
    transport = PermittedTransport(
        "http://service", httpx.MockTransport(pages), service_transport=permitting.transport(), sleep=sleep
    )
    with httpx.Client(transport=transport, headers=AGENT) as client, pytest.raises(KeyboardInterrupt):
        client.get(PAGE)
    assert permitting.reports == [("held", {"released": True})]
    assert pages.log == []


async def test_transport_works_with_a_service_on_a_socket() -> None:
    permitting = Permitting(allow(permit="a"), allow(permit="b"))
    async with serve(permitting) as service, serve(text(503, "", {"Retry-After": "3"})) as origin:
        transport = AsyncPermittedTransport(f"{service.url}/", key="k3y")
        async with httpx.AsyncClient(transport=transport, headers=AGENT) as client:
            assert (await client.get(f"{origin.url}/page")).status_code == 503
        assert service.requests[0].startswith(b"POST /v1/permits HTTP/1.1\r\n")
        assert b"\r\nAccept-Encoding: identity\r\n" in service.requests[0]
        assert b"\r\nAuthorization: Bearer k3y\r\n" in service.requests[1]
        assert [(permit, said["retry_after"]) for permit, said in permitting.reports] == [("a", "3")]
        await origin.left()


async def _endless(exchange: Exchange) -> None:
    await exchange.send(head(200, {"Content-Type": "application/json"}) + b'{"verdict": "')
    while True:
        await exchange.send(b"a" * 65536)


async def _resets(exchange: Exchange) -> None:
    exchange.reset()


@pytest.mark.parametrize("reply", [_endless, _resets, b"HTTP/1.1 nonsense\r\n\r\n", b""])
async def test_malformed_response_permits_no_request(reply: Any) -> None:
    async with serve(reply) as service, serve(text(200)) as origin:
        async with httpx.AsyncClient(transport=AsyncPermittedTransport(service.url), headers=AGENT) as client:
            with pytest.raises(PermitError):
                await client.get(f"{origin.url}/page")
        assert origin.requests == []
