"""Rules, rates and windows as members of JSON objects, without pydantic, which a helper process does not import."""

import json
from collections.abc import Iterable
from json.encoder import encode_basestring as quoted
from typing import Any

from robots_core.robots.lines import Directive, readable
from robots_core.robots.rates import Rate, Span, Window


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


def span_members(span: Span) -> dict[str, Any]:
    """A part of the day and its rate: the members of SpanOut."""
    return {"start": span.start, "end": span.end, "rate": span.rate and _rate(span.rate)}


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


def _rate(rate: Rate) -> dict[str, Any]:
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
