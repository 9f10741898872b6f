"""Rules, rates and windows as members of JSON objects, without pydantic, which a helper process does not import."""

import json
from collections.abc import Iterable
from json.encoder import encode_basestring as quoted
from typing import Any

from robots_core.robots.groups import Group
from robots_core.robots.lines import Directive, readable
from robots_core.robots.rates import Rate, Span, Window

AGENTS_ROOM = 4096
"""Bytes of JSON for the agents of the group that applies."""


def dumped(value: object) -> bytes:
    """The value as JSON in UTF-8."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def rule_members(rule: Directive) -> dict[str, Any]:
    """A rule as written: the members of RuleOut."""
    line, key, value = rule
    return {"directive": str(key), "pattern": readable(value), "line": line}


def extension_members(directive: Directive) -> dict[str, Any]:
    """A line that decides nothing, as written: the members of ExtensionOut."""
    line, key, value = directive
    return {"key": str(key), "value": readable(value), "line": line}


def group_members(token: str, group: Group) -> dict[str, Any]:
    """The group that `token` selected: the members of GroupOut."""
    agents = group.agents
    shown = fitting(map(readable, agents), AGENTS_ROOM)
    return {"token": token, "agents": shown, "more_agents": len(agents) - len(shown), "line": group.line}


def span_members(span: Span) -> dict[str, Any]:
    """A part of the day and its rate: the members of SpanOut."""
    return {"start": span.start, "end": span.end, "rate": span.rate and rate_members(span.rate)}


def rate_members(rate: Rate) -> dict[str, Any]:
    """A rate that holds all the time: the members of RateOut."""
    return {
        "interval": rate.interval,
        "documents": rate.documents,
        "seconds": rate.seconds,
        "declared_interval": rate.declared_interval,
        "source": rate.source,
        "line": rate.line or None,
        "inherited": rate.inherited,
        "window": rate.window and window_members(rate.window),
        "valid_until": None,
    }


def window_members(window: Window) -> dict[str, Any]:
    """A daily window: the members of WindowOut."""
    return {"start": window.start_text, "end": window.end_text}


def fitting(texts: Iterable[str], room: int) -> list[str]:
    """The first of the texts whose JSON fits into `room` bytes."""
    found: list[str] = []
    for text in texts:
        room -= json_size(text)
        if room < 0:
            break
        found.append(text)
    return found


def json_size(text: str) -> int:
    """Bytes of the text as a JSON string with a separator; it has no lone surrogates."""
    return len(quoted(text).encode()) + 1
