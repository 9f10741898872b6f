"""Lines of the log of a crawl: JSON lines of a crawler or of the decision log, or the log of a proxy or web server."""

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from robots_decisions.cli.combined_log import ServedRequest, read_request
from robots_decisions.cli.entries import AGENT_LIMIT, MARK, NO_URL, REFUSED, UNREADABLE, URL_LIMIT, Entry, NotAsked
from robots_decisions.cli.instants import read_instant, rfc3339

LOGGED_LINE_LIMIT = 8 * URL_LIMIT
"""Bytes of the longest line."""

_SHOWN = 100  # characters of a value that an error quotes


class Defaults(NamedTuple):
    """The crawler of lines without an agent, and the origin of lines with a path alone."""

    agent: str | None = None
    origin: str | None = None


def read_entry(written: bytes, defaults: Defaults) -> Entry:
    """Read a line. Raise NotAsked."""
    if len(written) >= LOGGED_LINE_LIMIT:
        raise NotAsked(UNREADABLE, f"The line is longer than {LOGGED_LINE_LIMIT} bytes.")
    try:
        line = json.loads(written.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        line = None
    if isinstance(line, dict):
        return _from_json(line, defaults)
    text = written.decode("utf-8", "replace").strip()
    request = read_request(text)
    if request is None:
        form = "neither a JSON object nor a line of the common or combined log format"
        raise NotAsked(UNREADABLE, f"{_shown(text)} is {form}.")
    return _from_request(request, defaults)


def _from_json(line: Mapping[str, Any], defaults: Defaults) -> Entry:
    if "mark" in line and "process" in line:
        raise NotAsked(MARK)
    verdict = line.get("verdict")
    if verdict in ("disallow", "defer"):
        raise NotAsked(REFUSED)
    if line.get("url") is None and ("url_sha256" in line or (verdict is not None and "origin" in line)):
        raise NotAsked(NO_URL)
    given = {name: value for name, value in line.items() if value is not None and not _is_blank(value)}
    return Entry(
        url=_absolute(_text(given, "url", URL_LIMIT), defaults),
        agent=_text({"agent": defaults.agent, **given}, "agent", AGENT_LIMIT),
        at=_time(given),
        dialect=_text(given, "dialect", AGENT_LIMIT) if "dialect" in given else None,
        override=_text(given, "override", AGENT_LIMIT) if "override" in given else None,
    )


def _from_request(request: ServedRequest, defaults: Defaults) -> Entry:
    if request.refused:
        raise NotAsked(REFUSED)
    if request.target is None:
        raise NotAsked(NO_URL)
    return Entry(
        url=_absolute(_text({"url": request.target}, "url", URL_LIMIT), defaults),
        agent=_text({"agent": request.agent or defaults.agent}, "agent", AGENT_LIMIT),
        at=request.at.timestamp(),
    )


def _is_blank(value: object) -> bool:
    return isinstance(value, str) and not value.strip()


def _absolute(url: str, defaults: Defaults) -> str:
    if not url.startswith("/"):
        return url
    if defaults.origin is None:
        raise NotAsked(UNREADABLE, f"{_shown(url)} is a path alone; give --origin.")
    return defaults.origin + url


def _text(line: Mapping[str, Any], name: str, limit: int) -> str:
    value = line.get(name)
    if value is None:
        raise NotAsked(UNREADABLE, f"The line has no {name}{'; give --agent' if name == 'agent' else ''}.")
    if not isinstance(value, str):
        raise NotAsked(UNREADABLE, f"{name} is {_shown(value)}; it must be a string.")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise NotAsked(UNREADABLE, f"{name} is {_shown(value)}, which is not valid Unicode.") from None
    if size > limit:
        raise NotAsked(UNREADABLE, f"{name} is {_shown(value)}, longer than {limit} bytes.")
    return value


def _time(line: Mapping[str, Any]) -> float:
    """The instant in Unix seconds."""
    value = line.get("time", line.get("at"))
    if value is None:
        raise NotAsked(UNREADABLE, "The line has neither time nor at.")
    at = read_instant(value) if isinstance(value, str) else None
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            rfc3339(value)
            at = float(value)
        except (ValueError, OverflowError, OSError):
            pass
    if at is None or at < 0 or not math.isfinite(at):
        form = "neither RFC 3339, such as 2026-11-21T18:30:00Z, nor Unix seconds"
        raise NotAsked(UNREADABLE, f"The time {_shown(value)} is {form}.")
    return at


def _shown(value: object) -> str:
    text = value[:_SHOWN] if isinstance(value, str) else value
    return repr(text)[: _SHOWN + 10]
