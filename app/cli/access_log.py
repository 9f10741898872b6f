"""The log of a crawl: JSON lines of a crawler or of the decision log, or the log of a proxy or web server."""

import gzip
import json
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import Any, Final, NamedTuple

from app.cli.combined_log import ServedRequest, read_request
from app.cli.exit_codes import Failed
from app.cli.line_reader import blocks, open_stdin
from app.instants import read_instant, rfc3339
from robots_core.origin import URL_LIMIT
from robots_core.robots.verdict import Permission

LOGGED_LINE_LIMIT = 8 * URL_LIMIT
"""Bytes of the longest line."""

LOGGED_AGENT_LIMIT = 4096
"""Bytes of the longest agent."""

_GZIP = b"\x1f\x8b"
_SHOWN = 100  # characters of a value that an error quotes


class LoggedFetch(NamedTuple):
    """A page that was fetched: by which agent, at which instant, and what the decision log says about it."""

    url: str
    agent: str
    time: str
    dialect: str | None = None
    override: str | None = None


class Defaults(NamedTuple):
    """The crawler of lines without an agent, and the origin of lines with a path alone."""

    agent: str | None = None
    origin: str | None = None


REFUSED: Final = "refused at that time"
NO_URL: Final = "without a URL"
"""Why a line is not auditable."""


class BadLine(Exception):
    """The line cannot be read; the text says why."""


class NotAuditable(Exception):
    """The line has no URL, or is not about a fetch; the text says which."""


def open_log(name: str) -> BufferedIOBase:
    """The file, or standard input for `-`; decompressed if it is compressed by gzip. Raise Failed."""
    try:
        source = _open(name)
        return gzip.GzipFile(fileobj=source) if source.peek(len(_GZIP)).startswith(_GZIP) else source
    except OSError as error:
        raise Failed(f"Cannot read {name}: {error.strerror}.") from None


def _open(name: str) -> BufferedReader:
    return open_stdin() if name == "-" else Path(name).open("rb")


async def numbered_lines(source: BufferedIOBase) -> AsyncIterator[list[tuple[int, bytes]]]:
    """The lines and their numbers, in lists that one read completes.

    Of a line beyond LOGGED_LINE_LIMIT, they have the first LOGGED_LINE_LIMIT bytes. Raise Failed.
    """
    number, continued = 0, False
    try:
        async for block in blocks(source, "the log", LOGGED_LINE_LIMIT):
            lines = []
            for written in block:
                skipped, continued = continued, not written.endswith(b"\n")
                if not skipped:
                    number += 1
                    lines.append((number, written))
            yield lines
    except Failed as error:
        raise Failed(f"{error} It was read up to line {number}.") from None


def read_entry(written: bytes, defaults: Defaults) -> LoggedFetch:
    """Read a line. Raise BadLine or NotAuditable."""
    if len(written) >= LOGGED_LINE_LIMIT:
        raise BadLine(f"The line is longer than {LOGGED_LINE_LIMIT} bytes.")
    try:
        line = json.loads(written.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        line = None
    if isinstance(line, dict):
        return _from_json(line, defaults)
    text = written.decode("utf-8", "replace").strip()
    request = read_request(text)
    if request is None:
        raise BadLine(f"{_shown(text)} is neither a JSON object nor a line of the common or combined log format.")
    return _from_request(request, defaults)


def _from_json(line: Mapping[str, Any], defaults: Defaults) -> LoggedFetch:
    verdict = line.get("verdict")
    if verdict in (Permission.DISALLOW, Permission.DEFER):
        raise NotAuditable(REFUSED)
    if line.get("url") is None and ("url_sha256" in line or (verdict is not None and "origin" in line)):
        raise NotAuditable(NO_URL)
    return LoggedFetch(
        url=_absolute(_text(line, "url", URL_LIMIT), defaults),
        agent=_text({"agent": defaults.agent, **_given(line)}, "agent", LOGGED_AGENT_LIMIT),
        time=_time(line),
        dialect=_text(line, "dialect", LOGGED_AGENT_LIMIT) if line.get("dialect") is not None else None,
        override=_text(line, "override", LOGGED_AGENT_LIMIT) if line.get("override") is not None else None,
    )


def _from_request(request: ServedRequest, defaults: Defaults) -> LoggedFetch:
    if request.refused:
        raise NotAuditable(REFUSED)
    if request.target is None:
        raise NotAuditable(NO_URL)
    return LoggedFetch(
        url=_absolute(_text({"url": request.target}, "url", URL_LIMIT), defaults),
        agent=_text({"agent": request.agent or defaults.agent}, "agent", LOGGED_AGENT_LIMIT),
        time=rfc3339(request.at),
    )


def _absolute(url: str, defaults: Defaults) -> str:
    if not url.startswith("/"):
        return url
    if defaults.origin is None:
        raise BadLine(f"{_shown(url)} is a path alone; give --origin.")
    return defaults.origin + url


def _given(line: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in line.items() if value is not None}


def _text(line: Mapping[str, Any], name: str, limit: int) -> str:
    value = line.get(name)
    if value is None:
        raise BadLine(f"The line has no {name}{'; give --agent' if name == 'agent' else ''}.")
    if not isinstance(value, str):
        raise BadLine(f"{name} is {_shown(value)}; it must be a string.")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise BadLine(f"{name} is {_shown(value)}, which is not valid Unicode.") from None
    if size > limit:
        raise BadLine(f"{name} is {_shown(value)}, longer than {limit} bytes.")
    return value


def _time(line: Mapping[str, Any]) -> str:
    """The instant in RFC 3339."""
    value = next((line[name] for name in ("time", "at") if line.get(name) is not None), None)
    if value is None:
        raise BadLine("The line has neither time nor at.")
    try:
        match value:
            case str() if (at := read_instant(value)) is not None:
                return rfc3339(at)
            case bool():
                pass
            case int() | float() if value >= 0:
                return rfc3339(datetime.fromtimestamp(value, UTC))
    except (ValueError, OverflowError, OSError):
        pass
    raise BadLine(f"The time {_shown(value)} is neither RFC 3339, such as 2026-11-21T18:30:00Z, nor Unix seconds.")


def _shown(value: object) -> str:
    text = value[:_SHOWN] if isinstance(value, str) else value
    return repr(text)[: _SHOWN + 10]
