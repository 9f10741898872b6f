"""Metrics of one process, and of several workers together."""

import asyncio
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from app import __version__
from app.loop.background import BackgroundTask, repeatedly
from app.observability.event_loop import sample_lag
from app.observability.metrics import KEYS_COUNTED, Metrics, ServiceState
from app.observability.revision import REVISION
from robots_core.robots.access import (
    Access,
    Blocked,
    Cause,
    NotModified,
    Successful,
    Unavailable,
    Unreachable,
)
from tests.exposition import value
from tests.faults.until import until
from tests.service_process import started

CALM = ServiceState(store_degraded=False, pubsub_connected=True, fetches_in_flight=0, fetches_queued=0, memory={})


@pytest.mark.parametrize(
    ("found", "labels"),
    [
        (Successful(204, b""), ("successful", "", "2xx")),
        (NotModified(), ("not_modified", "", "3xx")),
        (Unavailable(404), ("unavailable", "", "4xx")),
        (Unavailable(301, Cause.REDIRECT_LOOP), ("unavailable", "redirect_loop", "3xx")),
        (Unreachable(Cause.SERVER_ERROR, 503, 120), ("unreachable", "server_error", "5xx")),
        (Unreachable(Cause.DNS), ("unreachable", "dns", "")),
        (Blocked("10.0.0.1"), ("blocked_address", "", "")),
    ],
)
def test_a_fetch_is_counted_by_outcome_cause_and_class_of_status(
    found: Access | NotModified, labels: tuple[str, str, str]
) -> None:
    metrics = Metrics(lambda: CALM)
    metrics.fetched(found, 0.3)
    outcome, cause, status = labels
    text = metrics.text().decode()
    assert value(text, "robots_fetches_total", outcome=outcome, cause=cause, status=status) == 1
    assert value(text, "robots_fetch_seconds_bucket", outcome=outcome, le="0.25") == 0
    assert value(text, "robots_fetch_seconds_bucket", outcome=outcome, le="0.5") == 1


def test_state_is_read_at_each_scrape() -> None:
    now = CALM
    metrics = Metrics(lambda: now)
    assert value(metrics.text().decode(), "robots_store_degraded") == 0
    now = ServiceState(True, False, 3, 2, {"files": (70, 7)})
    text = metrics.text().decode()
    assert (value(text, "robots_store_degraded"), value(text, "robots_pubsub_connected")) == (1, 0)
    assert (value(text, "robots_fetches_in_flight"), value(text, "robots_fetches_queued")) == (3, 2)
    assert value(text, "robots_memory_bytes", cache="files") == 70
    assert value(text, "robots_memory_entries", cache="files") == 7


def test_batch_decisions_have_no_latency() -> None:
    metrics = Metrics(lambda: CALM)
    metrics.decided("allow", "no_match", "memory", "rfc9309", 0.002)
    metrics.decided("allow", "no_match", "memory", "rfc9309")
    text = metrics.text().decode()
    assert value(text, "robots_decisions_total") == 2
    assert value(text, "robots_decision_seconds_count", source="memory") == 1


def test_two_applications_in_one_process_count_apart() -> None:
    one, other = Metrics(lambda: CALM), Metrics(lambda: CALM)
    one.decisions_overloaded.inc()
    assert value(one.text().decode(), "robots_decisions_overloaded_total") == 1
    assert value(other.text().decode(), "robots_decisions_overloaded_total") == 0


def test_process_and_version_are_exported() -> None:
    text = Metrics(lambda: CALM).text().decode()
    assert value(text, "robots_build_info", version=__version__, revision=REVISION) == 1
    assert value(text, "python_info") == 1
    assert value(text, "process_resident_memory_bytes") > 1_000_000
    assert value(text, "process_open_fds") > 0


def test_store_failures_are_exported_before_the_first() -> None:
    text = Metrics(lambda: CALM).text().decode()
    assert 'robots_store_failures_total{kind="refused"} 0.0' in text
    assert 'robots_store_failures_total{kind="unanswered"} 0.0' in text


def test_requests_are_counted_per_key_up_to_a_bound() -> None:
    metrics = Metrics(lambda: CALM)
    for number in range(KEYS_COUNTED + 5):
        metrics.key_used(f"key-{number}", 200)
    metrics.key_used("key-0", 503)
    metrics.quota_exceeded("key-1")
    text = metrics.text().decode()
    assert value(text, "robots_key_requests_total", key="key-0") == 2
    assert value(text, "robots_key_requests_total", key="key-0", status="5xx") == 1
    assert value(text, "robots_key_requests_total", key="_other") == 5
    assert value(text, "robots_key_quota_exceeded_total", key="key-1") == 1
    assert value(text, "robots_requests_rejected_total", reason="quota-exceeded") == 1


async def test_the_lag_of_the_event_loop_is_sampled() -> None:
    seen: list[float] = []
    enough = asyncio.Event()

    def observe(seconds: float) -> None:
        seen.append(seconds)
        if len(seen) == 3:
            enough.set()

    async with repeatedly(BackgroundTask.EVENT_LOOP_LAG, lambda: sample_lag(observe, every=0.01)):
        await asyncio.sleep(0)
        time.sleep(0.05)  # noqa: ASYNC251 - the lag to detect
        await enough.wait()
    assert seen[0] >= 0.03
    assert all(seconds >= 0 for seconds in seen)


def gone(directory: Path) -> bool:
    return not directory.exists()


async def ask(url: str, path: str, times: int = 1) -> str:
    """Send `times` requests, each on its own connection; return the last answer."""
    text = ""
    for _ in range(times):
        # A worker that has started may not listen yet, and the one that does may be suspended.
        transport = httpx.AsyncHTTPTransport(retries=8)
        async with httpx.AsyncClient(base_url=url, timeout=60.0, transport=transport) as client:
            text = (await client.get(path)).text
    return text


@contextmanager
def stopped(process: psutil.Process) -> Iterator[None]:
    process.suspend()
    try:
        yield
    finally:
        process.resume()


async def test_any_worker_exports_the_sums_of_all_workers() -> None:
    question = "/v1/allowed?url=http://192.0.2.1/&agent=a"
    with started(WORKERS="2") as service:
        below = psutil.Process(service.process.pid).children(recursive=True)
        one, other = (process for process in below if "spawn_main" in " ".join(process.cmdline()))
        directory = Path(other.environ()["PROMETHEUS_MULTIPROC_DIR"])
        with stopped(other):
            await ask(service.url, question, 2)
            await ask(service.url, "/metrics")
        with stopped(one):
            await ask(service.url, question, 3)
            text = await ask(service.url, "/metrics")
        assert value(text, "robots_decisions_total", reason="blocked_address") == 5
        assert value(text, "robots_decision_seconds_count") == 5
        assert value(text, "robots_memory_entries", cache="snapshots") == 2
        assert value(text, "robots_build_info") == 1
        for worker in (one, other):
            assert value(text, "process_resident_memory_bytes", pid=str(worker.pid)) > 1_000_000
        one.kill()

        async def entries() -> float:
            text = await ask(service.url, "/metrics")
            assert value(text, "robots_decisions_total") == 5
            return value(text, "robots_memory_entries", cache="snapshots")

        await until(entries, lambda found: found == 1)
        service.signal(signal.SIGTERM)
    assert gone(directory)
