"""Failed fetches are logged, at a limited rate per origin."""

import logging
from typing import Any

import pytest

from app.cache.freshness import Failing, Snapshot
from app.observability.fetch_log import FETCH, LOG_INTERVAL, LOGGED_ORIGINS, FetchLog
from robots_core.origin import Origin, read_target
from robots_core.robots.access import Blocked, Cause, Successful, Unavailable, Unreachable
from tests.api.service import running
from tests.doubles import Clock
from tests.origins import serve, text

NOW = 1_800_000_000.0


def origin(number: int = 0) -> Origin:
    return read_target(f"https://host-{number}.example/").origin


def failed(attempts: int = 1) -> Snapshot:
    failure = Unreachable(Cause.SERVER_ERROR, 503)
    return Snapshot(failure, NOW, failing=Failing(NOW, NOW, attempts, failure))


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [vars(record)["fields"] for record in caplog.records if record.name == FETCH]


@pytest.fixture
def clock() -> Clock:
    return Clock(0.0)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture, clock: Clock) -> FetchLog:
    caplog.set_level(logging.INFO, FETCH)
    return FetchLog(clock)


def test_failed_fetch_is_logged_with_cause_and_next_try(log: FetchLog, caplog: pytest.LogCaptureFixture) -> None:
    log.note(origin(), failed(attempts=3), 0.0123)
    (line,) = lines(caplog)
    recheck_at = line.pop("recheck_at")
    assert line == {
        "origin": "https://host-0.example",
        "outcome": "unreachable",
        "cause": "server_error",
        "status": 503,
        "detail": None,
        "duration_ms": 12.3,
        "attempts": 3,
        "left_out": 0,
    }
    assert "2027-01-15T08:1" <= recheck_at <= "2027-01-15T08:23:00Z"
    message = (
        "fetch of https://host-0.example/robots.txt failed after 12.3 ms: unreachable, server_error, 503; next try at "
    )
    assert caplog.messages == [message + recheck_at]


def test_only_failures_are_logged(log: FetchLog, caplog: pytest.LogCaptureFixture) -> None:
    log.note(origin(), Snapshot(Successful(200, b""), NOW), 9.0)
    log.note(origin(), Snapshot(Unavailable(404), NOW), 9.0)
    assert lines(caplog) == []
    log.note(origin(), Snapshot(Blocked("10.0.0.1"), NOW), 0.1)
    (line,) = lines(caplog)
    assert (line["outcome"], line["cause"], line["status"]) == ("blocked_address", None, None)


def test_origin_is_logged_once_a_minute_with_a_count(
    log: FetchLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(5):
        log.note(origin(1), failed(), 0.1)
    log.note(origin(2), failed(), 0.1)
    clock.now = LOG_INTERVAL
    log.note(origin(1), failed(), 0.1)
    assert [(line["origin"], line["left_out"]) for line in lines(caplog)] == [
        (origin(1).key, 0),
        (origin(2).key, 0),
        (origin(1).key, 4),
    ]


def test_remembered_origins_are_bounded(log: FetchLog, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(LOGGED_ORIGINS + 5):
        log.note(origin(number), failed(), 0.1)
    assert len(log._lines) == LOGGED_ORIGINS
    log.note(origin(0), failed(), 0.1)
    assert len(lines(caplog)) == LOGGED_ORIGINS + 6


async def test_a_service_logs_one_line_for_a_failed_fetch(
    store_url: str, store_client: object, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, FETCH)
    async with serve(text(503)) as broken, serve(text(404)) as empty, running(store_url) as service:
        for url in (broken.url, empty.url, broken.url):
            await service.allowed(f"{url}/")
        for _ in range(3):
            response = await service.client.post("/v1/robots/refresh", params={"url": broken.url})
            assert response.status_code == 200
    assert [(line["origin"], line["status"]) for line in lines(caplog)] == [(broken.url, 503)]


def test_line_names_the_fetch_profile_if_there_is_one(log: FetchLog, caplog: pytest.LogCaptureFixture) -> None:
    log.note(origin(), failed(), 0.1)
    log.note(origin().with_profile("acme"), failed(), 0.1)
    found = [(line["origin"], line.get("profile")) for line in lines(caplog)]
    assert found == [("https://host-0.example", None), ("https://host-0.example", "acme")]
