"""Values of answers that are not trusted."""

import json
import math
import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

_REASON = re.compile(r"[a-z_]{1,40}")
_VERSION = re.compile(r"[!-~]{1,128}")


def json_value(body: bytes) -> Any:
    """The value of JSON, or None."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def number(value: object) -> float | None:
    """A finite number of 0 or more."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        converted = float(value)
    except OverflowError:
        return None
    return converted if math.isfinite(converted) and converted >= 0 else None


def instant(value: object) -> datetime | None:
    """An RFC 3339 instant."""
    if not isinstance(value, str) or len(value) > 64:
        return None
    try:
        # Python 3.10 does not read a Z.
        at = datetime.fromisoformat(f"{value[:-1]}+00:00" if value.endswith("Z") else value)
    except ValueError:
        return None
    return None if at.tzinfo is None else at


def http_date(value: str | None, now: float) -> float:
    """The time of the service, whose clock `retry_at` refers to; `now` if unknown."""
    if value is None or len(value) > 64:
        return now
    try:
        return parsedate_to_datetime(value).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return now


def reason(message: Mapping[str, Any]) -> str:
    """The reason of an answer, if it is a word."""
    value = message.get("reason")
    return value if isinstance(value, str) and _REASON.fullmatch(value) else "unknown"


def rule_of(message: Mapping[str, Any]) -> tuple[str | None, int | None]:
    """The deciding line of robots.txt, and its number."""
    rule = message.get("rule")
    if not isinstance(rule, dict):
        return None, None
    line = rule.get("line")
    written = f"{text(rule.get('directive'))}: {text(rule.get('pattern'))}"
    return written, line if isinstance(line, int) else None


def summary(message: Mapping[str, Any]) -> str:
    """The service's own sentence about an answer, or what is known without it."""
    explanation = message.get("explanation")
    said = explanation.get("summary") if isinstance(explanation, dict) else None
    if isinstance(said, str) and said.strip():
        return sentence(said)
    rule, line = rule_of(message)
    return f"{reason(message)}." if rule is None else f"line {line} of robots.txt: {rule}."


def version_of(message: Mapping[str, Any]) -> str | None:
    """The id of the robots.txt that decided."""
    value = message.get("version")
    return value if isinstance(value, str) and _VERSION.fullmatch(value) else None


def detail(message: object) -> str:
    """The detail of a problem, or nothing."""
    value = message.get("detail") if isinstance(message, dict) else None
    return text(value) if isinstance(value, str) else ""


def text(value: object) -> str:
    """Untrusted text for a log: bounded, on one line."""
    return "".join(char if char.isprintable() else "?" for char in str(value)[:300])


def sentence(value: str) -> str:
    """Untrusted text for a log, as a sentence."""
    said = text(value).strip()
    return said if said.endswith((".", "!", "?")) else f"{said}."


def shown(value: object) -> str:
    """An unexpected value for a log."""
    return text(repr(value) if value is None or isinstance(value, str | int | float) else type(value).__name__)
