"""Log lines: one record is one line, whatever it contains."""

import io
import json
import logging
import signal
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

import httpx
import pytest

from app import __version__
from app.loop.request import REQUEST_ID, TRACE_ID
from app.observability.logs import (
    ACCESS,
    TRACEBACK_LIMIT,
    JsonFormatter,
    Level,
    TextFormatter,
    configuration,
    log_request,
)
from tests.service_process import started

AT = datetime(2026, 11, 21, 18, 30, 0, 250_000, UTC)


def record(message: str, *args: object, error: BaseException | None = None, **extra: object) -> logging.LogRecord:
    info = None if error is None else (type(error), error, error.__traceback__)
    made = logging.LogRecord("app.part", logging.WARNING, __file__, 1, message, args, info)
    made.created = AT.timestamp()
    made.__dict__.update(extra)
    return made


def raised(error: Exception) -> Exception:
    try:
        raise error
    except type(error) as caught:
        return caught


def test_line_has_utc_time_and_extra_fields() -> None:
    line = json.loads(
        JsonFormatter().format(record("%s of %s", 1, 2, fields={"path": "/", "status": 200}, color_message="x"))
    )
    assert line == {
        "time": "2026-11-21T18:30:00.250Z",
        "level": "warning",
        "logger": "app.part",
        "message": "1 of 2",
        "request_id": None,
        "path": "/",
        "status": 200,
    }


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()])
def test_message_cannot_forge_a_line(formatter: logging.Formatter) -> None:
    hostile = "a\nb\r\x1b[2J\x00\u2028\x85\ud800é"
    written = formatter.format(record("%s", hostile))
    assert len(written.splitlines()) == 1
    assert written.encode("utf-8")
    assert not any(ord(letter) < 32 for letter in written)
    if isinstance(formatter, TextFormatter):
        assert written.endswith("app.part: a\\nb\\r\\x1b[2J\\x00\\u2028\\x85\\ud800é")
    else:
        assert json.loads(written)["message"] == hostile


def test_line_has_the_request_id() -> None:
    token = REQUEST_ID.set("abc")
    try:
        assert json.loads(JsonFormatter().format(record("x")))["request_id"] == "abc"
        assert TextFormatter().format(record("x")) == "2026-11-21T18:30:00.250Z WARNING  app.part: x [abc]"
    finally:
        REQUEST_ID.reset(token)


def test_line_has_the_trace_of_the_request() -> None:
    tokens = REQUEST_ID.set("abc"), TRACE_ID.set("0af7651916cd43dd8448eb211c80319c")
    try:
        assert json.loads(JsonFormatter().format(record("x")))["trace_id"] == "0af7651916cd43dd8448eb211c80319c"
        assert TextFormatter().format(record("x")).endswith(" app.part: x [abc 0af7651916cd43dd8448eb211c80319c]")
    finally:
        REQUEST_ID.reset(tokens[0])
        TRACE_ID.reset(tokens[1])


@pytest.mark.parametrize(
    ("level", "of_app", "of_libraries"),
    [
        ("debug", "DEBUG", "WARNING"),
        ("info", "INFO", "WARNING"),
        ("warning", "WARNING", "WARNING"),
        ("error", "ERROR", "ERROR"),
    ],
)
def test_level_is_that_of_the_service(level: Level, of_app: str, of_libraries: str) -> None:
    chosen = configuration("json", level)
    assert {name: logger["level"] for name, logger in chosen["loggers"].items()} == {"app": of_app, "uvicorn": of_app}
    assert chosen["root"]["level"] == of_libraries


def test_traceback_is_a_field_and_truncated() -> None:
    line = json.loads(JsonFormatter().format(record("x", error=raised(ValueError("long " * 10_000 + "end")))))
    assert line["exception"].endswith("end")
    assert len(line["exception"]) == TRACEBACK_LIMIT
    short = TextFormatter().format(record("x", error=raised(ValueError("short"))))
    assert short.splitlines()[1] == "Traceback (most recent call last):"
    assert short.endswith("ValueError: short")


