"""Groups of consumers of the feed of changes, over HTTP."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from redis.asyncio import Redis

from app.auth.keys import Scope, new_key
from app.history.change_groups import GROUPS
from app.history.redis_changes import STREAM
from tests.api.service import Service, running, slug
from tests.history.feed import add_changes, end_leases

pytestmark = pytest.mark.usefixtures("store_client")

GROUP = "index"


async def ask(service: Service, **query: object) -> httpx.Response:
    texts = {name: str(value) for name, value in {"group": GROUP, **query}.items()}
    return await service.client.get("/v1/changes", params=texts)


async def leased(service: Service, **query: object) -> list[str]:
    response = await ask(service, **query)
    assert response.status_code == 200, response.text
    assert response.headers["cache-control"] == "no-store"
    return [json.loads(line)["id"] for line in response.text.splitlines()]


async def acknowledge(service: Service, **members: object) -> httpx.Response:
    return await service.client.post("/v1/changes/acknowledgements", json={"group": GROUP, **members})


async def listed(service: Service) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = (await service.client.get("/v1/changes/groups")).json()["groups"]
    return groups


async def test_two_services_share_a_group(store_url: str, store_client: Redis) -> None:
    added = await add_changes(store_client, 5)
    async with running(store_url) as one, running(store_url) as other:
        first = await leased(one, after=0, limit=2)
        second = await leased(other)
        assert (first, second) == (added[:2], added[2:])
        response = await acknowledge(other, ids=[*first, *second[1:], "1-1"])
        assert (response.status_code, response.json()) == (200, {"acknowledged": 4})
        [group] = await listed(one)
        assert group.pop("idle") is not None
        assert group == {"name": GROUP, "lag": 0, "pending": 1}
        await end_leases(store_client, GROUP)
        assert await leased(one) == second[:1]


async def test_a_group_reads_beside_readers_without_one(store_url: str, store_client: Redis) -> None:
    added = await add_changes(store_client, 2)
    async with running(store_url) as service:
        assert await leased(service, after=added[0]) == added[1:]
        assert await leased(service, after=added[1]) == []  # the group has its own position
        assert await leased(service, group="all", after="2020-01-01T00:00:00Z") == added
        assert await leased(service, group="new", after="now") == []
        response = await service.client.get("/v1/changes")
        assert [json.loads(line)["id"] for line in response.text.splitlines()] == added
        later = await add_changes(store_client, 1)
        assert await leased(service, group="new") == later


async def test_a_consumer_waits_for_a_lease_that_ends(store_url: str, store_client: Redis) -> None:
    async with running(store_url) as service:
        assert await leased(service, after=0) == []
        added = await add_changes(store_client, 1)
        assert await leased(service, wait=60) == added


async def test_an_unknown_group_is_a_404(store_url: str) -> None:
    async with running(store_url) as service:
        deleted = await service.client.delete(f"/v1/changes/groups/{GROUP}")
        for response in (await ask(service), await ask(service, wait=60), await acknowledge(service), deleted):
            assert (response.status_code, slug(response)) == (404, "no-group")
        assert "after=0" in (await ask(service)).json()["detail"]


async def test_a_group_behind_the_feed_gets_410_until_it_says_so(store_url: str, store_client: Redis) -> None:
    added = await add_changes(store_client, 5)
    async with running(store_url) as service:
        await leased(service, after=0, limit=1)
        await acknowledge(service, ids=added[:1])
        await store_client.xtrim(STREAM, maxlen=2, approximate=False)
        for response in (await ask(service), await ask(service, after=0)):
            assert (response.status_code, slug(response)) == (410, "changes-removed")
            assert response.json()["missed_before"] == added[3]
        assert (await acknowledge(service, missed_before=added[3])).json() == {"acknowledged": 0}
        assert await leased(service) == added[3:]
        response = await ask(service, group="late", after=added[0])
        assert (response.status_code, slug(response)) == (410, "changes-removed")
        assert "missed_before" not in response.json()


async def test_too_many_groups_are_refused(store_url: str) -> None:
    async with running(store_url) as service:
        for number in range(GROUPS):
            await leased(service, group=f"g{number}", after=0)
        response = await ask(service, after=0)
        assert (response.status_code, slug(response)) == (409, "too-many-groups")
        assert len(await listed(service)) == GROUPS
        assert (await service.client.delete("/v1/changes/groups/g0")).status_code == 204
        assert await leased(service, after=0) == []


@pytest.mark.parametrize("name", ["", "A", "-a", "a" * 65, "a b", "a\n", "a\x00", "é", "*", "../x"])
async def test_an_invalid_name_is_refused(store_url: str, name: str) -> None:
    async with running(store_url) as service:
        for response in (await ask(service, group=name), await acknowledge(service, group=name)):
            assert (response.status_code, slug(response)) == (422, "bad-request")
            assert (response.json()["parameter"], response.json()["value"]) == ("group", name)
        assert (await service.client.delete(f"/v1/changes/groups/{quote(name, safe='')}")).status_code in (
            404,
            405,
            422,
        )


@pytest.mark.parametrize("id_", ["noon", "", "-1", "1-2-3", "99999999999999999999", "1 2", "٣", "1" * 10_000])
async def test_an_invalid_id_is_refused(store_url: str, id_: str) -> None:
    async with running(store_url) as service:
        response = await acknowledge(service, ids=["1-1", id_])
        assert (response.status_code, slug(response), response.json()["parameter"]) == (422, "bad-ids", "ids[1]")
        response = await acknowledge(service, missed_before=id_)
        assert (response.status_code, slug(response)) == (422, "bad-missed_before")
        response = await ask(service, after=id_)
        assert (response.status_code, slug(response)) == (422, "bad-after")


@pytest.mark.parametrize(
    "members", [{"ids": ["1-1"] * 1001}, {"ids": [1]}, {"ids": "1-1"}, {"id": "1-1"}, {"group": 1}]
)
async def test_an_invalid_acknowledgement_is_refused(store_url: str, members: dict[str, object]) -> None:
    async with running(store_url) as service:
        response = await acknowledge(service, **members)
        assert (response.status_code, slug(response)) == (422, "bad-request")


async def test_a_thousand_changes_are_leased_and_acknowledged(store_url: str, store_client: Redis) -> None:
    added = await add_changes(store_client, 1001)
    async with running(store_url) as service:
        found = await leased(service, after=0, limit=1000)
        assert found == added[:1000]
        assert (await acknowledge(service, ids=found)).json() == {"acknowledged": 1000}
        assert await leased(service) == added[1000:]


async def test_without_the_store_groups_are_a_503() -> None:
    async with running("unix:///none") as service:
        for response in (
            await ask(service, after=0),
            await acknowledge(service, ids=["1-1"]),
            await service.client.get("/v1/changes/groups"),
            await service.client.delete(f"/v1/changes/groups/{GROUP}"),
        ):
            assert (response.status_code, slug(response)) == (503, "store-down")


async def test_with_keys_callers_read_and_operators_delete(store_url: str, tmp_path: Path) -> None:
    reader, reader_lines = new_key("reader")
    operator, operator_lines = new_key("operator", Scope.ADMIN)
    file = tmp_path / "keys.toml"
    file.write_text(reader_lines + operator_lines)
    async with running(store_url, api_keys_file=file) as service:
        assert (await ask(service, after=0)).status_code == 401
        service.client.headers["X-API-Key"] = reader
        assert await leased(service, after=0) == []
        assert (await acknowledge(service)).status_code == 200
        assert [group["name"] for group in await listed(service)] == [GROUP]
        response = await service.client.delete(f"/v1/changes/groups/{GROUP}")
        assert (response.status_code, slug(response)) == (403, "forbidden")
        service.client.headers["X-API-Key"] = operator
        assert (await service.client.delete(f"/v1/changes/groups/{GROUP}")).status_code == 204
        assert await listed(service) == []


async def test_pages_of_other_origins_lease_nothing(store_url: str, store_client: Redis) -> None:
    added = await add_changes(store_client, 1)
    async with running(store_url) as service:
        query = {"group": GROUP, "after": "0"}
        response = await service.client.get("/v1/changes", params=query, headers={"Sec-Fetch-Site": "cross-site"})
        assert (response.status_code, slug(response)) == (403, "forbidden")
        assert await leased(service, after=0) == added
