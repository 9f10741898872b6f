"""`sign=True` in the Python clients, over real sockets: each hop has its own signature, or none."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import aiohttp
import httpx
import httpx2
import pytest
import requests
from crawlee import Request
from crawlee.crawlers import HttpCrawler, HttpCrawlingContext
from crawlee.storage_clients import MemoryStorageClient
from robots_decisions.aiohttp import PermitMiddleware
from robots_decisions.crawlee import PermitHooks
from robots_decisions.httpx import AsyncPermittedTransport, PermittedTransport
from robots_decisions.httpx2 import AsyncPermittedTransport as AsyncPermittedTransport2
from robots_decisions.requests import PermitAdapter

from tests.clients.permitting import Permitting, allow, wait_too_long
from tests.origins import LoopbackOrigin, redirect, serve, text

NAMES = ("signature-agent", "signature-input", "signature")
PROFILE = {"User-Agent": "AcmeBot/2.0 (+https://bot.example.com/)", "From": "bot@example.com"}


def signed(number: int, **members: Any) -> dict[str, object]:
    headers = {"Signature-Agent": 'sig1="https://bot.example.com"', "Signature-Input": f"sig1=();n={number}"}
    return {
        **allow(permit=f"p{number}"),
        "signed": {"headers": {**headers, "Signature": "sig1=:AA==:", **PROFILE}, "method": "GET", **members},
        "unsigned": None,
    }


async def by_httpx(service: str, method: str, url: str, **options: Any) -> None:
    transport = AsyncPermittedTransport(service, **options)
    async with httpx.AsyncClient(transport=transport, follow_redirects=True, headers={"User-Agent": "A/1"}) as client:
        await client.request(method, url)


async def by_httpx2(service: str, method: str, url: str, **options: Any) -> None:
    transport = AsyncPermittedTransport2(service, **options)
    async with httpx2.AsyncClient(transport=transport, follow_redirects=True, headers={"User-Agent": "A/1"}) as client:
        await client.request(method, url)


async def by_sync_httpx(service: str, method: str, url: str, **options: Any) -> None:
    def run() -> None:
        transport = PermittedTransport(service, **options)
        with httpx.Client(transport=transport, follow_redirects=True, headers={"User-Agent": "A/1"}) as client:
            client.request(method, url)

    await asyncio.to_thread(run)


async def by_requests(service: str, method: str, url: str, **options: Any) -> None:
    def run() -> None:
        with requests.Session() as session:
            session.headers["User-Agent"] = "A/1"
            PermitAdapter(service, **options).mount(session)
            session.request(method, url, timeout=30)

    await asyncio.to_thread(run)


async def by_aiohttp(service: str, method: str, url: str, **options: Any) -> None:
    async with (
        PermitMiddleware(service, **options) as permits,
        aiohttp.ClientSession(middlewares=[permits], headers={"User-Agent": "A/1"}) as session,
        session.request(method, url) as response,
    ):
        await response.read()


async def by_crawlee(service: str, method: str, url: str, **options: Any) -> None:
    async with PermitHooks(service, agent="A", **options) as hooks:
        crawler = HttpCrawler(
            http_client=hooks.http_client(), storage_client=MemoryStorageClient(), configure_logging=False
        )
        hooks.install(crawler)

        @crawler.router.default_handler
        async def handle(_context: HttpCrawlingContext) -> None:
            pass

        await crawler.run([Request.from_url(url, method=cast("Any", method), headers={"User-Agent": "A/1"})])


Fetch = Callable[..., Awaitable[None]]
CLIENTS: Mapping[str, Fetch] = {
    "httpx": by_httpx,
    "httpx2": by_httpx2,
    "httpx, sync": by_sync_httpx,
    "requests": by_requests,
    "aiohttp": by_aiohttp,
    "crawlee": by_crawlee,
}

each_client = pytest.mark.parametrize("fetch", CLIENTS.values(), ids=CLIENTS)


def fields(origin: LoopbackOrigin) -> list[dict[str, str]]:
    """The header fields of each request, by lower-case name; a field that came twice has both values."""
    found: list[dict[str, str]] = []
    for request in origin.requests:
        of_one: dict[str, str] = {}
        for line in request.decode("latin-1").split("\r\n\r\n")[0].split("\r\n")[1:]:
            name, _, value = line.partition(": ")
            of_one[name.lower()] = f"{of_one[name.lower()]}, {value}" if name.lower() in of_one else value
        found.append(of_one)
    return found


@each_client
async def test_each_hop_has_a_signature_of_its_own(fetch: Fetch) -> None:
    permitting = Permitting(signed(1), signed(2))
    async with serve(permitting) as service, serve(text(200, "")) as last, serve(redirect(f"{last.url}/b")) as first:
        await fetch(service.url, "GET", f"{first.url}/a", sign=True)
        sent = [*fields(first), *fields(last)]
    assert [asked["sign"] for asked in permitting.asked] == [True, True]
    for number, request in enumerate(sent, 1):
        assert request["signature-input"] == f"sig1=();n={number}"
        assert (request["signature-agent"], request["signature"]) == ('sig1="https://bot.example.com"', "sig1=:AA==:")
        assert (request["user-agent"], request["from"]) == (PROFILE["User-Agent"], PROFILE["From"])


@each_client
async def test_a_signature_is_not_carried_to_the_next_host(fetch: Fetch) -> None:
    permitting = Permitting(signed(1), {**allow(), "signed": None, "unsigned": "not-https"})
    async with serve(permitting) as service, serve(text(200, "")) as last, serve(redirect(f"{last.url}/b")) as first:
        await fetch(service.url, "GET", f"{first.url}/a", sign=True)
        [one], [other] = fields(first), fields(last)
    assert set(NAMES) <= one.keys()
    assert not set(NAMES) & other.keys()


@each_client
async def test_only_a_get_is_signed(fetch: Fetch) -> None:
    permitting = Permitting(signed(1))
    async with serve(permitting) as service, serve(text(200, "")) as origin:
        await fetch(service.url, "POST", f"{origin.url}/a", sign=True)
        [request] = fields(origin)
    assert not set(NAMES) & request.keys()
    assert request["user-agent"] == "A/1"


@each_client
async def test_nothing_is_asked_or_sent_without_sign(fetch: Fetch) -> None:
    permitting = Permitting(signed(1))
    async with serve(permitting) as service, serve(text(200, "")) as origin:
        await fetch(service.url, "GET", f"{origin.url}/a")
        [request] = fields(origin)
    assert "sign" not in permitting.asked[0]
    assert not set(NAMES) & request.keys()


ASKING = {"Accept-Signature": 'sig1=("@authority");nonce="n";tag="web-bot-auth"'}
REPEATING = {name: fetch for name, fetch in CLIENTS.items() if name != "crawlee"}
each_repeating_client = pytest.mark.parametrize("fetch", REPEATING.values(), ids=REPEATING)


@each_repeating_client
@pytest.mark.parametrize("status", [401, 403, 429])
async def test_a_page_that_asks_for_a_signature_is_sent_one_once(fetch: Fetch, status: int) -> None:
    permitting, refusal = Permitting(allow(permit="p0"), signed(1)), text(status, "", ASKING)
    async with serve(permitting) as service, serve(refusal) as origin:
        await fetch(service.url, "GET", f"{origin.url}/a", sign="asked")
        first, second = fields(origin)
    assert not set(NAMES) & first.keys()
    assert first["user-agent"] == "A/1"
    assert second["signature-input"] == "sig1=();n=1"
    assert second["user-agent"] == PROFILE["User-Agent"]
    assert [(asked.get("sign"), asked.get("accept_signature")) for asked in permitting.asked] == [
        (None, None),
        (None, ASKING["Accept-Signature"]),
    ]
    assert [(permit, said["status"]) for permit, said in permitting.reports] == [("p0", status), ("p1", status)]


@each_repeating_client
async def test_a_signature_that_was_asked_for_is_not_carried_on(fetch: Fetch) -> None:
    permitting = Permitting(allow(permit="p0"), signed(1), allow(permit="p2"))
    async with (
        serve(permitting) as service,
        serve(text(200, "")) as last,
        serve(text(401, "", ASKING), redirect(f"{last.url}/b")) as first,
    ):
        await fetch(service.url, "GET", f"{first.url}/a", sign="asked")
        [_, second], [other] = fields(first), fields(last)
    assert set(NAMES) <= second.keys()
    assert not set(NAMES) & other.keys()


@each_repeating_client
@pytest.mark.parametrize(
    "answer",
    [
        {**allow(permit="p1"), "signed": None, "unsigned": "not-as-asked"},
        wait_too_long(600.0),
    ],
    ids=["not signed", "no slot"],
)
async def test_a_page_that_cannot_be_signed_as_it_asks_answers_once(fetch: Fetch, answer: dict[str, Any]) -> None:
    permitting = Permitting(allow(permit="p0"), answer)
    async with serve(permitting) as service, serve(text(401, "", ASKING)) as origin:
        await fetch(service.url, "GET", f"{origin.url}/a", sign="asked", max_wait=0)
        assert len(fields(origin)) == 1
    assert len(permitting.asked) == 2


@each_repeating_client
@pytest.mark.parametrize(
    ("method", "status", "headers"),
    [("POST", 401, ASKING), ("GET", 401, {}), ("GET", 404, ASKING), ("GET", 200, ASKING)],
)
async def test_other_responses_are_not_answered(
    fetch: Fetch, method: str, status: int, headers: dict[str, str]
) -> None:
    permitting = Permitting(allow(permit="p0"))
    async with serve(permitting) as service, serve(text(status, "", headers)) as origin:
        await fetch(service.url, method, f"{origin.url}/a", sign="asked")
        assert (len(fields(origin)), len(permitting.asked)) == (1, 1)


@each_repeating_client
@pytest.mark.parametrize("sign", [False, True])
async def test_what_pages_ask_is_answered_only_where_it_is_wanted(fetch: Fetch, sign: bool) -> None:
    permitting = Permitting(signed(1) if sign else allow(permit="p0"))
    async with serve(permitting) as service, serve(text(401, "", ASKING)) as origin:
        await fetch(service.url, "GET", f"{origin.url}/a", sign=sign)
        assert len(fields(origin)) == 1


async def test_a_client_that_cannot_repeat_a_request_says_so() -> None:
    with pytest.raises(ValueError, match="sign='asked' is not one of False, True"):
        PermitHooks("http://127.0.0.1:9", agent="A", sign=cast("Any", "asked"))


@pytest.mark.parametrize(
    "headers",
    [
        {"Signature": "a\r\nX: y"},
        {"Signature": "ä"},
        {"Signature": 1},
        {"Signature": ""},
        {"Cookie": "a=b"},
        {"Authorization": "Bearer x"},
    ],
)
async def test_fields_that_no_signature_has_are_not_sent(headers: dict[str, object]) -> None:
    answer: Any = signed(1)
    answer["signed"]["headers"].update(headers)
    async with serve(Permitting(answer)) as service, serve(text(200, "")) as origin:
        await by_httpx(service.url, "GET", f"{origin.url}/a", sign=True)
        [request] = fields(origin)
    assert not {*NAMES, "cookie", "authorization", "x"} & request.keys()


async def test_crawlee_signs_by_its_http_client_alone() -> None:
    """In a browser, the fields would go to every host that a page loads something from."""
    async with PermitHooks("http://127.0.0.1:9", agent="A", sign=True) as hooks:
        with pytest.raises(ValueError, match=r"http_client=hooks\.http_client\(\)"):
            hooks.install(HttpCrawler(storage_client=MemoryStorageClient(), configure_logging=False))