def test_empty_exc_info_adds_no_exception() -> None:
    nothing = record("x")
    nothing.exc_info = sys.exc_info()
    assert "exception" not in json.loads(JsonFormatter().format(nothing))


@pytest.fixture
def access() -> Iterator[logging.Logger]:
    """The access logger, without handlers."""
    logger = logging.getLogger(ACCESS)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    yield logger
    logger.handlers.clear()
    logger.propagate = True
    logger.setLevel(logging.NOTSET)


def test_access_log_line_has_message_and_fields(access: logging.Logger) -> None:
    text, lines = io.StringIO(), io.StringIO()
    for stream, formatter in ((text, logging.Formatter()), (lines, JsonFormatter())):
        handler = logging.StreamHandler(stream)
        handler.setFormatter(formatter)
        access.addHandler(handler)
    log_request("GET", "/a%s", 200, 0.0015)
    log_request("PUT", '/"\\\n\u2028é', None, 61.0, "crawler-7")
    assert text.getvalue().startswith("GET /a%s 200 in 1.5 ms\n")
    first, second = map(json.loads, lines.getvalue().splitlines())
    assert (first["path"], first["status"], first["duration_ms"], "key" in first) == ("/a%s", 200, 1.5, False)
    assert (second["path"], second["status"], second["key"]) == ('/"\\\n\u2028é', None, "crawler-7")


def test_access_log_is_off_above_its_level(access: logging.Logger) -> None:
    stream = io.StringIO()
    access.addHandler(logging.StreamHandler(stream))
    access.setLevel(logging.WARNING)
    log_request("GET", "/", 200, 0.001)
    assert stream.getvalue() == ""


def test_closed_stream_does_not_fail_the_request(access: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    access.addHandler(handler)
    stream.close()
    log_request("GET", "/", 200, 0.001)
    assert "I/O operation on closed file" in capsys.readouterr().err


async def test_service_without_a_terminal_logs_json_only() -> None:
    with started() as service:
        async with httpx.AsyncClient(base_url=service.url) as client:
            request_id = (await client.get("/v1/agents")).headers["x-request-id"]
            await client.get("/healthz")
        output = service.output + service.signal(signal.SIGTERM)
    lines = [json.loads(line) for line in output.splitlines() if not line.startswith("make")]
    assert [line["path"] for line in lines if line["request_id"] == request_id] == ["/v1/agents"]
    assert {line["logger"] for line in lines} == {
        "uvicorn.error",
        "app.access",
        "app.main.service",
        "app.overrides.replica",
    }


async def test_a_proxy_that_is_not_used_is_named() -> None:
    with started(HTTPS_PROXY="http://proxy.example:3128", http_proxy="http://proxy.example:3128") as service:
        assert "HTTPS_PROXY, HTTP_PROXY is set and FETCH_PROXY is not, so fetches use no proxy. " in service.output


async def test_credentials_of_a_proxy_are_never_shown() -> None:
    proxy = "http://fleet:pass%77ord@127.0.0.1:1"
    with started(FETCH_PROXY=proxy, HTTPS_PROXY="http://proxy.example:3128", LOG_LEVEL="debug") as service:
        async with httpx.AsyncClient(base_url=service.url) as client:
            answer = await client.get("/v1/allowed", params={"url": "http://93.184.216.34/", "agent": "ExampleBot"})
        output = service.output + service.signal(signal.SIGTERM)
    robots = answer.json()["robots"]
    assert robots["cause"] == "proxy"
    assert robots["detail"] == "no connection to the proxy: connection refused"
    assert "FETCH_PROXY is not" not in output
    assert all(secret not in output + answer.text for secret in ("fleet", "pass%77ord", "password", "ZmxlZXQ6"))


async def test_log_format_text() -> None:
    with started(LOG_FORMAT="text") as service:
        assert " INFO     uvicorn.error: Application startup complete." in service.output
        assert f"USER_AGENT=RobotsDecisions/{__version__} has no address: " in service.output
