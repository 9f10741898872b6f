"""Log lines: JSON for machines or text for people, each with the id of its request."""

import json
import logging
from datetime import UTC, datetime
from typing import Any, Literal

from app.loop.request import REQUEST_ID, TRACE_ID

TRACEBACK_LIMIT = 16_384
"""Characters of a traceback that are kept, from its end."""

ACCESS = "app.access"
"""The name of the access logger."""

Form = Literal["json", "text"]
Level = Literal["debug", "info", "warning", "error"]

_JSON = json.JSONEncoder(default=str)
_access = logging.getLogger(ACCESS)


def configuration(form: Form, level: Level = "info") -> dict[str, Any]:
    """The configuration for logging.config, and for uvicorn's log_config: all lines go to standard error.

    `level` is that of the service and its server; lines of libraries need `warning` at least. A caller adds members to
    a line with `extra={"fields": {...}}`; their values must be JSON types.
    """
    formatter = {"json": "app.observability.logs.JsonFormatter", "text": "app.observability.logs.TextFormatter"}[form]
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": formatter}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "stream": "ext://sys.stderr", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": "ERROR" if level == "error" else "WARNING"},
        "loggers": {"app": {"level": level.upper()}, "uvicorn": {"level": level.upper()}},
    }


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of ASCII JSON, so that no value can start another line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a JSON object."""
        fields = getattr(record, "fields", None)
        line: dict[str, object] = {
            "time": timestamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": REQUEST_ID.get(),
        }
        trace_id = TRACE_ID.get()
        if trace_id is not None:
            line["trace_id"] = trace_id
        if isinstance(fields, dict):
            line.update(fields)
        traceback = _traceback(self, record)
        if traceback is not None:
            line["exception"] = traceback
        return _JSON.encode(line)


class TextFormatter(logging.Formatter):
    """Formats a record as one line of text, with a traceback below it."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        # A line break in it could forge another line.
        line = f"{timestamp(record.created)} {record.levelname:<8} {record.name}: {printable(record.getMessage())}"
        ids = " ".join(filter(None, (REQUEST_ID.get(), TRACE_ID.get())))
        if ids:
            line += f" [{ids}]"
        traceback = _traceback(self, record)
        return line if traceback is None else f"{line}\n{traceback}"


def log_request(
    method: str,
    path: str,
    status: int | None,
    seconds: float,
    key: str | None = None,
    client: str | None = None,
) -> None:
    """Write the access log line of a request that took `seconds`.

    `status` is None if there was no response. `key`, the id of the API key, and `client`, an address, are left out of
    the line if they are None.
    """
    if not _access.isEnabledFor(logging.INFO):
        return
    milliseconds = round(seconds * 1000, 3)
    fields: dict[str, object] = {"method": method, "path": path, "status": status, "duration_ms": milliseconds}
    if key is not None:
        fields["key"] = key
    if client is not None:
        fields["client"] = client
    message = f"{method} {path} {status} in {milliseconds} ms"
    # Not _access.info(): it walks the stack for the caller, which would be this line every time.
    _access.handle(_access.makeRecord(ACCESS, logging.INFO, __file__, 0, message, (), None, extra={"fields": fields}))


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str | None:
    if record.exc_info is None or record.exc_info[0] is None:
        return None
    return formatter.formatException(record.exc_info)[-TRACEBACK_LIMIT:]


def printable(text: str) -> str:
    """The text on one line, with characters that are not printable escaped as in Python."""
    return text if text.isprintable() else "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def timestamp(seconds: float) -> str:
    """Unix seconds as RFC 3339 in UTC, with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
