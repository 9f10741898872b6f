"""The feed of changes, over all processes of a fleet."""

import asyncio
import json
from typing import Any

import pytest
from redis.asyncio import Redis

from tests.api.service import Service, running, slug
from tests.faults.until import until
from tests.history.feed import add_changes, change_text
from tests.origins import serve, text

pytestmark = pytest.mark.usefixtures("store_client")

OLD = "User-agent: *\nDisallow: /old\n"
NEW = "User-agent: *\nDisallow: /new\n\nUser-agent: a\nDisallow:\nCrawl-delay: 9\n"
HOUR = 3600


async def listed(service: Service, **query: object) -> list[dict[str, Any]]:
    response = await service.client.get("/v1/changes", params={name: str(value) for name, value in query.items()})
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in response.text.splitlines()]


async def test_a_change_is_listed_once_with_what_it_means(store_url: str) -> None:
    async with (
        serve(text(200, OLD), text(200, NEW)) as origin,
        running(store_url) as one,
        running(store_url) as other,
    ):
        for service in (one, other):
            await service.allowed(f"{origin.url}/")
            service.now += 30 * HOUR
        assert await listed(one) == []
        for service in (one, other):
            await service.allowed(f"{origin.url}/", wait=30)
        [change] = await until(lambda: listed(other), bool)
        assert change["url"] == f"{origin.url}/robots.txt"
        named = {tuple(agents["agents"]): agents for agents in change["agents"]}
        assert named[("*",)]["lost"] == ["/new"]
        assert named[("*",)]["gained"] == ["/old"]
        assert named[("a",)]["rates"] is True
        diff = await other.client.get("/v1/robots/diff", params={"url": origin.url})
        assert (diff.json()["from"]["id"], diff.json()["to"]["id"]) == (change["from"], change["to"])
        assert await listed(one, after=change["id"]) == []
        assert await listed(one, after="2020-01-01T00:00:00Z") == [change]


async def test_a_request_waits_for_a_change(store_url: str) -> None:
    async with serve(text(200, OLD), text(200, NEW)) as origin, running(store_url) as service:
        waiting = asyncio.create_task(listed(service, wait=60))
        await service.allowed(f"{origin.url}/")
        service.now += 30 * HOUR
        await service.allowed(f"{origin.url}/", wait=30)
        assert len(await waiting) == 1


async def test_a_reader_behind_the_feed_is_answered_410(store_url: str, store_client: Redis) -> None:
    async with running(store_url) as service:
        ids = []
        for _ in range(3):
            id_ = await store_client.xadd("robots:{changes}", {"change": "{}"})
            assert isinstance(id_, bytes)
            ids.append(id_.decode())
        await store_client.xtrim("robots:{changes}", maxlen=1, approximate=False)
        response = await service.client.get("/v1/changes", params={"after": ids[0]})
        assert (response.status_code, slug(response)) == (410, "changes-removed")
        assert ids[2] in response.json()["detail"]


async def test_a_foreign_id_is_answered(store_url: str, store_client: Redis) -> None:
    id_ = "18446744073709551615-1"
    await store_client.xadd("robots:{changes}", {"change": change_text(1)}, id=id_)
    async with running(store_url) as service:
        [change] = await listed(service)
        assert (change["id"], change["at"]) == (id_, "9999-12-31T23:59:59Z")


async def test_a_reader_of_an_emptied_store_is_answered_410(store_url: str, store_client: Redis) -> None:
    async with running(store_url) as service:
        [id_] = await add_changes(store_client, 1)
        await store_client.flushall()
        for query in ({"after": id_}, {"after": id_, "wait": "60"}):
            response = await service.client.get("/v1/changes", params=query)
            assert (response.status_code, slug(response)) == (410, "changes-removed")
            assert "no changes now" in response.json()["detail"]
        for after in ("0", "0-0", "2020-01-01T00:00:00Z"):
            assert await listed(service, after=after) == []
        [later] = await add_changes(store_client, 1)
        assert (await service.client.get("/v1/changes", params={"after": id_})).status_code == 410
        assert [change["id"] for change in await listed(service)] == [later]


async def test_a_change_that_an_emptied_store_did_not_see_is_listed_once(store_url: str, store_client: Redis) -> None:
    async with serve(text(200, OLD), text(200, NEW)) as origin:
        async with running(store_url) as one, running(store_url) as two, running(store_url) as three:
            for service in (one, two):
                await service.allowed(f"{origin.url}/old")
            await store_client.flushall()
            for service in (one, two, three):
                service.now += HOUR
            asked = [await service.allowed(f"{origin.url}/old", wait=30) for service in (three, one, two)]
            assert [answer["verdict"] for answer in asked] == ["allow"] * 3
            assert len(origin.requests) == 2
        async with running(store_url) as service:  # the others have written what they knew
            service.now += HOUR
            [change] = await listed(service)
            versions = (await service.client.get("/v1/robots/history", params={"url": origin.url})).json()["versions"]
            assert [change["from"], change["to"]] == [version["id"] for version in reversed(versions)]


async def test_a_process_that_is_two_changes_behind_adds_none(store_url: str) -> None:
    newest = OLD.replace("old", "newest")
    async with serve(text(200, OLD), text(200, NEW), text(200, newest)) as origin:
        async with running(store_url) as one, running(store_url) as behind:
            await behind.allowed(f"{origin.url}/")
            for _ in range(2):
                one.now += 30 * HOUR
                await one.allowed(f"{origin.url}/", wait=30)
            await until(lambda: listed(one), lambda found: len(found) == 2)
            behind.now = one.now
            assert (await behind.allowed(f"{origin.url}/newest"))["verdict"] == "disallow"
        async with running(store_url) as service:
            first, second = await listed(service)
            assert first["to"] == second["from"]
            assert len(origin.requests) == 3


@pytest.mark.parametrize("after", ["noon", "-1", "", "1-2-3", "99999999999999999999"])
async def test_an_invalid_id_is_refused(store_url: str, after: str) -> None:
    async with running(store_url) as service:
        response = await service.client.get("/v1/changes", params={"after": after})
        assert (response.status_code, slug(response), response.json()["value"]) == (422, "bad-after", after)
