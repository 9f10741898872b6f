"""Pools: which origins share the pace of `POST /v1/permits`, its back-offs, and what the answers say."""

from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.api.service import Service, counted, running
from tests.origins import serve, text

pytestmark = pytest.mark.usefixtures("store_client")

NAMES = {name: ["127.0.0.1"] for name in ("example.com", "www.example.com", "shop.example.com", "other.example")}
FAST = text(200, "User-agent: *\nCrawl-delay: 2\n")
SLOW = text(200, "User-agent: *\nCrawl-delay: 7\n")


async def permit(service: Service, url: str, **members: object) -> dict[str, Any]:
    body = {"url": url, "agent": "ExampleBot", "max_wait": 600, **members}
    response = await service.client.post("/v1/permits", json=body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def slots(answers: list[dict[str, Any]]) -> list[tuple[float, float]]:
    """When each slot begins, and its interval, in order."""
    return sorted((datetime.fromisoformat(it["go_at"]).timestamp(), it["interval"]) for it in answers)


async def test_the_ports_of_a_host_share_one_pace_at_their_own_intervals(store_url: str) -> None:
    async with serve(FAST) as one, serve(SLOW) as other, running(store_url, NAMES) as service:
        urls = [f"http://www.example.com:{port}/a" for port in (one.port, other.port)]
        answers = [await permit(service, urls[turn % 2]) for turn in range(8)]
        assert {answer["pool"] for answer in answers} == {"www.example.com"}
        assert {answer["interval"] for answer in answers} == {2.0, 7.0}
        assert all(later - go >= interval - 0.002 for (go, interval), (later, _) in pairwise(slots(answers)))


@pytest.mark.parametrize(
    ("by", "pools"),
    [
        ("origin", ["http://www.example.com:{port}", "http://shop.example.com:{port}", "http://other.example:{port}"]),
        ("host", ["www.example.com", "shop.example.com", "other.example"]),
        ("domain", ["example.com", "example.com", "other.example"]),
    ],
)
async def test_pace_by_says_which_names_share_a_pace(store_url: str, by: str, pools: list[str]) -> None:
    async with serve(SLOW) as origin, running(store_url, NAMES, pace_by=by) as service:
        hosts = ("www.example.com", "shop.example.com", "other.example")
        answers = [await permit(service, f"http://{host}:{origin.port}/a") for host in hosts]
        assert [answer["pool"] for answer in answers] == [pool.format(port=origin.port) for pool in pools]
        behind = [answer["wait"] > 5 for answer in answers]
        assert behind == [False, by == "domain", False]


async def test_a_named_pool_shares_pace_and_back_off_and_is_shown(store_url: str, tmp_path: Path) -> None:
    table = tmp_path / "recheck.toml"
    table.write_text('[pools]\nshop = ["example.com", "other.example"]\n')
    async with serve(SLOW) as origin, running(store_url, NAMES, recheck_file=table) as service:
        urls = [f"http://{host}:{origin.port}/a" for host in ("example.com", "other.example")]
        first = await permit(service, urls[0])
        assert first["pool"] == "pool:shop"
        assert (await permit(service, urls[1]))["wait"] > 5
        outcome = await service.client.post(f"/v1/permits/{first['permit']}/outcome", json={"status": 429})
        assert outcome.json()["backoff"] == pytest.approx(10, abs=1)
        await service.client.post(f"/v1/permits/{first['permit']}/outcome", json={"status": 503, "retry_after": 300})
        assert (await permit(service, urls[1], max_wait=60))["retry_after"] > 200
        response = await service.client.get("/v1/origins", params={"order": "backoff"})
        [row] = response.json()["origins"]
        assert (row["origin"], row["pool"]) == (urls[0].removesuffix("/a"), "pool:shop")
        assert await counted(service, "robots_pool_permits_total", pool="shop") == 2


async def test_a_permit_keeps_its_origin_when_the_table_changes(store_url: str, tmp_path: Path) -> None:
    """A back-off reported by a permit holds for the pool that its origin is in by then."""
    table = tmp_path / "recheck.toml"
    table.write_text('[pools]\nshop = ["other.example", "www.example.com"]\n')
    async with serve(FAST) as origin:
        async with running(store_url, NAMES) as service:
            granted = await permit(service, f"http://other.example:{origin.port}/a")
        async with running(store_url, NAMES, recheck_file=table) as service:
            path = f"/v1/permits/{granted['permit']}/outcome"
            await service.client.post(path, json={"status": 429, "retry_after": 300})
            assert (await permit(service, f"http://www.example.com:{origin.port}/a", max_wait=5))["retry_after"] > 200


async def test_a_delay_that_covers_the_pool_is_a_floor_for_all_of_it(store_url: str) -> None:
    async with serve(FAST) as one, serve(SLOW) as other, running(store_url, NAMES, pace_by="domain") as service:
        body = {"scope": "example.com", "action": "delay", "delay": 20, "reason": "They asked for it."}
        assert (await service.client.put("/v1/overrides/slow", json=body)).status_code == 201
        urls = [f"http://{host}:{site.port}/a" for host in ("www.example.com", "example.com") for site in (one, other)]
        answers = [await permit(service, url) for url in urls]
        assert {answer["interval"] for answer in answers} == {20.0}
        assert all(later - go >= 20 - 0.002 for (go, _), (later, _) in pairwise(slots(answers)))


async def test_a_budget_of_the_table_refuses_what_is_beyond_it(store_url: str, tmp_path: Path) -> None:
    table = tmp_path / "recheck.toml"
    table.write_text('"example.com" = {budget = 3, floor = 0}\n')
    async with serve(text(404)) as origin, running(store_url, NAMES, recheck_file=table) as service:
        items = {"url": f"http://www.example.com:{origin.port}/a", "agent": "ExampleBot"}
        response = await service.client.post("/v1/permits/batch", json={"items": [items] * 4})
        answers = response.json()["permits"]
        assert [answer["permit"] is None for answer in answers] == [False, False, False, True]
        assert (answers[3]["bound"], answers[3]["verdict"]) == ("budget", "allow")
        assert 0 < answers[3]["retry_after"] <= 86_400
        assert (await permit(service, f"http://shop.example.com:{origin.port}/a"))["permit"]
        assert await counted(service, "robots_permits_total", outcome="budget_used_up") == 1


@pytest.mark.parametrize(
    ("of_table", "of_override", "holds"), [(None, 3, 3), (5, 3, 3), (2, 3, 2)], ids=["alone", "smaller", "larger"]
)
async def test_the_smaller_budget_of_an_override_and_the_table_holds(
    store_url: str, tmp_path: Path, of_table: int | None, of_override: int, holds: int
) -> None:
    table = tmp_path / "recheck.toml"
    table.write_text('"example.com" = {floor = 0' + (f", budget = {of_table}}}\n" if of_table else "}\n"))
    async with serve(text(404)) as origin, running(store_url, NAMES, recheck_file=table, pace_by="domain") as service:
        body = {"scope": "example.com", "action": "budget", "budget": of_override, "reason": "They asked for it."}
        response = await service.client.put("/v1/overrides/few", json={**body, "agents": ["ExampleBot"]})
        assert response.json()["budget"] == of_override
        # All hosts of the pool spend it.
        urls = [f"http://{host}:{origin.port}/a" for host in ("www.example.com", "shop.example.com")]
        answers = [await permit(service, urls[turn % 2]) for turn in range(holds + 1)]
        assert [answer["permit"] is None for answer in answers] == [False] * holds + [True]
        refused = answers[-1]
        assert (refused["bound"], refused["verdict"], refused["override"]) == ("budget", "allow", None)
        assert 0 < refused["retry_after"] <= 86_400
        assert (await permit(service, f"http://other.example:{origin.port}/a"))["permit"]
        assert (await permit(service, urls[0], agent="OtherBot"))["permit"]
        # A larger one opens the day again, since documents are counted with and without a budget.
        larger = {**body, "budget": 1000}
        assert (await service.client.put("/v1/overrides/few", json=larger)).status_code == 200
        again = await permit(service, urls[1])
        assert (again["permit"] is None) == (of_table is not None and of_table <= holds)
