"""The fleet orders snapshots by the start of their fetch, whichever process was late, stopped or isolated.

Pods are separate applications on one real Valkey, with separate clocks; all of them use the server's time.
"""

import asyncio
import signal
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import httpx
from redis.asyncio import Redis

from app.cache.codec import decode
from app.cache.fetch_health import FAILING_AFTER
from app.cache.freshness import Snapshot
from tests.api.service import Service, counted
from tests.engines import QUOTED, clustered, free_port
from tests.faults.pods import pod
from tests.faults.process import process
from tests.faults.proxy import proxy
from tests.faults.until import until
from tests.origins import Exchange, Gate, LoopbackOrigin, serve, text

OPEN = text(200, "User-agent: *\nAllow: /\n")
CLOSED = text(200, "User-agent: *\nDisallow: /\n")
PATIENT = "tests.patient_service"


async def verdict(service: Service, url: str) -> str:
    return str((await service.allowed(url))["verdict"])


async def refresh(service: Service, url: str) -> None:
    response = await service.client.post("/v1/robots/refresh", params={"url": url})
    assert response.status_code == 200, response.text


async def stored(store_url: str, origin: LoopbackOrigin) -> Snapshot | None:
    """The origin's snapshot in the store."""
    client = Redis.from_url(store_url)
    data = await client.get(f"robots:{{{origin.url}}}")
    await client.aclose()
    return decode(data) if isinstance(data, bytes) else None


async def test_a_slow_fetch_does_not_undo_a_refresh_that_began_after_it(store_url: str, store_client: Redis) -> None:
    slow = Gate(OPEN)
    async with serve(slow, CLOSED) as origin, pod(store_url) as one, pod(store_url) as other:
        asking = asyncio.create_task(verdict(one, origin.url))
        await origin.wait_for_requests(1)
        await refresh(other, origin.url)
        slow.open.set()
        assert await asking == "disallow"
        assert await verdict(one, origin.url) == await verdict(other, origin.url) == "disallow"
        async with pod(store_url) as third:
            assert await verdict(third, origin.url) == "disallow"
        assert len(origin.requests) == 2


async def test_fetch_begun_before_a_purge_is_repeated(store_url: str, store_client: Redis) -> None:
    slow = Gate(OPEN)
    async with serve(slow, CLOSED) as origin, pod(store_url) as one, pod(store_url) as other:
        asking = asyncio.create_task(verdict(one, origin.url))
        await origin.wait_for_requests(1)
        assert (await other.client.delete("/v1/robots", params={"url": origin.url})).status_code == 204
        slow.open.set()
        assert await asking == "disallow"
        assert await verdict(other, origin.url) == "disallow"
        assert len(origin.requests) == 2


async def test_clock_ahead_does_not_restore_an_older_file(store_url: str, store_client: Redis) -> None:
    async with serve(OPEN, CLOSED) as origin, pod(store_url, ahead=60) as ahead, pod(store_url) as right:
        assert await verdict(ahead, origin.url) == "allow"
        await refresh(right, origin.url)
        await until(lambda: verdict(ahead, origin.url), lambda answer: answer == "disallow")
        assert await verdict(right, origin.url) == "disallow"
        async with pod(store_url) as third:
            assert await verdict(third, origin.url) == "disallow"
        assert len(origin.requests) == 2


async def ask(client: httpx.AsyncClient, url: str, origin: LoopbackOrigin, **more: str) -> str:
    response = await client.get(f"{url}/v1/allowed", params={"url": origin.url, "agent": "ExampleBot", **more})
    return str(response.json()["verdict"])


async def test_a_resumed_holder_does_not_overwrite_a_file_with_its_timeout(store_url: str, store_client: Redis) -> None:
    async with serve(Exchange.stall, CLOSED) as origin, httpx.AsyncClient(timeout=60) as client:
        with (
            process(module=PATIENT, REDIS_URL=store_url, FETCH_TIMEOUT="3") as holder,
            process(module=PATIENT, REDIS_URL=store_url, FETCH_TIMEOUT="30") as other,
        ):
            holder.wait_ready()
            other.wait_ready()
            asking = asyncio.create_task(ask(client, holder.url, origin))
            await origin.wait_for_requests(1)
            holder.send_signal(signal.SIGSTOP)
            # Longer than the holder may wait for the origin, so it will time out first.
            await asyncio.sleep(4)
            assert await ask(client, other.url, origin) == "disallow"
            holder.send_signal(signal.SIGCONT)
            assert await asking == "disallow"
            assert await ask(client, holder.url, origin) == await ask(client, other.url, origin) == "disallow"
        kept = await stored(store_url, origin)
        assert kept is not None
        assert kept.failing is None
        assert len(origin.requests) == 2


async def test_lease_of_a_killed_holder_ends_while_callers_wait(store_url: str, store_client: Redis) -> None:
    """The fetch may take longer than callers wait: they depend on the end of the lease, not on its expiry."""
    async with serve(Exchange.stall, CLOSED) as origin, httpx.AsyncClient(timeout=60) as client:
        settings = {"REDIS_URL": store_url, "FETCH_TIMEOUT": "60"}
        with process(module=PATIENT, **settings) as holder, process(module=PATIENT, **settings) as other:
            holder.wait_ready()
            other.wait_ready()
            lost = asyncio.create_task(ask(client, holder.url, origin))
            await origin.wait_for_requests(1)
            holder.kill()
            await asyncio.wait([lost])
            assert isinstance(lost.exception(), httpx.TransportError)
            assert await ask(client, other.url, origin, wait="30") == "disallow"
            assert len(origin.requests) == 2


