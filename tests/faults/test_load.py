"""Hundreds of callers at once: stalled origins delay no other caller, memory is bounded, and excess gets a 503."""

import asyncio
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address

from redis.asyncio import Redis

from tests.api.asgi_client import Answer, request
from tests.api.service import Service, running
from tests.faults.loopback import Visit, web
from tests.faults.until import until_so
from tests.origins import text

HEALTHY, STALLING, CALLERS = 150, 50, 2
"""Origins of each kind, and callers of each origin."""

FOREVER = 100.0
"""Seconds within which no fetch times out during a test."""

FILE = "User-agent: *\nDisallow: /private/\n" + "# padding, so that memory has something to hold\n" * 200
MEMORY = 2 * 1024 * 1024


class Gate:
    """Origins that accept, read the request, and stay silent until the gate opens."""

    def __init__(self) -> None:
        self.open = asyncio.Event()

    async def __call__(self, visit: Visit) -> None:
        await self.open.wait()
        await visit.send(text(200, FILE))


def ask(service: Service, origin: str) -> asyncio.Task[Answer]:
    query = f"url={origin}/private/page&agent=ExampleBot&wait=60".encode()
    return asyncio.create_task(request(service.app, "GET", "/v1/allowed", query))


def verdicts(answers: Sequence[Answer]) -> set[tuple[int, str]]:
    return {(answer.status, answer.json.get("verdict", "")) for answer in answers}


async def memory(service: Service) -> float:
    lines = (await service.client.get("/metrics")).text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("robots_memory_bytes{"))


async def test_stalled_origins_do_not_delay_others(store_url: str, store_client: Redis) -> None:
    gate = Gate()
    async with (
        web(text(200, FILE)) as origins,
        running(store_url, fetch_timeout=FOREVER, memory_bytes=MEMORY) as service,
    ):
        stalling = [origins.new(gate) for _ in range(STALLING)]
        healthy = [origins.new() for _ in range(HEALTHY)]
        stalled = [ask(service, origin) for origin in stalling for _ in range(CALLERS)]
        answered = [ask(service, origin) for origin in healthy for _ in range(CALLERS)]
        # The stalled fetches last until here, so all others were answered meanwhile.
        assert verdicts(await asyncio.gather(*answered)) == {(200, "disallow")}
        assert not any(task.done() for task in stalled)
        assert sum(origins.requests.values()) == HEALTHY + STALLING
        assert await memory(service) <= MEMORY
        gate.open.set()
        assert verdicts(await asyncio.gather(*stalled)) == {(200, "disallow")}
        assert sum(origins.requests.values()) == HEALTHY + STALLING


async def test_more_stalled_origins_than_fetches_do_not_delay_others(store_url: str, store_client: Redis) -> None:
    gate = Gate()
    # After a fifth of this, stalled fetches leave their slots to others; none times out meanwhile.
    async with web(text(200, FILE)) as origins, running(store_url, fetch_timeout=50.0) as service:
        stalled = [ask(service, origins.new(gate)) for _ in range(300)]
        await until_so(lambda: origins.open_now == 300)
        answered = [ask(service, origins.new()) for _ in range(100)]
        assert verdicts(await asyncio.gather(*answered)) == {(200, "disallow")}
        gate.open.set()
        assert verdicts(await asyncio.gather(*stalled)) == {(200, "disallow")}


class Silence:
    """Name servers that are silent until the end; then every number has its own address."""

    def __init__(self) -> None:
        self.over = asyncio.Event()

    async def __call__(self, name: str) -> Sequence[IPv4Address | IPv6Address]:
        await self.over.wait()
        return [IPv4Address("127.3.0.1") + int(name.partition(".")[0])]


async def test_requests_beyond_the_fetch_queue_get_503_and_succeed_on_retry(
    store_url: str, store_client: Redis
) -> None:
    names = Silence()
    async with web(text(200, FILE)) as origins, running(store_url, fetch_timeout=FOREVER, resolver=names) as service:
        # As many as run at once, as many as fit the queue, and some more.
        urls = [f"http://{number}.example:{origins.port}" for number in range(256 + 1024 + 20)]
        calls = {url: ask(service, url) for url in urls}
        await until_so(lambda: sum(task.done() for task in calls.values()) == 20)
        refused = [url for url, task in calls.items() if task.done()]
        for url in refused:
            answer = calls.pop(url).result()
            assert answer.status == 503
            assert answer.json["type"].endswith(":busy")
            assert int(answer.headers[b"retry-after"]) == FOREVER
        assert (await service.client.get("/healthz")).status_code == 200
        names.over.set()
        answers = await asyncio.gather(*calls.values())
        # On a slow machine the last fetches may still run after the longest wait.
        late = [url for url, answer in zip(calls, answers, strict=True) if answer.json["verdict"] == "defer"]
        answers = [answer for answer in answers if answer.json["verdict"] != "defer"]
        assert verdicts([*answers, *[await ask(service, url) for url in (*late, *refused)]]) == {(200, "disallow")}
