"""Readiness, its reasons, and metrics."""

import re
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
from redis.asyncio import Redis

from app.main.service import create
from app.main.settings import Settings
from app.store.embedded import serve as serve_valkey
from tests.api.service import counted, running
from tests.engines import QUOTED, free_port, node
from tests.exposition import samples
from tests.faults.until import until
from tests.origins import serve, text
from tests.valkey import process_of, stopped


async def test_decisions_are_counted_by_verdict_and_reason(store_url: str, store_client: Redis) -> None:
    async with serve(text(200, "User-agent: *\nDisallow: /a\n")) as origin, running(store_url) as service:
        for path in ("/a", "/b", "/a"):
            await service.allowed(origin.url + path)
        disallowed = {"verdict": "disallow", "reason": "rule", "dialect": "rfc9309"}
        assert await counted(service, "robots_decisions_total", **disallowed, source="fetched") == 1
        assert await counted(service, "robots_decisions_total", **disallowed, source="memory") == 1
        assert await counted(service, "robots_decision_seconds_count", source="memory") == 2
        assert await counted(service, "robots_requests_total", route="/v1/allowed", method="GET", status="2xx") == 3


async def test_fetches_are_counted_by_outcome(store_url: str, store_client: Redis) -> None:
    async with serve(text(200)) as found, serve(text(503)) as broken, running(store_url) as service:
        for origin in (found, broken):
            await service.allowed(f"{origin.url}/")
        successful = {"outcome": "successful", "cause": "", "status": "2xx"}
        unreachable = {"outcome": "unreachable", "cause": "server_error", "status": "5xx"}
        assert await counted(service, "robots_fetches_total", **successful) == 1
        assert await counted(service, "robots_fetches_total", **unreachable) == 1
        assert await counted(service, "robots_fetch_seconds_count", outcome="unreachable") == 1


async def test_memory_use_is_reported(store_url: str, store_client: Redis) -> None:
    async with serve(text(200, "User-agent: *\nDisallow: /a\n")) as origin, running(store_url) as service:
        assert await counted(service, "robots_memory_entries", cache="files") == 0
        await service.allowed(f"{origin.url}/")
        for cache in ("files", "snapshots"):
            assert await counted(service, "robots_memory_entries", cache=cache) == 1
            assert await counted(service, "robots_memory_bytes", cache=cache) > 400


async def test_store_calls_are_timed_and_connections_counted(store_url: str, store_client: Redis) -> None:
    async with serve(text(200)) as origin, running(store_url) as service:
        before = await counted(service, "robots_store_seconds_count")
        await service.allowed(f"{origin.url}/")
        assert await counted(service, "robots_store_seconds_count") > before
        assert 1 <= await counted(service, "robots_store_connections") <= 8


async def test_no_label_holds_text_of_callers_or_origins(store_url: str, store_client: Redis) -> None:
    async with serve(text(200)) as origin, running(store_url) as service:
        await service.allowed(f"{origin.url}/secret-page", agent="SecretBot")
        await service.client.get("/secret-path")
        await service.client.request("SECRET", "/healthz")
        exposition = (await service.client.get("/metrics")).text
        assert "secret" not in exposition.lower()
        assert str(origin.port) not in exposition
        assert await counted(service, "robots_requests_total", route="", method="GET", status="4xx") == 1
        assert await counted(service, "robots_requests_total", route="/healthz", method="other", status="4xx") == 1


async def test_hanging_store_and_its_recovery_are_reported() -> None:
    with serve_valkey(None) as url:
        client = Redis.from_url(url)
        async with serve(text(200)) as origin, running(url, store_timeout=1.0) as service:
            assert (await service.client.get("/readyz")).json() == {"status": "ready", "store": "ok"}
            assert await counted(service, "robots_store_degraded") == 0
            with stopped(await process_of(client)):
                response = await service.client.get("/readyz")
                assert response.status_code == 200
                body = response.json()
                assert (body["status"], body["store"]) == ("ready", "degraded")
                assert datetime.fromisoformat(body["since"]).timestamp() <= service.now
                assert re.match(r"the store at /\S+ did not answer within 1 s; ", body["detail"])
                assert (await service.allowed(f"{origin.url}/"))["verdict"] == "allow"
                assert await counted(service, "robots_store_degraded") == 1
                assert await counted(service, "robots_store_failures_total", kind="unanswered") >= 1

            async def store_now() -> object:
                return (await service.client.get("/readyz")).json()

            await until(store_now, lambda answer: answer == {"status": "ready", "store": "ok"})
            assert await counted(service, "robots_store_degraded") == 0
        await client.aclose()


