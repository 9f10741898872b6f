"""Overrides: their effect on answers, their routes, and their life without the store."""

from typing import Any

import pytest
from redis.asyncio import Redis

from app.cache.result import CacheResult
from app.cache.robots_cache import RobotsCache
from app.overrides.redis_overrides import OVERRIDES_LIMIT
from tests.api.overriding import LATER, RULES, listed, put
from tests.api.service import counted, running
from tests.faults.until import until
from tests.origins import serve, text
from tests.valkey import process_of, stopped

pytestmark = pytest.mark.usefixtures("store_client")


async def test_deny_closes_an_origin_and_is_named(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        assert (await service.allowed(f"{origin.url}/"))["override"] is None
        await put(service, expires_at=LATER)
        answer = await service.allowed(f"{origin.url}/")
        assert (answer["verdict"], answer["allowed"], answer["reason"]) == ("disallow", False, "overridden")
        assert (answer["rule"], answer["retry_at"]) == (None, None)
        assert answer["override"] == {
            "id": "one",
            "action": "deny",
            "scope": "127.0.0.1",
            "reason": "They asked us to.",
            "expires_at": LATER,
            "shadow": False,
            "source": "api",
        }
        assert answer["robots"]["outcome"] == "successful"
        assert await counted(service, "robots_overrides_applied_total", action="deny") == 1
        service.now += 30 * 60
        assert (await service.allowed(f"{origin.url}/"))["reason"] == "no_match"


async def test_a_record_may_be_sent_as_it_is_read(store_url: str) -> None:
    async with running(store_url) as service:
        record = await put(service, action="robots", robots="Allow: /", agents=["ExampleBot"], expires_at=LATER)
        assert await put(service, status=200, **record) == record
        other = await service.client.put("/v1/overrides/two", json=record)
        assert (other.status_code, other.json()["detail"]) == (
            422,
            "id is 'one', and the path has 'two': leave it out, or send the same.",
        )
        assert await counted(service, "robots_overrides", source="api") == 1
        assert await counted(service, "robots_overrides_changes") == 1
        await service.client.delete("/v1/overrides/one")
        assert await counted(service, "robots_overrides", source="api") == 0
        assert await counted(service, "robots_overrides_changes") == 2


async def test_allow_opens_a_closed_origin_and_keeps_its_pace(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        await service.allowed(f"{origin.url}/")
        await put(service, action="allow", agents=["ExampleBot"])
        answer = await service.allowed(f"{origin.url}/private/")
        assert (answer["verdict"], answer["reason"], answer["rule"]) == ("allow", "overridden", None)
        assert (answer["rate"]["interval"], answer["sitemaps"]) == (2.0, ["https://h.example/s.xml"])
        assert (await service.allowed(f"{origin.url}/private/", "OtherBot"))["reason"] == "rule"


async def test_override_file_replaces_the_origins_file(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        await service.allowed(f"{origin.url}/")
        await put(service, action="robots", robots="User-agent: *\nDisallow: /\nAllow: /private/\nCrawl-delay: 7\n")
        answer = await service.allowed(f"{origin.url}/private/")
        assert (answer["verdict"], answer["reason"]) == ("allow", "overridden")
        rule = {"directive": "allow", "pattern": "/private/", "line": 3, "text": "Allow: /private/"}
        assert answer["rule"] == rule
        assert (answer["rate"]["interval"], answer["sitemaps"]) == (7.0, [])
        answer = await service.allowed(f"{origin.url}/other")
        assert (answer["verdict"], answer["reason"], answer["rule"]["line"]) == ("disallow", "overridden", 2)
        # A new text replaces the old one at once, even if the old one was just read.
        await put(service, status=200, action="robots", robots="")
        assert (await service.allowed(f"{origin.url}/other"))["verdict"] == "allow"


@pytest.mark.parametrize(
    ("delay", "interval", "source", "line"), [(1, 2.0, "crawl-delay", 3), (9, 9.0, "override", None)]
)
async def test_delay_only_slows_down(
    store_url: str, delay: float, interval: float, source: str, line: int | None
) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        await put(service, action="delay", delay=delay, expires_at=LATER)
        answer = await service.allowed(f"{origin.url}/private/")
        assert (answer["verdict"], answer["reason"], answer["rule"]["line"]) == ("disallow", "rule", 2)
        rate = answer["rate"]
        assert (rate["interval"], rate["source"], rate["line"]) == (interval, source, line)
        assert rate["valid_until"] == (LATER if source == "override" else None)
        assert answer["override"]["action"] == "delay"


async def test_delay_applies_to_a_file_without_a_rate(store_url: str) -> None:
    async with serve(text(404)) as origin, running(store_url) as service:
        await put(service, action="delay", delay=4)
        answer = await service.allowed(f"{origin.url}/x")
        assert (answer["reason"], answer["rate"]["interval"], answer["rate"]["source"]) == (
            "unavailable",
            4.0,
            "override",
        )


@pytest.mark.parametrize("action", ["allow", "deny", "robots"])
async def test_overridden_decision_waits_for_no_fetch(store_url: str, action: str) -> None:
    async def stall(exchange: Any) -> None:
        await exchange.stall()

    async with serve(stall) as origin, running(store_url, fetch_timeout=60) as service:
        await put(service, action=action, robots="User-agent: *\nDisallow: /x\n" if action == "robots" else None)
        answer = await service.allowed(f"{origin.url}/x", wait=60)
        assert (answer["verdict"], answer["reason"]) == ("allow" if action == "allow" else "disallow", "overridden")
        assert answer["robots"]["source"] == "none"
        answer = await service.allowed(f"{origin.url}/robots.txt", wait=60)
        assert (answer["verdict"], answer["reason"], answer["retry_at"]) == ("allow", "implicit", None)


async def test_override_decides_for_an_unreachable_origin(store_url: str) -> None:
    async with serve(text(503)) as origin, running(store_url) as service:
        assert (await service.allowed(f"{origin.url}/"))["verdict"] == "defer"
        await put(service, action="allow")
        answer = await service.allowed(f"{origin.url}/")
        assert (answer["verdict"], answer["reason"], answer["retry_at"]) == ("allow", "overridden", None)


@pytest.mark.parametrize("action", ["allow", "deny", "robots"])
async def test_a_blocked_address_stays_blocked(store_url: str, action: str) -> None:
    async with running(store_url) as service:
        assert (await service.allowed("http://10.0.0.1/x"))["reason"] == "blocked_address"
        await put(service, scope="10.0.0.1", action=action, robots="" if action == "robots" else None)
        answer = await service.allowed("http://10.0.0.1/x")
        assert (answer["verdict"], answer["reason"], answer["override"]) == ("disallow", "blocked_address", None)


async def test_shadow_override_is_counted_and_changes_nothing(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        await put(service, shadow=True)
        await put(service, "slow", action="delay", delay=1, shadow=True)
        before = await service.allowed(f"{origin.url}/")
        assert (before["verdict"], before["reason"], before["override"]) == ("allow", "no_match", None)
        assert (await service.allowed(f"{origin.url}/private/"))["reason"] == "rule"
        deny, slow = {"action": "deny"}, {"action": "delay"}
        assert await counted(service, "robots_overrides_shadowed_total", **deny, differs="true") == 1
        assert await counted(service, "robots_overrides_shadowed_total", **deny, differs="false") == 1
        assert await counted(service, "robots_overrides_shadowed_total", **slow, differs="false") == 2
        assert await counted(service, "robots_overrides_applied_total", action="deny") == 0
        explained = await service.allowed(f"{origin.url}/", explain="true")
        assert (explained["reason"], explained["override"]["id"], explained["override"]["shadow"]) == (
            "no_match",
            "one",
            True,
        )


async def test_a_shadow_is_not_counted_where_an_override_in_force_precedes_it(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        await put(service, "one")
        await put(service, "two", action="allow", shadow=True)
        await put(service, "slow", action="delay", delay=9)
        await put(service, "slower", action="delay", delay=8, shadow=True)
        assert (await service.allowed(f"{origin.url}/"))["override"]["id"] == "one"
        for action in ("deny", "allow", "delay"):
            for differs in ("true", "false"):
                labels = {"action": action, "differs": differs}
                assert await counted(service, "robots_overrides_shadowed_total", **labels) == 0


@pytest.mark.parametrize(("action", "verdict"), [("deny", "disallow"), ("allow", "allow")])
async def test_an_override_that_decides_waits_for_no_fetch(
    store_url: str, monkeypatch: pytest.MonkeyPatch, action: str, verdict: str
) -> None:
    waits: list[float] = []
    get = RobotsCache.get

    async def note(self: RobotsCache, *arguments: Any, wait: float, **options: Any) -> CacheResult:
        waits.append(wait)
        return await get(self, *arguments, wait=0.0, **options)

    monkeypatch.setattr(RobotsCache, "get", note)
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        await put(service, action=action)
        answer = await service.allowed(f"{origin.url}/private/", wait=60)
        assert (answer["verdict"], answer["reason"], answer["robots"]["outcome"]) == (verdict, "overridden", None)
    assert waits == [0.0]


async def test_other_and_new_processes_apply_an_override(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as one, running(store_url) as other:
        url = f"{origin.url}/"
        assert (await other.allowed(url))["verdict"] == "allow"
        await put(one)
        await until(lambda: other.allowed(url), lambda answer: answer["reason"] == "overridden")
        async with running(store_url) as third:
            assert (await third.allowed(url))["reason"] == "overridden"
        assert (await other.client.delete("/v1/overrides/one")).status_code == 204
        assert (await other.allowed(url))["reason"] == "no_match"
        assert await listed(one) == []


async def test_overrides_stay_in_force_without_the_store(store_url: str, store_client: Redis) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url, store_timeout=1.0) as service:
        await put(service)
        with stopped(await process_of(store_client)):
            assert (await service.allowed(f"{origin.url}/"))["reason"] == "overridden"
            response = await service.client.get("/v1/overrides")
            assert (response.json()["degraded"], len(response.json()["overrides"])) == (True, 1)
            await put(service, "two", status=503)
            assert (await service.client.delete("/v1/overrides/one")).status_code == 503
            assert (await service.client.get("/v1/overrides/audit")).status_code == 503
            assert (await service.allowed(f"{origin.url}/"))["reason"] == "overridden"


async def test_a_process_started_without_a_store_reports_unknown_overrides(tmp_path: Any) -> None:
    async with running(f"unix://{tmp_path}/none") as service:
        body = (await service.client.get("/readyz")).json()
        assert (body["store"], body["overrides"]) == ("degraded", "unknown")
        assert "robots_overrides_loaded 0.0" in (await service.client.get("/metrics")).text.splitlines()


async def test_process_with_loaded_overrides_reports_them(store_url: str) -> None:
    async with running(store_url) as service:
        assert "robots_overrides_loaded 1.0" in (await service.client.get("/metrics")).text.splitlines()


async def test_put_is_idempotent(store_url: str) -> None:
    async with running(store_url) as service:
        first = await put(service)
        service.now += 60
        assert await put(service, status=200) == first
        changes = (await service.client.get("/v1/overrides/audit")).json()["changes"]
        assert len(changes) == 1


async def test_override_is_returned_in_normal_form(store_url: str) -> None:
    async with running(store_url) as service:
        stored = await put(
            service,
            scope="HTTPS://Www.Example.com:443/",
            agents=["ExampleBot/1.0"],
            expires_at="2026-12-01T01:00:00+01:00",
        )
        assert stored == {
            "id": "one",
            "scope": "https://www.example.com",
            "action": "deny",
            "reason": "They asked us to.",
            "agents": ["examplebot"],
            "robots": None,
            "delay": None,
            "budget": None,
            "expires_at": "2026-12-01T00:00:00Z",
            "shadow": False,
            "expired": False,
            "updated_at": "2026-11-21T18:30:00Z",
            "updated_by": "operator",
            "source": "api",
        }
        assert (await service.client.get("/v1/overrides/one")).json() == stored
        assert (await service.client.get("/v1/overrides/other")).status_code == 404
        assert (await service.client.delete("/v1/overrides/other")).status_code == 404


async def test_pages_list_every_override_once(store_url: str) -> None:
    async with running(store_url) as service:
        ids = [f"o-{number}" for number in range(7)]
        for id_ in ids:
            await put(service, id_, scope="a.example" if id_ in ids[:5] else "b.example")
        found: list[str] = []
        for _ in range(4):
            query = {"limit": "2", **({"cursor": found[-1]} if found else {})}
            page = (await service.client.get("/v1/overrides", params=query)).json()
            found += [one["id"] for one in page["overrides"]]
            assert page["next"] == (found[-1] if len(found) < 7 else None)
        assert found == ids
        assert await listed(service, url="http://www.a.example/x", limit=3) == ids[:3]
        assert await listed(service, url="http://www.a.example/x", limit=3, cursor=ids[2]) == ids[3:5]


async def test_page_ends_at_its_byte_limit(store_url: str) -> None:
    async with running(store_url) as service:
        for number in range(3):
            await put(service, f"o-{number}", action="robots", robots="#" * 500_000)
        page = (await service.client.get("/v1/overrides")).json()
        assert ([one["id"] for one in page["overrides"]], page["next"]) == (["o-0", "o-1"], "o-1")


async def test_audit_lists_changes_newest_first(store_url: str) -> None:
    async with running(store_url) as service:
        await put(service, action="robots", robots="#")
        service.now += 60
        await put(service, status=200)
        await service.client.delete("/v1/overrides/one")
        answer = (await service.client.get("/v1/overrides/audit")).json()
        assert [(one["change"], one["by"], one["at"]) for one in answer["changes"]] == [
            ("delete", "operator", "2026-11-21T18:31:00Z"),
            ("put", "operator", "2026-11-21T18:31:00Z"),
            ("put", "operator", "2026-11-21T18:30:00Z"),
        ]
        deleted, changed, made = answer["changes"]
        assert (made["before"], made["after"]["action"]) == (None, "robots")
        assert made["after"]["robots"].startswith("sha256:")
        assert (changed["before"], changed["after"]["action"]) == (made["after"], "deny")
        assert (deleted["before"], deleted["after"]) == (changed["after"], None)
        page = (await service.client.get("/v1/overrides/audit", params={"limit": 2})).json()
        assert (len(page["changes"]), page["next"]) == (2, 2)
        page = (await service.client.get("/v1/overrides/audit", params={"limit": 2, "cursor": 2})).json()
        assert (page["changes"], page["next"]) == ([made], None)


@pytest.mark.parametrize(
    ("members", "slug", "parameter"),
    [
        ({"scope": "*.example.com"}, "bad-override", "scope"),
        ({"action": "open"}, "bad-request", "action"),
        ({"action": "delay"}, "bad-override", "delay"),
        ({"action": "budget"}, "bad-override", "budget"),
        ({"action": "budget", "budget": 5, "shadow": True}, "bad-override", "shadow"),
        ({"reason": ""}, "bad-override", "reason"),
        ({"expires_at": "soon"}, "bad-expires_at", "expires_at"),
        ({"expires_at": "2026-11-21T18:30:00Z"}, "bad-expires_at", "expires_at"),
        ({"owner": "me"}, "bad-request", "owner"),
        ({"shadow": "maybe"}, "bad-request", "shadow"),
    ],
)
async def test_invalid_override_is_refused_and_named(
    store_url: str, members: dict[str, Any], slug: str, parameter: str
) -> None:
    async with running(store_url) as service:
        problem = await put(service, status=422, **members)
        assert (problem["type"].rpartition(":")[2], problem["parameter"]) == (slug, parameter)
        assert (await put(service, "audit", status=422))["parameter"] == "id"


async def test_number_of_overrides_is_bounded(store_url: str, store_client: Redis) -> None:
    await store_client.hset(
        "robots:{overrides}:rows", mapping={f"o-{number}": "x" for number in range(OVERRIDES_LIMIT)}
    )
    async with running(store_url) as service:
        problem = await put(service, status=409)
        assert problem["type"].endswith(":too-many-overrides")
        assert str(OVERRIDES_LIMIT) in problem["detail"]


async def test_total_size_of_overrides_is_bounded(store_url: str) -> None:
    async with running(store_url) as service:
        for number in range(9):
            status = 201 if number < 8 else 409
            await put(service, f"o-{number}", status=status, action="robots", robots="#" * 511_000)
        assert (await service.client.delete("/v1/overrides/o-0")).status_code == 204
        await put(service, "o-8", action="robots", robots="#" * 511_000)


async def test_overrides_apply_to_each_item_of_a_batch(store_url: str) -> None:
    async with serve(text(200, RULES)) as known, serve(text(503)) as down, running(store_url) as service:
        await service.allowed(f"{known.url}/")
        await put(service, scope=down.url, action="allow")
        await put(service, "two", scope=known.url, agents=["ExampleBot"])
        asked = [(known, "ExampleBot"), (known, "OtherBot"), (down, "ExampleBot")]
        items = [{"url": f"{origin.url}/x", "agent": agent} for origin, agent in asked]
        response = await service.client.post("/v1/allowed", json={"items": items})
        answers = response.json()["answers"]
        assert [(answer["verdict"], answer["reason"]) for answer in answers] == [
            ("disallow", "overridden"),
            ("allow", "no_match"),
            ("allow", "overridden"),
        ]
        assert [answer["override"] and answer["override"]["id"] for answer in answers] == ["two", None, "one"]
