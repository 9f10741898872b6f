"""The tasks that a service starts beside its requests are those of BackgroundTask, and their failures are counted."""

import asyncio
import json
import logging
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

import app
from app.history import redis_changes
from app.history.change import change_of
from app.loop.background import TASK, BackgroundTask
from app.loop.garbage import GarbageCollection
from app.observability import background_failures
from app.observability.background_failures import LOG_EVERY, LOGGED, BackgroundFailures
from app.store.embedded import serve as serve_store
from robots_core.origin import Origin
from tests.api.service import counted, running
from tests.doubles import Clock
from tests.faults.until import until, until_so
from tests.origins import serve, text
from tests.valkey import process_of, stopped

CODE = str(Path(app.__file__).parent)
OLD, NEW = "User-agent: *\nDisallow: /old\n", "User-agent: *\nDisallow: /new\n"
DAY = 86_400

OF_CALLERS = {"_attempt", "_bounded", "_disconnected", "_send_packed_command", "ping_shard", "read"}
"""Coroutines with a task of their own although a caller waits for them.

They are calls to the store, which may be late, attempts at the addresses of a host, which run side by side, and a wait
for changes, which ends when its client disconnects.
"""

ONLY_OF_SEVERAL_SERVERS = {BackgroundTask.STORE_SEARCHES}
"""Tasks of stores that are clusters or have sentinels; see tests/store/test_connect.py."""


@contextmanager
def started() -> Iterator[list[tuple[asyncio.Task[Any], str]]]:
    """The tasks that run code of the service, each with the name of its coroutine."""
    found: list[tuple[asyncio.Task[Any], str]] = []

    def make(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **options: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(work, loop=loop, **options)
        code = getattr(work, "cr_code", None)
        if code is not None and code.co_filename.startswith(CODE):
            found.append((task, code.co_name))
        return task

    loop = asyncio.get_running_loop()
    loop.set_task_factory(make)  # type: ignore[arg-type]
    try:
        yield found
    finally:
        loop.set_task_factory(None)


async def test_every_task_of_the_service_is_in_the_list(tmp_path: Path) -> None:
    agents = tmp_path / "agents.toml"
    agents.write_text("[agents.ExampleBot]\n")
    with serve_store(None) as url, started() as tasks:

        def names() -> set[str]:
            return {task.get_name() for task, _ in tasks}

        async with (
            serve(text(200, OLD), text(200, NEW)) as origin,
            GarbageCollection().running(),
            running(
                url,
                store_timeout=1.0,
                agents_file=agents,
                watch_seconds=0.1,
                decision_log=str(tmp_path / "log"),
                archive=tmp_path,
            ) as service,
        ):
            client = Redis.from_url(url)
            await service.allowed(f"{origin.url}/")
            service.now += 2 * DAY
            await service.allowed(f"{origin.url}/", wait=30)
            await until_so(lambda: BackgroundTask.HISTORY in names())
            changes = await until(lambda: service.client.get("/v1/changes"), lambda response: bool(response.text))
            newest = changes.text.splitlines()[-1]
            await service.client.get("/v1/changes", params={"after": json.loads(newest)["id"], "wait": 1})
            await service.client.get("/")
            agents.write_text("[agents.ExampleBot]\nfloor = 2\n")
            permit = {"url": f"{origin.url}/", "agent": "ExampleBot"}
            with stopped(await process_of(client)):
                await service.client.post("/v1/permits", json=permit)
                await until_so(lambda: BackgroundTask.RECOVERY in names())
            await client.aclose()
    expected = set(BackgroundTask)
    assert names() & expected == expected - ONLY_OF_SEVERAL_SERVERS
    assert {work for task, work in tasks if task.get_name() not in expected} <= OF_CALLERS


async def test_a_version_that_cannot_be_compared_costs_no_other_site(
    store_url: str, store_client: Redis, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        serve(text(200, OLD), text(200, NEW)) as bad,
        serve(text(200, OLD), text(200, NEW)) as good,
        running(store_url) as service,
    ):

        def compare(origin: Origin, *versions: Any, **options: Any) -> Any:
            if origin.key == bad.url:
                raise KeyError("*")
            return change_of(origin, *versions, **options)

        monkeypatch.setattr(redis_changes, "change_of", compare)
        for _ in range(2):
            for origin in (bad, good):
                await service.allowed(f"{origin.url}/", wait=30)
            service.now += 2 * DAY
        changes = await until(lambda: service.client.get("/v1/changes"), lambda response: bool(response.text))
        assert good.url in changes.text
        assert await counted(service, "robots_background_failures_total", task="history") == 1
        assert await counted(service, "robots_background_failures_total", task="overrides") == 0
        assert await counted(service, "robots_history_lost_total") == 1
        [record] = [record for record in caplog.records if record.name == background_failures.__name__]
        assert bad.url in record.getMessage()
        assert record.exc_info is not None
        assert record.levelno == logging.ERROR


def failing(count: int, failures: BackgroundFailures, task: BackgroundTask) -> None:
    for _ in range(count):
        failures.note(task, f"the background task {task} failed", LookupError("*"))


def test_a_task_that_fails_all_the_time_is_logged_less(caplog: pytest.LogCaptureFixture) -> None:
    counts: list[BackgroundTask] = []
    clock = Clock()
    failures = BackgroundFailures(counts.append, clock)
    failing(3 * LOGGED, failures, BackgroundTask.VISITS)
    assert (len(counts), len(caplog.records)) == (3 * LOGGED, LOGGED)
    assert "not logged" in caplog.messages[-1]
    failing(1, failures, BackgroundTask.HISTORY)
    clock.now += LOG_EVERY
    failing(1, failures, BackgroundTask.VISITS)
    assert len(caplog.records) == LOGGED + 2


async def test_other_reports_of_the_event_loop_are_left_to_its_handler() -> None:
    seen: list[dict[str, Any]] = []
    counts: list[BackgroundTask] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: seen.append(context))
    async with BackgroundFailures(counts.append, Clock()).noted():
        loop.call_exception_handler({"message": "a transport"})
        loop.call_exception_handler({"message": "a task", TASK: BackgroundTask.VISITS, "exception": LookupError()})
    assert [context["message"] for context in seen] == ["a transport"]
    assert counts == [BackgroundTask.VISITS]
    loop.call_exception_handler({"message": "at the end", TASK: BackgroundTask.VISITS})
    assert len(seen) == 2
    loop.set_exception_handler(None)
