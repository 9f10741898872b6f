"""A log line is one line, whatever it tells."""

import json
import logging
import signal
import sys
from datetime import UTC, datetime

import httpx
import pytest

from app.logs import LONGEST_EXCEPTION, REQUEST_ID, AsJson, AsText
from tests.test_service import started

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


async def test_a_service_whose_standard_error_is_no_terminal_writes_json_only() -> None:
    with started() as service:
        async with httpx.AsyncClient(base_url=service.url) as client:
            request_id = (await client.get("/healthz")).headers["x-request-id"]
        said = service.said + service.signal(signal.SIGTERM)
    lines = [json.loads(line) for line in said.splitlines() if not line.startswith("make")]
    assert [line["path"] for line in lines if line["request_id"] == request_id] == ["/healthz"]
    assert {"uvicorn.error", "app.access"} == {line["logger"] for line in lines}


async def test_people_may_ask_for_text() -> None:
    with started(LOG_FORMAT="text") as service:
        assert " INFO     uvicorn.error: Application startup complete." in service.said
