"""Lists of origins for operators, over all processes."""

from typing import Any

import pytest

from app.cache.origin_lists import Order
from robots_core.origin import read_target
from tests.api.service import START, Service, running
from tests.origins import serve, text

pytestmark = pytest.mark.usefixtures("store_client")

FILE = "User-agent: *\nDisallow: /private\n"
DAY = 86_400


async def listed(service: Service, **query: object) -> list[dict[str, Any]]:
    parameters = {name: str(value) for name, value in query.items()}
    response = await service.client.get("/v1/origins", params=parameters)
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["origins"]
    return found


async def test_failing_origins_are_listed_with_their_last_outcome(store_url: str) -> None:
    async with (
        serve(text(503)) as broken,
        serve(text(200, FILE)) as sound,
        running(store_url) as one,
        running(store_url) as other,
    ):
        for url in (broken.url, sound.url, "http://10.0.0.1"):
            await one.allowed(f"{url}/")
            one.now += 1
        await one.app.state.services.origin_lists.flush()
        blocked, failing = await listed(other)
        assert blocked["origin"] == "http://10.0.0.1"
        assert blocked["outcome"] == "blocked_address"
        assert failing["origin"] == broken.url
        assert (failing["outcome"], failing["cause"], failing["status"]) == ("unreachable", "server_error", 503)
        assert (failing["attempts"], failing["stale"], failing["fetched_at"]) == (1, False, None)
        assert failing["checked_at"] == failing["failing_since"] == "2026-11-21T18:30:00Z"
        assert failing["recheck_at"] > failing["checked_at"]
        assert [row["origin"] for row in await listed(other, outcome="unreachable")] == [broken.url]
        assert await listed(other, outcome="successful") == []
        assert len(await listed(other, limit=1)) == 1


async def test_an_origin_that_only_this_process_failed_to_reach_is_listed(store_url: str) -> None:
    """The failure is not shared, but this process lists it."""
    async with running(store_url) as service:
        await service.allowed("http://nowhere.example/")
        [row] = await listed(service)
        assert (row["origin"], row["cause"], row["attempts"]) == ("http://nowhere.example", "dns", 1)


async def test_an_origin_that_recovered_is_not_listed_any_more(store_url: str) -> None:
    async with serve(text(503), text(200, FILE)) as origin, running(store_url) as service:
        await service.allowed(f"{origin.url}/")
        assert [row["origin"] for row in await listed(service)] == [origin.url]
        service.now = START + 3600
        await service.allowed(f"{origin.url}/")
        assert await listed(service) == []


async def test_a_stale_copy_is_listed_with_its_age(store_url: str) -> None:
    async with serve(text(200, FILE), text(500)) as origin, running(store_url) as service:
        await service.allowed(f"{origin.url}/")
        service.now = START + 2 * DAY
        await service.allowed(f"{origin.url}/")
        (row,) = await listed(service, order="stale")
        assert (row["stale"], row["outcome"], row["status"]) == (True, "unreachable", 500)
        assert (row["fetched_at"], row["failing_since"]) == ("2026-11-21T18:30:00Z", "2026-11-23T18:30:00Z")


async def test_the_most_asked_origins_come_first(store_url: str) -> None:
    async with serve(text(200, FILE)) as one, serve(text(200, FILE)) as other, running(store_url) as service:
        await service.allowed(f"{one.url}/")
        items = [{"url": f"{other.url}/{number}", "agent": "a"} for number in range(5)]
        assert (await service.client.post("/v1/allowed", json={"items": items})).status_code == 200
        rows = await listed(service, order="asked")
        assert [(row["origin"], row["asked"]) for row in rows] == [(other.url, 5), (one.url, 1)]
        assert {row["outcome"] for row in rows} == {"successful"}


async def test_origin_in_backoff_is_listed(store_url: str) -> None:
    async with serve(text(200, FILE)) as origin, running(store_url) as service:
        body = {"url": f"{origin.url}/", "agent": "a"}
        permit = (await service.client.post("/v1/permits", json=body)).json()["permit"]
        report = {"status": 429, "retry_after": 120}
        assert (await service.client.post(f"/v1/permits/{permit}/outcome", json=report)).status_code == 200
        (row,) = await listed(service, order="backoff")
        assert (row["origin"], row["backoff_until"]) == (origin.url, "2026-11-21T18:32:00Z")
        service.now += 121
        assert await listed(service, order="backoff") == []


async def test_a_slow_origin_is_listed_with_its_seconds(store_url: str) -> None:
    async with serve(text(200, FILE)) as origin, running(store_url) as service:
        await service.allowed(f"{origin.url}/")
        assert await listed(service, order="slow") == []
        place = read_target(f"{origin.url}/").origin
        file = await service.app.state.services.decider.files.refresh(place, "")
        service.app.state.services.origin_lists.note_fetch(place, file.cached.snapshot, 4.25)
        (row,) = await listed(service, order="slow")
        assert (row["origin"], row["fetch_seconds"], row["outcome"]) == (origin.url, 4.25, "successful")


async def test_bad_parameters_and_non_operators_are_refused(store_url: str) -> None:
    async with running(store_url) as service:
        for bad in ({"order": "fastest"}, {"outcome": "fine"}, {"limit": "0"}, {"limit": "1001"}):
            assert (await service.client.get("/v1/origins", params=bad)).status_code == 422
        for order in Order:
            assert await listed(service, order=order) == []
        refused = await service.client.get("/v1/origins", headers={"Authorization": ""})
        assert refused.status_code == 401
