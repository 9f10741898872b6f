"""`max_age` makes the service fetch an origin at most once in MIN_REFETCH_SECONDS, whoever asks on whatever route."""

import json
from collections.abc import Awaitable, Callable

import pytest

from tests.api.service import Service, running
from tests.origins import serve, text

pytestmark = pytest.mark.usefixtures("store_client")

FILE = text(200, "User-agent: *\nDisallow: /private/\n")


async def by_get(service: Service, url: str) -> float:
    answer = await service.allowed(f"{url}/", max_age=0)
    return float(answer["robots"]["age"])


async def by_check(service: Service, url: str) -> None:
    query = {"url": f"{url}/", "agent": "ExampleBot", "max_age": "0"}
    response = await service.client.get("/v1/check", params=query)
    assert response.status_code == 204


async def by_robots(service: Service, url: str) -> float:
    response = await service.client.get("/v1/robots", params={"url": url, "max_age": "0"})
    return float(response.json()["robots"]["age"])


async def by_batch(service: Service, url: str) -> float:
    items = [{"url": f"{url}/", "agent": "ExampleBot", "max_age": 0}] * 3
    response = await service.client.post("/v1/allowed", json={"items": items, "max_age": 0})
    return float(response.json()["answers"][-1]["robots"]["age"])


async def by_stream(service: Service, url: str) -> float:
    line = json.dumps({"url": f"{url}/", "agent": "ExampleBot", "max_age": 0}) + "\n"
    headers = {"Content-Type": "application/x-ndjson"}
    response = await service.client.post("/v1/allowed", content=line * 3, headers=headers)
    return float(json.loads(response.text.splitlines()[-1])["robots"]["age"])


@pytest.mark.parametrize("ask", [by_get, by_check, by_robots, by_batch, by_stream])
async def test_an_origin_is_fetched_once_in_that_time(
    ask: Callable[[Service, str], Awaitable[float | None]], store_url: str
) -> None:
    async with serve(FILE) as origin, running(store_url) as one, running(store_url) as other:
        for service in (one, other, one, other):
            assert await ask(service, origin.url) in (0, None)
        assert len(origin.requests) == 1
        one.now = other.now = one.now + 10
        for service in (one, other, one):
            assert await ask(service, origin.url) in (10, None)  # the answer says how old its copy is
        assert len(origin.requests) == 1
        one.now = other.now = one.now + 1
        for service in (one, other, one):
            assert await ask(service, origin.url) in (0, None)
        assert len(origin.requests) == 2


async def test_an_operator_fetches_at_once(store_url: str) -> None:
    async with serve(FILE) as origin, running(store_url) as service:
        await service.allowed(f"{origin.url}/")
        response = await service.client.post("/v1/robots/refresh", params={"url": origin.url})
        assert response.status_code == 200
        assert len(origin.requests) == 2


async def test_without_a_bound_each_question_may_fetch(store_url: str) -> None:
    async with serve(FILE) as origin, running(store_url, min_refetch_seconds=0) as service:
        for _ in range(3):
            service.now += 0.5
            await service.allowed(f"{origin.url}/", max_age=0)
        assert len(origin.requests) == 3
