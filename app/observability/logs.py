"""Log lines: one JSON object each for machines, or text for people, with the request that each belongs to."""

import json
import logging
import time
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, Literal

REQUEST_ID: ContextVar[str | None] = ContextVar("request_id", default=None)
"""The request that is being answered; what it begins in the background keeps it."""

LONGEST_EXCEPTION = 16_384
"""Characters of a traceback that are kept: its end, which says what happened."""

ACCESS = "app.access"
"""The logger of the lines of requests."""

Form = Literal["json", "text"]

_JSON = json.JSONEncoder(default=str)
_access = logging.getLogger(ACCESS)


def configuration(form: Form) -> dict[str, Any]:
    """What logging.config, and uvicorn's log_config, take: every line goes to standard error in that form.

    A caller adds to a line by `extra={"fields": {...}}`, with values that JSON knows.
    """
    formatter = {"json": "app.observability.logs.AsJson", "text": "app.observability.logs.AsText"}[form]
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
            "time": _time(record.created),
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

    def request_line(self, at: float, message: str, fields: Mapping[str, object]) -> str:
        """What `format` makes of the line of a request, at the Unix time `at`."""
        # By way of a record, telling of an answer that memory has ready costs half of what giving it does: records, and
        # encoding objects in general, take several times as long as this.
        request_id = REQUEST_ID.get()
        id_ = "null" if request_id is None else quoted(request_id)
        head = f'{{"time": "{_time(at)}", "level": "info", "logger": "{ACCESS}", "message": {quoted(message)}'
        more = [f'"{name}": {_value(value)}' for name, value in fields.items()]
        return f'{head}, "request_id": {id_}, {", ".join(more)}}}'

    def _exception(self, record: logging.LogRecord) -> str | None:
        if record.exc_info is None or record.exc_info[0] is None:
            return None
        return self.formatException(record.exc_info)[-LONGEST_EXCEPTION:]


class AsText(AsJson):
    """One line, and a traceback below it."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        exception = self._exception(record)
        below = "" if exception is None else f"\n{exception}"
        return _text(record.created, record.levelname, record.name, record.getMessage()) + below

    def request_line(self, at: float, message: str, fields: Mapping[str, object]) -> str:  # noqa: ARG002 - all in words
        """What `format` makes of the line of a request, at the Unix time `at`."""
        return _text(at, "INFO", ACCESS, message)


def log_request(method: str, path: str, status: int | None, seconds: float, key: str | None = None) -> None:
    """Log the line of a request that took so many seconds; `status` is None where it was not answered.

    `key` is the id of the API key that it came with; the line has none where there is none.
    """
    if not _access.isEnabledFor(logging.INFO):
        return
    at = time.time()
    milliseconds = round(seconds * 1000, 3)
    message = f"{method} {path} {status} in {milliseconds} ms"
    fields: dict[str, object] = {"method": method, "path": path, "status": status, "duration_ms": milliseconds}
    if key is not None:
        fields["key"] = key
    for handler in _handlers():
        form = handler.formatter
        # Subclasses may do anything with a record, and so may filters: they get one.
        if type(handler) is logging.StreamHandler and isinstance(form, AsJson) and not handler.filters:
            _write(handler, form.request_line(at, message, fields), message, fields)
        else:
            handler.handle(_record(message, fields))


def _handlers() -> Iterator[logging.Handler]:
    """Those that a line of a request comes to, as Logger.callHandlers finds them."""
    logger: logging.Logger | None = _access
    while logger is not None:
        for handler in logger.handlers:
            if handler.level <= logging.INFO:
                yield handler
        logger = logger.parent if logger.propagate else None


def _write(handler: "logging.StreamHandler[Any]", line: str, message: str, fields: Mapping[str, object]) -> None:
    handler.acquire()
    try:
        handler.stream.write(line + handler.terminator)
        handler.stream.flush()
    except (OSError, ValueError):  # who reads it has gone, or it is closed: no reason to break off an answer
        handler.handleError(_record(message, fields))
    finally:
        handler.release()


def _record(message: str, fields: Mapping[str, object]) -> logging.LogRecord:
    return _access.makeRecord(ACCESS, logging.INFO, __file__, 0, message, (), None, extra={"fields": dict(fields)})


def _value(value: object) -> str:
    """The value as JSON."""
    if isinstance(value, str):
        return quoted(value)
    return "null" if value is None else repr(value)


def _text(at: float, level: str, name: str, message: str) -> str:
    # A line break in a message would let whoever chose its words write lines of his own.
    if not message.isprintable():
        message = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in message)
    request_id = REQUEST_ID.get()
    return f"{_time(at)} {level:<8} {name}: {message}" + ("" if request_id is None else f" [{request_id}]")


def _time(at: float) -> str:
    """Unix seconds as RFC 3339 in UTC, with milliseconds."""
    return f"{_to_the_second(int(at))}.{int(at % 1 * 1000):03}Z"


@lru_cache(16)
def _to_the_second(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).replace(tzinfo=None).isoformat()


def _fields(record: logging.LogRecord) -> dict[str, object]:
    fields = getattr(record, "fields", {})
    return fields if isinstance(fields, dict) else {}