async def test_full_store_is_reported_with_its_error() -> None:
    with serve_valkey(None) as url:
        client = Redis.from_url(url)
        async with running(url) as service:
            await client.config_set("maxmemory", "1")
            body = (await service.client.get("/readyz")).json()
            assert body["store"] == "degraded"
            assert re.match(r"the store at /\S+ refused: ", body["detail"])
            assert await counted(service, "robots_store_failures_total", kind="refused") == 1
            await client.config_set("maxmemory", "0")
            assert (await service.client.get("/readyz")).json() == {"status": "ready", "store": "ok"}
        await client.aclose()


async def test_overrides_lost_by_the_store_are_reported(store_url: str, store_client: Redis) -> None:
    async with running(store_url) as service:
        deny = {"scope": "example.com", "action": "deny", "reason": "because"}
        assert (await service.client.put("/v1/overrides/mine", json=deny)).status_code == 201
    await store_client.delete("robots:{overrides}:rows")
    async with running(store_url) as service:
        assert (await service.client.get("/readyz")).json() == {"status": "ready", "store": "ok", "overrides": "lost"}
        assert await counted(service, "robots_overrides_loaded") == 0
        assert (await service.client.put("/v1/overrides/mine", json=deny)).status_code == 201
        assert (await service.client.get("/readyz")).json() == {"status": "ready", "store": "ok"}


async def test_only_a_running_service_is_ready(tmp_path: Path) -> None:
    app = create(Settings(redis_url=f"unix://{tmp_path}/none"))
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        async with app.router.lifespan_context(app):
            assert (await client.get("/readyz")).status_code == 200
            app.state.services.stopping.set()  # as a connection does when the server stops
            response = await client.get("/readyz")
        assert (response.status_code, response.headers["retry-after"]) == (503, "1")
        assert response.json()["detail"] == "The service is stopping."


async def test_readiness_may_wait_for_the_store_once() -> None:
    port = free_port()
    async with running(f"redis://:{QUOTED}@127.0.0.1:{port}", require_store_at_start=True) as service:

        async def readiness() -> tuple[int, dict[str, Any]]:
            response = await service.client.get("/readyz")
            return response.status_code, response.json()

        status, problem = await readiness()
        assert (status, problem["type"].rpartition(":")[2]) == (503, "not-ready")
        assert (
            "overrides have not been read from the store since the start (REQUIRE_STORE_AT_START)" in problem["detail"]
        )
        assert f"127.0.0.1:{port}" in problem["detail"]
        assert (await service.client.get("/healthz")).status_code == 200
        with node(port=port):
            assert await until(readiness, lambda answer: answer[0] == 200) == (200, {"status": "ready", "store": "ok"})
        status, later = await until(readiness, lambda answer: answer[1].get("store") != "ok")
        assert (status, later["store"]) == (200, "degraded")


async def test_by_default_readiness_does_not_wait_for_the_store() -> None:
    async with running(f"redis://127.0.0.1:{free_port()}") as service:
        response = await service.client.get("/readyz")
        assert (response.status_code, response.json()["overrides"]) == (200, "unknown")


async def test_rejected_requests_are_counted(tmp_path: Path) -> None:
    app = create(Settings(redis_url=f"unix://{tmp_path}/none"))
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        async with app.router.lifespan_context(app):
            pass
        # A stopped service starts no more fetches.
        response = await client.get("/v1/allowed", params={"url": "http://192.0.2.1/", "agent": "a"})
        assert response.status_code == 503
        found = samples((await client.get("/metrics")).text)
        assert found["robots_decisions_overloaded_total", frozenset()] == 1
        assert found["robots_fetches_overloaded_total", frozenset({("limit", "queue")})] == 1
