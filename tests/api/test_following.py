"""A pace that follows the site: what callers report of pages, and what answers say decided the pace."""

import asyncio
from typing import Any

import pytest
from redis.asyncio import Redis

from app.pacing.page_times import TOLERANCE
from app.pacing.redis_pacer import LATENCY_FACTOR, keys_of
from app.pacing.slots import PaceKey
from tests.api.service import Service, counted, running
from tests.origins import Exchange, serve, text

pytestmark = pytest.mark.usefixtures("store_client")

FLOOR, PAGE = 0.01, 0.08
"""Seconds: a page that takes longer than its slot is old is not believed."""

NAMES = {name: ["127.0.0.1"] for name in ("a.example", "b.example", "c.example")}


async def permit(service: Service, url: str, max_wait: float = 600, cost: float = 1) -> dict[str, Any]:
    body = {"url": url, "agent": "ExampleBot", "max_wait": max_wait, "cost": cost}
    response = await service.client.post("/v1/permits", json=body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def report(service: Service, granted: dict[str, Any], **outcome: object) -> None:
    items = [{"permit": granted["permit"], **outcome}]
    response = await service.client.post("/v1/permits/outcomes", json={"items": items})
    assert response.json()["outcomes"][0].get("problem") is None, response.text


async def test_an_answer_says_what_decided_the_interval(store_url: str) -> None:
    robots = text(200, "User-agent: *\nCrawl-delay: 5\n")
    async with serve(robots) as paced, serve(text(404)) as free, running(store_url, NAMES, pace_floor=FLOOR) as service:
        file = await permit(service, f"http://a.example:{paced.port}/")
        floor = await permit(service, f"http://b.example:{free.port}/")
        assert (file["interval"], file["bound"]) == (5.0, "file")
        assert (floor["interval"], floor["bound"]) == (FLOOR, "floor")
        body = {"scope": "a.example", "action": "delay", "delay": 9, "reason": "They asked for it."}
        assert (await service.client.put("/v1/overrides/slow", json=body)).status_code == 201
        override = await permit(service, f"http://a.example:{paced.port}/")
        assert (override["interval"], override["bound"]) == (9.0, "override")
        await report(service, floor, status=200, elapsed=PAGE)
        latency = await permit(service, f"http://b.example:{free.port}/")
        assert latency["interval"] > FLOOR
        assert latency["bound"] == "latency"
        again = await permit(service, f"http://a.example:{paced.port}/")
        assert again["bound"] == "override"
        await report(service, latency, status=503)
        backoff = await permit(service, f"http://b.example:{free.port}/")
        assert backoff["interval"] == pytest.approx(2 * latency["interval"], rel=0.1)
        assert (backoff["bound"], backoff["permit"]) == ("backoff", None)  # it is farther ahead than 8 intervals
        for bound, times in {"file": 1, "floor": 1, "override": 2, "latency": 1, "backoff": 0}.items():
            assert await counted(service, "robots_permit_bounds_total", bound=bound) == times


async def test_without_outcomes_nothing_changes(store_url: str) -> None:
    async with serve(text(404)) as origin, running(store_url, NAMES) as service:
        answers = [await permit(service, f"http://c.example:{origin.port}/{number}") for number in range(30)]
        assert {(answer["interval"], answer["bound"]) for answer in answers} == {(1.0, "floor")}
        assert answers[-1]["wait"] > 20


async def test_latency_of_0_is_not_followed(store_url: str) -> None:
    async with serve(text(404)) as origin, running(store_url, NAMES, pace_floor=FLOOR, pace_latency=0) as service:
        for _ in range(3):
            await report(service, await permit(service, f"http://c.example:{origin.port}/"), status=200, elapsed=PAGE)
        answer = await permit(service, f"http://c.example:{origin.port}/")
        assert (answer["interval"], answer["bound"]) == (FLOOR, "floor")


async def test_the_time_of_the_own_fetch_is_the_first_report(store_url: str) -> None:
    fetch = 0.5

    async def slow(call: Exchange) -> None:
        await asyncio.sleep(fetch)
        await call.send(text(404))

    async with serve(slow) as origin, running(store_url, NAMES, pace_floor=FLOOR) as service:
        url = f"http://c.example:{origin.port}/"
        first = await permit(service, url)
        assert (first["interval"], first["bound"]) == (FLOOR, "floor")  # without outcomes nothing changes
        await report(service, first, status=200, elapsed=PAGE)
        answer = await permit(service, url)
        assert answer["bound"] == "latency"
        assert answer["interval"] >= LATENCY_FACTOR * (fetch + PAGE) / 2


@pytest.mark.parametrize(
    ("outcome", "counts"),
    [
        ({"status": 200, "elapsed": PAGE}, True),
        ({"status": 200, "elapsed": 3600.0}, False),  # its slot has only begun
        ({"status": 404, "elapsed": 0.0}, False),
        ({"elapsed": 0.0}, False),
        ({"status": 200}, False),
        ({"released": True, "elapsed": PAGE}, False),
    ],
)
async def test_only_a_page_that_can_have_taken_so_long_counts(
    store_url: str, outcome: dict[str, object], counts: bool
) -> None:
    async with serve(text(404)) as origin, running(store_url, NAMES, pace_floor=FLOOR) as service:
        url = f"http://c.example:{origin.port}/"
        await report(service, await permit(service, url), **outcome)
        answer = await permit(service, url)
        assert (answer["bound"] == "latency") == counts


async def test_a_success_without_a_time_says_that_pages_come(store_url: str, store_client: Redis) -> None:
    queue = keys_of(PaceKey.of("c.example", "ExampleBot"))[3]
    async with serve(text(404)) as origin, running(store_url, NAMES, pace_floor=FLOOR) as service:
        url, found = f"http://c.example:{origin.port}/", []
        for status in (404, 200):
            await report(service, await permit(service, url), status=status)
            await permit(service, url)
            found.append(float(await store_client.hget(queue, "page_at") or 0) > 0)
        assert found == [False, True]


async def test_an_error_slows_the_pace_or_leaves_it(store_url: str) -> None:
    async with serve(text(404)) as origin, running(store_url, NAMES, pace_floor=FLOOR) as service:
        url = f"http://c.example:{origin.port}/"
        await report(service, await permit(service, url), status=200, elapsed=PAGE)
        before = (await permit(service, url))["interval"]
        for status in (301, 404, 500):
            await report(service, await permit(service, url), status=status, elapsed=0.001)
            assert (await permit(service, url))["interval"] == before
        granted = await permit(service, url)
        await asyncio.sleep(granted["wait"])
        await report(service, granted, status=404, elapsed=TOLERANCE)
        assert (await permit(service, url))["interval"] > before


async def test_reports_are_handed_over_with_a_request_that_is_refused(store_url: str) -> None:
    async with serve(text(404)) as origin, running(store_url, NAMES, pace_floor=FLOOR) as service:
        url = f"http://c.example:{origin.port}/"
        granted = await permit(service, url)
        await permit(service, url, cost=1000)  # so that the next slot is far away, however busy the machine is
        await report(service, granted, status=200, elapsed=PAGE)
        refused = await permit(service, url, max_wait=0)
        assert refused["permit"] is None
        assert refused["bound"] == "latency"
        # Nothing waits for the store any more: the same report would count again.
        assert (await permit(service, url, max_wait=0))["interval"] == refused["interval"]
