"""A process with more work than it has time for answers what is quick, and refuses the rest."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from types import SimpleNamespace

import httpx
import pytest

from app.loop import work_turns
from app.loop.work_turns import LATE, WorkTurns
from tests.api.raw_client import serve_app
from tests.api.service import Service, running
from tests.doubles import Clock
from tests.exposition import samples
from tests.faults.until import PATIENCE, until_so
from tests.origins import serve, text

CONNECTIONS = 200
RULES = "User-agent: *\nDisallow: /private/\n"


class Site:
    """A service behind the production server, one origin that it has in memory, and one that it has not."""

    def __init__(self, service: Service, client: httpx.AsyncClient, hot: str, cold: str) -> None:
        self.turns: WorkTurns = service.app.state.services.turns
        self.client = client
        self.hot = hot
        self.cold = cold

    async def get(self, origin: str) -> httpx.Response:
        """Ask one question."""
        return await self.client.get("/v1/allowed", params={"url": f"{origin}/private/", "agent": "a"})

    def post(self, kind: str) -> asyncio.Task[httpx.Response]:
        """Send a request with long work."""
        item = {"url": f"{self.hot}/private/", "agent": "a"}
        path, content, media_type = {
            "batch": ("/v1/allowed", json.dumps({"items": [item] * 20}), "application/json"),
            "stream": ("/v1/allowed", f"{json.dumps(item)}\n" * 20, "application/x-ndjson"),
            "permits": ("/v1/permits/batch", json.dumps({"items": [item] * 20}), "application/json"),
            "test": (
                "/v1/test",
                json.dumps({"robots": RULES, "urls": [item["url"]], "agents": ["a"]}),
                "application/json",
            ),
        }[kind]
        sending = self.client.post(path, content=content, headers={"Content-Type": media_type})
        return asyncio.create_task(sending)

    async def refused(self) -> float:
        """The requests that were refused because they got no turn."""
        counted = samples((await self.client.get("/metrics")).text)
        return sum(value for (name, _), value in counted.items() if name == "robots_requests_overloaded_total")


@asynccontextmanager
async def site(store_url: str) -> AsyncIterator[Site]:
    limits = httpx.Limits(max_connections=CONNECTIONS + 10)
    async with (
        serve(text(200, RULES)) as hot,
        serve(text(200, RULES)) as cold,
        running(store_url) as service,
        serve_app(service.app) as ((host, port), _),
        httpx.AsyncClient(base_url=f"http://{host}:{port}", limits=limits, timeout=60.0) as client,
    ):
        it = Site(service, client, hot.url, cold.url)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(work_turns, "FIRST_TURN_SECONDS", PATIENCE)
            assert (await it.get(hot.url)).status_code == 200
            yield it


KINDS = ("batch", "stream", "permits", "test")


async def test_quick_answers_do_not_wait_for_long_work(store_url: str) -> None:
    async with site(store_url) as it:
        async with it.turns.turn():
            posted = [it.post(("batch", "permits")[number % 2]) for number in range(CONNECTIONS)]
            await until_so(lambda: len(it.turns._waiting) == CONNECTIONS)
            assert (await it.get(it.hot)).status_code == 200
            assert (await it.client.get("/healthz")).status_code == 200
            assert (await it.client.get("/readyz")).status_code == 200
            assert not any(task.done() for task in posted)
        assert {response.status_code for response in await asyncio.gather(*posted)} == {200}
        assert await it.refused() == 0


async def test_at_most_one_request_with_long_work_is_served_in_a_turn(store_url: str) -> None:
    async with site(store_url) as it:
        async with it.turns.turn():
            posted = [it.post("batch") for _ in range(CONNECTIONS)]
            await until_so(lambda: len(it.turns._waiting) == CONNECTIONS)
        waiting = [len(it.turns._waiting)]
        while waiting[-1]:
            await asyncio.sleep(0)
            waiting.append(len(it.turns._waiting))
        assert max(before - after for before, after in pairwise(waiting)) == 1
        await asyncio.gather(*posted)


@pytest.mark.parametrize("kind", KINDS)
async def test_long_work_without_a_turn_is_refused(kind: str, store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with site(store_url) as it:
        with monkeypatch.context() as patch:
            patch.setattr(work_turns, "FIRST_TURN_SECONDS", 0.05)
            async with it.turns.turn():
                responses = await asyncio.gather(*(it.post(kind) for _ in range(20)))
        assert {response.status_code for response in responses} == {503}
        assert {response.headers["retry-after"] for response in responses} == {"1"}
        assert {response.json()["type"].rpartition(":")[2] for response in responses} == {"overloaded"}
        assert await it.refused() == 20
        assert (await it.post(kind)).status_code == 200


async def test_late_process_refuses_questions_about_unknown_origins(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(0.0)
    async with site(store_url) as it:
        monkeypatch.setattr(work_turns, "time", SimpleNamespace(monotonic=clock))
        async with it.turns.turn():
            waiting = asyncio.create_task(it.turns.next())
            await asyncio.sleep(0)
            clock.now = LATE + 1
            refused = await it.get(it.cold)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert refused.json()["type"].endswith(":overloaded")
            assert (await it.get(it.hot)).status_code == 200
        await waiting
        assert (await it.get(it.cold)).status_code == 200
