"""The transports of httpx: what goes out, when, and what is told to the service. Each rule holds for both of them."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, TypeAlias

import httpx
import pytest

from app.clients.httpx_transport import (
    UNASKED,
    Deferred,
    Disallowed,
    NotUnderstood,
    PermitError,
    PermittedTransport,
    ServiceUnavailable,
    SyncPermittedTransport,
)
from app.clients.permits import ANSWER_LIMIT
from tests.clients.permitting import Permitting, allow, defer, disallow, wait_too_long
from tests.doubles import SleepingClock
from tests.origins import Exchange, head, serve, text

PAGE = "http://www.example.com/page"
AGENT = {"User-Agent": "ExampleBot/1.0"}


class Pages:
    """What the web answers, and what it was asked, when."""

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


Get: TypeAlias = Callable[..., Awaitable[httpx.Response]]


async def by_async(permitting: Permitting, pages: Pages, *urls: str, **settings: Any) -> httpx.Response:
    transport = PermittedTransport(
        "http://service",
        httpx.MockTransport(pages),
        service_transport=permitting.transport,
        monotonic=pages.clock,
        sleep=pages.clock.asleep,
        **settings,
    )
    async with httpx.AsyncClient(transport=transport, headers=AGENT, follow_redirects=True) as client:
        return [await client.get(url) for url in urls or (PAGE,)][-1]


async def by_thread(permitting: Permitting, pages: Pages, *urls: str, **settings: Any) -> httpx.Response:
    transport = SyncPermittedTransport(
        "http://service",
        httpx.MockTransport(pages),
        service_transport=permitting.transport,
        monotonic=pages.clock,
        sleep=pages.clock.sleep,
        **settings,
    )
    with httpx.Client(transport=transport, headers=AGENT, follow_redirects=True) as client:
        return [client.get(url) for url in urls or (PAGE,)][-1]  # noqa: ASYNC212 - nothing of it blocks


both = pytest.mark.parametrize("get", [by_async, by_thread])


@both
async def test_a_permitted_request_goes_when_its_turn_comes(get: Get) -> None:
    permitting, pages = Permitting(allow(0), allow(2.5)), Pages()
    assert (await get(permitting, pages, PAGE, PAGE)).text == "a page"
    assert pages.log == [(0.0, PAGE), (2.5, PAGE)]
    assert permitting.told == []


@both
async def test_it_is_asked_for_by_its_user_agent_or_the_configured_one(get: Get) -> None:
    permitting = Permitting(allow())
    await get(permitting, Pages(), "http://me:secret@h/a?b#c", key="k3y", caller="pod-1", max_wait=7)
    assert permitting.asked == [
        {"url": "http://h/a?b", "agent": "ExampleBot/1.0", "max_wait": 7.0, "wait": 10.0, "caller": "pod-1"}
    ]
    assert permitting.keys == ["Bearer k3y"]
    await get(permitting, Pages(), agent="OtherBot")
    assert permitting.asked[1]["agent"] == "OtherBot"


@both
async def test_a_disallowed_page_is_never_fetched(get: Get) -> None:
    pages = Pages()
    with pytest.raises(Disallowed) as refused:
        await get(Permitting(disallow("/page", 7)), pages)
    error = refused.value
    assert (error.reason, error.rule, error.line) == ("rule", "disallow: /page", 7)
    assert str(error) == f"{PAGE} may not be fetched: line 7 of robots.txt: disallow: /page."
    assert isinstance(error, httpx.RequestError)
    assert not isinstance(error, httpx.TransportError)
    assert str(error.request.url) == PAGE
    assert pages.log == []


@both
async def test_every_hop_of_a_redirect_is_asked_about(get: Get) -> None:
    elsewhere = "http://other.example/private/"
    permitting = Permitting(allow(), disallow())
    pages = Pages(httpx.Response(302, headers={"Location": elsewhere}))
    with pytest.raises(Disallowed):
        await get(permitting, pages)
    assert [asked["url"] for asked in permitting.asked] == [PAGE, elsewhere]
    assert pages.urls == [PAGE]


@both
async def test_a_turn_of_others_and_a_verdict_that_is_put_off_are_waited_for(get: Get) -> None:
    permitting = Permitting(wait_too_long(20), defer("2026-11-21T18:30:15Z"), allow(5))
    pages = Pages()
    await get(permitting, pages, max_wait=60)
    assert pages.log == [(40.0, PAGE)]
    assert [asked["max_wait"] for asked in permitting.asked] == [60, 40, 25]


@both
async def test_who_cannot_wait_so_long_is_told_when_to_come_again(get: Get) -> None:
    pages = Pages()
    begun = datetime.now(UTC)
    with pytest.raises(Deferred) as deferred:
        await get(Permitting(defer("2026-11-21T18:31:01Z")), pages, max_wait=60)
    assert (deferred.value.reason, deferred.value.seconds) == ("unreachable", 61.0)
    assert (deferred.value.retry_at - begun).total_seconds() >= 61
    with pytest.raises(Deferred, match="pace"):
        await get(Permitting(wait_too_long(0.5)), pages, max_wait=0)
    assert pages.log == []


@both
@pytest.mark.parametrize("status", [429, 503])
async def test_a_page_that_has_too_much_to_do_is_reported(get: Get, status: int) -> None:
    permitting = Permitting(allow(permit="first"))
    response = await get(permitting, Pages(httpx.Response(status, headers={"Retry-After": "120"}, text="busy")))
    assert (response.status_code, response.text) == (status, "busy")
    assert permitting.told == [("first", {"status": status, "elapsed": 0.0, "retry_after": "120"})]


@both
async def test_a_page_that_fails_otherwise_is_not_reported(get: Get) -> None:
    permitting = Permitting(allow())
    assert (await get(permitting, Pages(httpx.Response(500)))).status_code == 500
    assert permitting.told == []


@both
async def test_a_turn_without_a_request_is_given_back(get: Get) -> None:
    permitting = Permitting(allow(permit="unused"))
    with pytest.raises(httpx.PoolTimeout):
        await get(permitting, Pages(httpx.PoolTimeout("no connection is free")))
    assert permitting.told == [("unused", {"released": True})]


@both
async def test_a_refused_connection_has_used_its_turn(get: Get) -> None:
    permitting = Permitting(allow())
    with pytest.raises(httpx.ConnectError):
        await get(permitting, Pages(httpx.ConnectError("refused")))
    assert permitting.told == []


@both
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
async def test_nothing_goes_out_while_nothing_is_known(get: Get, says: httpx.Response | Exception) -> None:
    pages = Pages()
    with pytest.raises(ServiceUnavailable, match="not known"):
        await get(Permitting(says), pages)
    assert pages.log == []


@both
async def test_a_silent_service_is_waited_for_on_request(get: Get) -> None:
    pages = Pages()
    await get(Permitting(httpx.ConnectError("refused"), httpx.Response(502), allow(1)), pages, unreachable="wait")
    assert pages.log == [(2.5, PAGE)]
    with pytest.raises(ServiceUnavailable):
        await get(Permitting(httpx.ConnectError("refused")), pages, unreachable="wait", max_wait=5)


@both
async def test_only_who_asks_for_it_goes_unasked_and_is_told_so(get: Get) -> None:
    down, pages = httpx.ConnectError("refused"), Pages()
    response = await get(Permitting(down), pages, unreachable="allow")
    assert response.extensions[UNASKED] is True
    assert pages.urls == [PAGE]
    assert UNASKED not in (await get(Permitting(allow()), Pages(), unreachable="allow")).extensions
    with pytest.raises(Disallowed):
        await get(Permitting(disallow()), pages, unreachable="allow")


@both
async def test_what_the_service_cannot_read_is_not_fetched(get: Get) -> None:
    pages = Pages()
    with pytest.raises(NotUnderstood, match="no agent"):
        await get(Permitting(httpx.Response(422, json={"detail": "'?' is no agent"})), pages, unreachable="allow")
    assert pages.log == []


async def test_request_without_an_agent_is_rejected() -> None:
    transport = PermittedTransport("http://service", service_transport=Permitting(allow()).transport)
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
@pytest.mark.parametrize("kind", [PermittedTransport, SyncPermittedTransport])
def test_an_argument_that_cannot_be_used_is_named(kind: Callable[..., object], wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        kind(**{"service": "http://service", **wrong})


async def test_who_is_cancelled_while_he_waits_gives_his_turn_back() -> None:
    asleep = asyncio.Event()

    async def sleep(seconds: float) -> None:
        asleep.set()
        await asyncio.Event().wait()

    permitting, pages = Permitting(allow(30, permit="held")), Pages()
    transport = PermittedTransport(
        "http://service", httpx.MockTransport(pages), service_transport=permitting.transport, sleep=sleep
    )
    async with httpx.AsyncClient(transport=transport, headers=AGENT) as client:
        task = asyncio.create_task(client.get(PAGE))
        await asleep.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert permitting.told == [("held", {"released": True})]
    assert pages.log == []


def test_who_is_interrupted_while_he_waits_gives_his_turn_back() -> None:
    def sleep(seconds: float) -> None:
        raise KeyboardInterrupt

    permitting, pages = Permitting(allow(30, permit="held")), Pages()
    transport = SyncPermittedTransport(
        "http://service", httpx.MockTransport(pages), service_transport=permitting.transport, sleep=sleep
    )
    with httpx.Client(transport=transport, headers=AGENT) as client, pytest.raises(KeyboardInterrupt):
        client.get(PAGE)
    assert permitting.told == [("held", {"released": True})]
    assert pages.log == []


async def test_a_service_on_a_socket_is_asked_as_over_the_wire() -> None:
    permitting = Permitting(allow(permit="a"), allow(permit="b"))
    async with serve(permitting) as service, serve(text(503, "", {"Retry-After": "3"})) as origin:
        transport = PermittedTransport(f"{service.url}/", key="k3y")
        async with httpx.AsyncClient(transport=transport, headers=AGENT) as client:
            assert (await client.get(f"{origin.url}/page")).status_code == 503
        assert service.requests[0].startswith(b"POST /v1/permits HTTP/1.1\r\n")
        assert b"\r\nAccept-Encoding: identity\r\n" in service.requests[0]
        assert b"\r\nAuthorization: Bearer k3y\r\n" in service.requests[1]
        assert [(permit, said["retry_after"]) for permit, said in permitting.told] == [("a", "3")]
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
        async with httpx.AsyncClient(transport=PermittedTransport(service.url), headers=AGENT) as client:
            with pytest.raises(PermitError):
                await client.get(f"{origin.url}/page")
        assert origin.requests == []
