"""The log of a crawler as JSON lines: its own, or the decision log of the service."""

import json
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from app.api.instants import rfc3339
from app.api.params import read_instant
from app.cli.exit_codes import Failed
from app.cli.line_reader import open_stdin, pieces
from app.origin import URL_LIMIT
from app.robots.verdict import Permission

LINE_LIMIT = 8 * URL_LIMIT
"""Bytes of the longest line."""

AGENT_LIMIT = 4096
"""Bytes of the longest agent."""


class LoggedFetch(NamedTuple):
    """A page that was fetched: by which agent, at which instant, and what the decision log says about it."""

    url: str
    agent: str
    time: str
    dialect: str | None = None
    override: str | None = None


class BadLine(Exception):
    """The line cannot be read; the text says why."""


class NotAuditable(Exception):
    """The line is one of the decision log without a URL, or without a fetch; the text says which."""


def open_log(name: str) -> BinaryIO:
    """The file, or standard input for `-`. Raise Failed."""
    try:
        if name == "-":
            return open_stdin()
        return Path(name).open("rb")
    except OSError as error:
        raise Failed(f"Cannot read {name}: {error.strerror}.") from None


async def numbered_lines(source: BinaryIO) -> AsyncIterator[tuple[int, bytes]]:
    """The lines and their numbers; of a line beyond LINE_LIMIT, the first LINE_LIMIT bytes. Raise Failed."""
    number, continued = 0, False
    async for written in pieces(source, "the log", LINE_LIMIT):
        skipped, continued = continued, not written.endswith(b"\n")
        if not skipped:
            number += 1
            yield number, written


def read_entry(written: bytes, default_agent: str | None) -> LoggedFetch:
    """Read a line. Raise BadLine or NotAuditable."""
    if len(written) >= LINE_LIMIT:
        raise BadLine(f"The line is longer than {LINE_LIMIT} bytes.")
    try:
        line = json.loads(written.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        line = None
    if not isinstance(line, dict):
        raise BadLine(f"{_shown(written.strip().decode('utf-8', 'replace'))} is not a JSON object.")
    verdict = line.get("verdict")
    if verdict in (Permission.DISALLOW, Permission.DEFER):
        raise NotAuditable("refused at that time")
    if line.get("url") is None and ("url_sha256" in line or (verdict is not None and "origin" in line)):
        raise NotAuditable("without a URL")
    return LoggedFetch(
        url=_text(line, "url", URL_LIMIT),
        agent=_text({"agent": default_agent, **_given(line)}, "agent", AGENT_LIMIT),
        time=_time(line),
        dialect=_text(line, "dialect", AGENT_LIMIT) if line.get("dialect") is not None else None,
        override=_text(line, "override", AGENT_LIMIT) if line.get("override") is not None else None,
    )


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
    text = value[:100] if isinstance(value, str) else value
    return repr(text)[:110]