async def no_way_out(_name: str) -> Sequence[object]:
    raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


HOSTS = {f"host{number}.example": ["127.0.0.1"] for number in range(FAILING_AFTER + 2)}


async def test_isolated_pod_reports_itself_and_affects_no_other(store_url: str, store_client: Redis) -> None:
    async with (
        serve(CLOSED) as origin,
        pod(store_url, resolver=no_way_out) as broken,  # type: ignore[arg-type]
        pod(store_url, HOSTS) as healthy,
    ):
        urls = [origin.named(host).key for host in HOSTS]
        assert [await verdict(broken, url) for url in urls] == ["defer"] * len(urls)
        assert (await broken.client.get("/readyz")).json() == {"status": "ready", "store": "ok"}
        assert [await verdict(healthy, url) for url in urls] == ["disallow"] * len(urls)
        assert len(origin.requests) == len(urls)

        # The event of the healthy pod makes the isolated one read the file that it could not fetch.
        async def ready() -> object:
            return (await broken.client.get("/readyz")).json()

        await until(ready, lambda answer: answer == {"status": "ready", "store": "ok", "fetches": "failing"})
        for url in urls:
            await until(lambda url=url: verdict(broken, url), lambda answer: answer == "disallow")  # type: ignore[misc]
        assert await counted(broken, "robots_fetches_failing") == 1
        assert await counted(broken, "robots_fetches_contradicted_total") == len(urls)
        assert await counted(healthy, "robots_fetches_failing") == 0
        assert (await healthy.client.get("/readyz")).json() == {"status": "ready", "store": "ok"}


async def test_failure_confirmed_by_two_instances_is_shared(store_url: str, store_client: Redis) -> None:
    dead = f"http://127.0.0.1:{free_port()}/"
    with ExitStack() as stack:
        three = [stack.enter_context(process(module=PATIENT, REDIS_URL=store_url)) for _ in range(3)]
        async with httpx.AsyncClient(timeout=60) as client:
            sources = []
            for one in three:
                answer = await client.get(f"{one.wait_ready()}/v1/allowed", params={"url": dead, "agent": "ExampleBot"})
                assert answer.json()["verdict"] == "defer"
                sources.append(answer.json()["robots"]["source"])
    assert sources == ["fetched", "fetched", "store"]


async def test_a_refresh_in_an_outage_reaches_the_fleet_afterwards(
    store_url: str, store_client: Redis, tmp_path: Path
) -> None:
    async with (
        serve(OPEN, CLOSED) as origin,
        proxy(store_url, tmp_path) as between,
        pod(between.url) as cut_off,
        pod(store_url) as other,
    ):
        assert await verdict(cut_off, origin.url) == await verdict(other, origin.url) == "allow"
        between.refusing = True
        between.cut()
        await refresh(cut_off, origin.url)
        assert await verdict(other, origin.url) == "allow"
        between.refusing = False
        # The isolated pod gets no questions.
        await until(lambda: verdict(other, origin.url), lambda answer: answer == "disallow")
        assert len(origin.requests) == 2


async def test_a_purge_in_an_outage_reaches_the_fleet_afterwards(
    store_url: str, store_client: Redis, tmp_path: Path
) -> None:
    async with (
        serve(OPEN, CLOSED) as origin,
        proxy(store_url, tmp_path) as between,
        pod(between.url) as cut_off,
        pod(store_url) as other,
    ):
        assert await verdict(cut_off, origin.url) == await verdict(other, origin.url) == "allow"
        between.refusing = True
        between.cut()
        assert (await cut_off.client.delete("/v1/robots", params={"url": origin.url})).status_code == 503
        between.refusing = False
        await until(lambda: verdict(other, origin.url), lambda answer: answer == "disallow")
        assert len(origin.requests) == 2


async def test_a_cluster_orders_as_one_server_does() -> None:
    with clustered(replicas=0) as fleet:
        url = f"redis+cluster://:{QUOTED}@{fleet.hosts}"
        slow, late = Gate(OPEN), Gate(OPEN)
        async with serve(slow, CLOSED) as refreshed, serve(late, CLOSED) as purged, pod(url) as one, pod(url) as other:
            asking = [asyncio.create_task(verdict(one, origin.url)) for origin in (refreshed, purged)]
            await refreshed.wait_for_requests(1)
            await purged.wait_for_requests(1)
            await refresh(other, refreshed.url)
            assert (await other.client.delete("/v1/robots", params={"url": purged.url})).status_code == 204
            slow.open.set()
            late.open.set()
            assert await asyncio.gather(*asking) == ["disallow"] * 2
            assert await verdict(one, "http://dead.example/") == await verdict(other, "http://dead.example/") == "defer"


async def test_stored_snapshot_has_the_time_of_the_server(store_url: str, store_client: Redis) -> None:
    async with serve(CLOSED) as origin, pod(store_url, ahead=-7200) as behind:
        before = time.time() - 1
        assert await verdict(behind, origin.url) == "disallow"
        kept = await stored(store_url, origin)
        assert kept is not None
        assert before < kept.fetched_at < time.time() + 1
