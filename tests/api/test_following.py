"""A pace that follows the site: what callers report of pages, and what answers say decided the pace."""

from typing import Any

import pytest

from tests.api.service import Service, counted, running
from tests.origins import serve, text

pytestmark = pytest.mark.usefixtures("store_client")

FLOOR, PAGE = 0.01, 0.08
"""Seconds: a page that takes longer than its slot is old is not believed."""

NAMES = {name: ["127.0.0.1"] for name in ("a.example", "b.example", "c.example")}


async def permit(service: Service, url: str) -> dict[str, Any]:
    response = await service.client.post("/v1/permits", json={"url": url, "agent": "ExampleBot", "max_wait": 600})
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
