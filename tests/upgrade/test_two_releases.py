"""The last release and this one on one store, as during a rolling upgrade: what one is told holds for the other."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count, pairwise
from subprocess import DEVNULL
from typing import Any

import httpx
import pytest

from app.store.embedded import serve as serve_valkey
from tests.faults.loopback import Visit, Web, web
from tests.faults.process import process
from tests.faults.until import until
from tests.forked import ForkedService
from tests.operator_token import TOKEN_HEADER
from tests.origins import NO_TLS, text
from tests.upgrade.trees import last_release

OPEN = text(200, "User-agent: *\nDisallow: /private/\nCrawl-delay: 2\n")
CLOSED = text(200, "User-agent: *\nDisallow: /\n")
SLOTS = 12
BLOCKS = count(0, 100)
PATIENCE = httpx.Timeout(90.0)
BOTH_WAYS = pytest.mark.parametrize(
    ("first", "second"), [("last release", "this release"), ("this release", "last release")]
)


@dataclass(frozen=True, slots=True)
class Pair:
    """Clients of the two services: of the one that acts first, and of the other."""

    one: httpx.AsyncClient
    other: httpx.AsyncClient


@pytest.fixture(scope="module")
def urls() -> Iterator[dict[str, str]]:
    """The services of the last release and of this one, on a store of their own."""
    with ExitStack() as stack:
        store = stack.enter_context(serve_valkey(None))
        settings = {"REDIS_URL": store, "PACE_INSTANCES": "2", "FETCH_TIMEOUT": "60", "ACCESS_LOG": "false"}
        module = "tests.patient_service"
        settings["PACE_BY"] = "origin"  # all sites of the tests are ports of one host
        tree = last_release()
        last = stack.enter_context(process(DEVNULL, tree, module=module, PYTHONPATH=f"{tree / 'core'}", **settings))
        this = ForkedService(store, module, **settings)
        stack.callback(this.kill)
        yield {"last release": last.wait_ready(), "this release": this.listen()}


@pytest.fixture
async def pair(urls: dict[str, str], first: str, second: str) -> AsyncIterator[Pair]:
    async with (
        httpx.AsyncClient(base_url=urls[first], headers=TOKEN_HEADER, timeout=PATIENCE, verify=NO_TLS) as one,
        httpx.AsyncClient(base_url=urls[second], headers=TOKEN_HEADER, timeout=PATIENCE, verify=NO_TLS) as other,
    ):
        yield Pair(one, other)


@pytest.fixture
async def sites() -> AsyncIterator[Web]:
    # The host of an origin is its pool, whatever the port, so what a test did to a host would hold for the next one.
    async with web(OPEN, next(BLOCKS)) as origins:
        yield origins


async def verdict(client: httpx.AsyncClient, url: str) -> str:
    response = await client.get("/v1/allowed", params={"url": url, "agent": "ExampleBot", "wait": 60})
    assert response.status_code == 200, response.text
    return str(response.json()["verdict"])


async def permit(client: httpx.AsyncClient, url: str, max_wait: float = 3600) -> dict[str, Any]:
    response = await client.post("/v1/permits", json={"url": url, "agent": "ExampleBot", "max_wait": max_wait})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    assert not answer.get("degraded"), answer
    return answer


@BOTH_WAYS
async def test_a_file_is_fetched_once(pair: Pair, sites: Web) -> None:
    site = sites.new()
    assert await verdict(pair.one, f"{site}/private/") == "disallow"
    assert await verdict(pair.other, f"{site}/private/") == "disallow"
    assert list(sites.requests.values()) == [1]


@BOTH_WAYS
async def test_a_cold_file_is_fetched_by_one_for_both(pair: Pair, sites: Web) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slow(visit: Visit) -> None:
        asked.set()
        await answer.wait()
        await visit.send(CLOSED)

    site = sites.new(slow)
    questions = [asyncio.create_task(verdict(pair.one, site + "/"))]
    await asked.wait()
    questions += [
        asyncio.create_task(verdict(client, site + "/")) for client in (pair.one, pair.other) for _ in range(5)
    ]
    await asyncio.sleep(0.5)  # for a fetch that would be one too many
    answer.set()
    assert set(await asyncio.gather(*questions)) == {"disallow"}
    assert list(sites.requests.values()) == [1]


@BOTH_WAYS
async def test_an_override_holds_and_ends_for_both(pair: Pair, sites: Web) -> None:
    site = sites.new()
    for client in (pair.one, pair.other):
        assert await verdict(client, f"{site}/") == "allow"
    deny = {"scope": site, "action": "deny", "reason": "They asked us to."}
    path = f"/v1/overrides/{site.partition('://')[2].replace(':', '-').replace('.', '-')}"
    assert (await pair.one.put(path, json=deny)).status_code == 201
    await until(lambda: verdict(pair.other, f"{site}/"), lambda said: said == "disallow")
    assert (await pair.other.get(path)).json()["reason"] == deny["reason"]
    assert (await pair.other.put(path, json={**deny, "reason": "They still do."})).status_code == 200
    assert (await pair.one.get(path)).json()["reason"] == "They still do."
    assert (await pair.other.delete(path)).status_code == 204
    await until(lambda: verdict(pair.one, f"{site}/"), lambda said: said == "allow")


@BOTH_WAYS
async def test_both_keep_one_pace(pair: Pair, sites: Web) -> None:
    page = f"{sites.new()}/page"
    answers = [await permit(client, page) for _ in range(SLOTS // 2) for client in (pair.one, pair.other)]
    slots = sorted(datetime.fromisoformat(answer["go_at"]).timestamp() for answer in answers)
    interval = answers[0]["interval"]
    assert len(set(slots)) == SLOTS
    assert min(later - earlier for earlier, later in pairwise(slots)) >= interval - 0.002


@BOTH_WAYS
async def test_a_back_off_holds_for_both(pair: Pair, sites: Web) -> None:
    page = f"{sites.new()}/page"
    granted = await permit(pair.one, page)
    outcome = await pair.one.post(f"/v1/permits/{granted['permit']}/outcome", json={"status": 429, "retry_after": 300})
    assert outcome.json()["backoff"] >= 290
    for client in (pair.other, pair.one):
        refused = await permit(client, page, max_wait=5)
        assert refused["permit"] is None
        assert refused["retry_after"] > 200


@BOTH_WAYS
async def test_a_permit_of_one_is_reported_to_the_other(pair: Pair, sites: Web) -> None:
    page = f"{sites.new()}/page"
    granted = await permit(pair.one, page)
    outcome = await pair.other.post(f"/v1/permits/{granted['permit']}/outcome", json={"status": 200, "elapsed": 0.1})
    assert outcome.status_code == 200, outcome.text
    released = await permit(pair.other, page)
    given_back = await pair.one.post(f"/v1/permits/{released['permit']}/outcome", json={"released": True})
    assert given_back.status_code == 200, given_back.text


@BOTH_WAYS
async def test_a_refresh_reaches_the_other(pair: Pair, sites: Web) -> None:
    site = sites.new(OPEN)
    for client in (pair.one, pair.other):
        assert await verdict(client, f"{site}/") == "allow"
    [address] = sites.replies
    sites.replies[address] = CLOSED
    assert (await pair.one.post("/v1/robots/refresh", params={"url": f"{site}/"})).status_code == 200
    assert await verdict(pair.one, f"{site}/") == "disallow"
    await until(lambda: verdict(pair.other, f"{site}/"), lambda said: said == "disallow")
    histories = [
        (await client.get("/v1/robots/history", params={"url": f"{site}/"})).json()["versions"]
        for client in (pair.one, pair.other)
    ]
    assert histories[0] == histories[1]
    assert len({version["id"] for version in histories[0]}) == 2


@BOTH_WAYS
async def test_a_copy_that_a_crawler_sent_decides_in_both(pair: Pair, sites: Web) -> None:
    site = sites.new(OPEN)
    now = datetime.now(UTC).isoformat()
    copy = {"status": 200, "observed_at": now, "robots": "User-agent: *\nDisallow: /\n"}
    clients = pair.one, pair.other
    sent = [(await client.put("/v1/robots", params={"url": f"{site}/"}, json=copy)).status_code for client in clients]
    assert sent == [200, 200]
    for client in clients:
        assert await verdict(client, f"{site}/") == "disallow"
    assert not sum(sites.requests.values())


@BOTH_WAYS
async def test_a_failure_is_not_fetched_again_by_the_other(pair: Pair, sites: Web) -> None:
    site = sites.new(text(503))
    assert await verdict(pair.one, f"{site}/") == "defer"
    assert await verdict(pair.other, f"{site}/") == "defer"
    assert list(sites.requests.values()) == [1]
