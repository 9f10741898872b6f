"""A log line is one line, whatever it tells."""

import io
import json
import logging
import signal
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import httpx
import pytest

from app.observability.logs import ACCESS, LONGEST_EXCEPTION, REQUEST_ID, AsJson, AsText, log_request
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


def test_a_line_has_its_time_in_utc_and_what_was_added_to_it() -> None:
    line = json.loads(AsJson().format(record("%s of %s", 1, 2, fields={"path": "/", "status": 200}, color_message="x")))
    assert line == {
        "time": "2026-11-21T18:30:00.250Z",
        "level": "warning",
        "logger": "app.part",
        "message": "1 of 2",
        "request_id": None,
        "path": "/",
        "status": 200,
    }


@pytest.mark.parametrize("formatter", [AsJson(), AsText()])
def test_no_message_begins_a_line_of_its_own(formatter: logging.Formatter) -> None:
    hostile = "a\nb\r\x1b[2J\x00\u2028\x85\ud800é"
    written = formatter.format(record("%s", hostile))
    assert len(written.splitlines()) == 1
    assert written.encode("utf-8")
    assert not any(ord(letter) < 32 for letter in written)
    if isinstance(formatter, AsText):
        assert written.endswith("app.part: a\\nb\\r\\x1b[2J\\x00\\u2028\\x85\\ud800é")
    else:
        assert json.loads(written)["message"] == hostile


def test_the_request_is_named_in_its_lines() -> None:
    token = REQUEST_ID.set("abc")
    try:
        assert json.loads(AsJson().format(record("x")))["request_id"] == "abc"
        assert AsText().format(record("x")) == "2026-11-21T18:30:00.250Z WARNING  app.part: x [abc]"
    finally:
        REQUEST_ID.reset(token)


def test_a_traceback_is_a_field_and_bounded_to_its_end() -> None:
    line = json.loads(AsJson().format(record("x", error=raised(ValueError("long " * 10_000 + "end")))))
    assert line["exception"].endswith("end")
    assert len(line["exception"]) == LONGEST_EXCEPTION
    short = AsText().format(record("x", error=raised(ValueError("short"))))
    assert short.splitlines()[1] == "Traceback (most recent call last):"
    assert short.endswith("ValueError: short")


def test_a_line_may_say_that_there_was_no_exception() -> None:
    nothing = record("x")
    nothing.exc_info = sys.exc_info()
    assert "exception" not in json.loads(AsJson().format(nothing))


@pytest.mark.parametrize("form", [AsJson(), AsText()])
@pytest.mark.parametrize("request_id", [None, "abc"])
@pytest.mark.parametrize(
    "fields",
    [
        {"method": "GET", "path": "/v1/allowed", "status": 200, "duration_ms": 0.123},
        {"method": "PUT", "path": '/"\\\n\u2028\ud800é', "status": None, "duration_ms": 61000.0, "key": "crawler-7"},
    ],
)
def test_the_line_of_a_request_is_what_the_same_record_comes_to(
    form: AsJson, request_id: str | None, fields: Mapping[str, object]
) -> None:
    made = record("%s %s", fields["method"], fields["path"], fields=fields)
    made.name, made.levelno, made.levelname = ACCESS, logging.INFO, "INFO"
    token = REQUEST_ID.set(request_id)
    try:
        assert form.request_line(made.created, made.getMessage(), fields) == form.format(made)
    finally:
        REQUEST_ID.reset(token)


class Records(logging.Handler):
    """A handler of somebody else's."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def access() -> Iterator[logging.Logger]:
    """The logger of requests, without handlers of its own or others'."""
    logger = logging.getLogger(ACCESS)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    yield logger
    logger.handlers.clear()
    logger.propagate = True
    logger.setLevel(logging.NOTSET)


def test_the_line_of_a_request_comes_to_every_handler_that_its_record_would(access: logging.Logger) -> None:
    written, ours, others, deaf = io.StringIO(), io.StringIO(), Records(), io.StringIO()
    for stream, level, form in ((written, 0, logging.Formatter()), (ours, 0, AsJson()), (deaf, 30, AsJson())):
        handler = logging.StreamHandler(stream)
        handler.setLevel(level)
        handler.setFormatter(form)
        access.addHandler(handler)
    access.addHandler(others)
    log_request("GET", "/a%s", 200, 0.0015)
    assert written.getvalue() == "GET /a%s 200 in 1.5 ms\n"
    assert json.loads(ours.getvalue())["path"] == "/a%s"
    assert [record.getMessage() for record in others.records] == ["GET /a%s 200 in 1.5 ms"]
    assert deaf.getvalue() == ""


def test_a_filter_is_asked_about_the_line_of_a_request(access: logging.Logger) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(AsJson())
    handler.addFilter(lambda record: False)
    access.addHandler(handler)
    log_request("GET", "/", 200, 0.001)
    assert stream.getvalue() == ""


def test_no_line_of_a_request_is_made_where_nobody_wants_one(access: logging.Logger) -> None:
    others = Records()
    access.addHandler(others)
    access.setLevel(logging.WARNING)
    log_request("GET", "/", 200, 0.001)
    assert others.records == []


def test_a_stream_that_is_closed_does_not_break_off_the_answer(
    access: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(AsJson())
    access.addHandler(handler)
    stream.close()
    log_request("GET", "/", 200, 0.001)
    assert "I/O operation on closed file" in capsys.readouterr().err


async def test_a_service_whose_standard_error_is_no_terminal_writes_json_only() -> None:
    with started() as service:
        async with httpx.AsyncClient(base_url=service.url) as client:
            request_id = (await client.get("/healthz")).headers["x-request-id"]
        said = service.said + service.signal(signal.SIGTERM)
    lines = [json.loads(line) for line in said.splitlines() if not line.startswith("make")]
    assert [line["path"] for line in lines if line["request_id"] == request_id] == ["/healthz"]
    assert {line["logger"] for line in lines} == {"uvicorn.error", "app.access", "app.main.service"}


async def test_people_may_ask_for_text() -> None:
    with started(LOG_FORMAT="text") as service:
        assert " INFO     uvicorn.error: Application startup complete." in service.said
