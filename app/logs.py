"""Log lines: one JSON object each for machines, or text for people, with the request that each belongs to."""

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal

REQUEST_ID: ContextVar[str | None] = ContextVar("request_id", default=None)
"""The request that is being answered; what it begins in the background keeps it."""

LONGEST_EXCEPTION = 16_384
"""Characters of a traceback that are kept: its end, which says what happened."""

Form = Literal["json", "text"]

_JSON = json.JSONEncoder(default=str)


def configuration(form: Form) -> dict[str, Any]:
    """What logging.config, and uvicorn's log_config, take: every line goes to standard error in that form.

    A caller adds to a line by `extra={"fields": {...}}`, with values that JSON knows.
    """
    formatter = {"json": "app.logs.AsJson", "text": "app.logs.AsText"}[form]
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": formatter}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "stream": "ext://sys.stderr", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {"app": {"level": "INFO"}, "uvicorn": {"level": "INFO"}},
    }


class AsJson(logging.Formatter):
    """One line of ASCII, whatever the record holds: nothing in it can begin another line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as an object."""
        line: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": REQUEST_ID.get(),
            **_fields(record),
        }
        exception = self._exception(record)
        if exception is not None:
            line["exception"] = exception
        return _JSON.encode(line)

    def _exception(self, record: logging.LogRecord) -> str | None:
        if record.exc_info is None or record.exc_info[0] is None:
            return None
        return self.formatException(record.exc_info)[-LONGEST_EXCEPTION:]


class AsText(AsJson):
    """One line, and a traceback below it."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        # A line break in a message would let whoever chose its words write lines of his own.
        message = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in record.getMessage())
        request_id = REQUEST_ID.get()
        fields = "" if request_id is None else f" [{request_id}]"
        exception = self._exception(record)
        below = "" if exception is None else f"\n{exception}"
        return f"{_time(record)} {record.levelname:<8} {record.name}: {message}{fields}{below}"


def _time(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC).replace(tzinfo=None)
    return at.isoformat(timespec="milliseconds") + "Z"


def _fields(record: logging.LogRecord) -> dict[str, object]:
    fields = getattr(record, "fields", {})
    return fields if isinstance(fields, dict) else {}
