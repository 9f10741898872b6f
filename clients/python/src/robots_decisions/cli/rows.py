"""Answers as rows: what is printed of each line, and how it is counted."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from robots_decisions import Unanswered, Verdict
from robots_decisions.cli.asking import Answer
from robots_decisions.cli.entries import UNREADABLE, Entry, Line, NotAsked
from robots_decisions.cli.instants import rfc3339

Row: TypeAlias = dict[str, Any]
"""The members of a row, in the order of its columns."""

COLUMNS: Mapping[str, type] = {
    "line": int, "url": str, "agent": str, "verdict": str, "reason": str, "rule": str, "rule_line": int,
    "version": str, "interval": float, "retry_at": str, "detail": str,
}  # fmt: skip
"""The members of a row about a page, and their types. Each may be null."""

LOG_COLUMNS: Mapping[str, type] = {
    "line": int, "url": str, "agent": str, "time": str, "verdict": str, "reason": str, "rule": str, "rule_line": int,
    "version": str, "override": str, "interval": float, "early": float, "detail": str,
}  # fmt: skip
"""The members of a row about a fetch of a log."""

ORIGIN_COLUMNS: Mapping[str, type] = {
    "line": int, "origin": str, "outcome": str, "status": int, "cause": str, "fetched_at": str, "detail": str,
}  # fmt: skip
"""The members of a row about an origin."""

UNKNOWN = "unknown"
"""The reason of a line that the service has no version of the file for."""

_NO_VERSION = 404
INVALID = frozenset({400, 413, 422})
"""Statuses that the service refuses a question with."""

_OUTCOMES = frozenset({"successful", "unavailable", "unreachable"})


class Outcome(NamedTuple):
    """The row of a line, and what it counts as: a verdict, an outcome of a fetch, or nothing; and the reason."""

    row: Row
    kind: str | None
    reason: str
    fetch: tuple[str, str, float, float | None] | None = None
    """Of a line of a log: the origin, the crawler, the instant, and the interval that was in force."""


def row_of_page(line: Line, answer: Answer) -> Outcome:
    """The row of a page of a list."""
    row: Row = dict.fromkeys(COLUMNS)
    row["line"] = line.number
    if isinstance(line.entry, Entry):
        row["url"] = line.entry.url
    return _decided(row, answer)


def row_of_fetch(line: Line, answer: Answer) -> Outcome:
    """The row of a fetch of a log."""
    row: Row = dict.fromkeys(LOG_COLUMNS)
    row["line"] = line.number
    entry = line.entry
    if not isinstance(entry, Entry) or entry.at is None:
        return _decided(row, answer)
    row |= {"url": entry.url, "agent": entry.agent, "time": rfc3339(entry.at), "override": entry.override}
    outcome = _decided(row, answer)
    if not isinstance(answer, Verdict):
        return outcome
    if urlsplit(entry.url).path == "/robots.txt":  # no rate holds for the file itself
        return outcome
    agent = str(answer.members.get("agent"))[:100]
    return outcome._replace(fetch=(line.origin, agent, entry.at, answer.interval))


def row_of_origin(line: Line, answer: Answer) -> Outcome:
    """The row of an origin, of which only the fetch of its file matters."""
    row: Row = dict.fromkeys(ORIGIN_COLUMNS)
    row |= {"line": line.number, "origin": line.origin or None}
    robots = answer.members.get("robots") if isinstance(answer, Verdict) else None
    if isinstance(answer, Verdict) and isinstance(robots, dict) and robots.get("outcome") in _OUTCOMES:
        for name in ("outcome", "status", "cause", "fetched_at"):
            row[name] = robots.get(name) if isinstance(robots.get(name), ORIGIN_COLUMNS[name]) else None
        return Outcome(row, row["outcome"], "")
    if isinstance(answer, Verdict):
        row["detail"] = "The file is still being fetched."
        return Outcome(row, None, "unanswered")
    outcome = _decided(row, answer)
    del row["reason"]
    return outcome


def _decided(row: Row, answer: Answer) -> Outcome:
    if isinstance(answer, Verdict):
        row["agent"] = row["agent"] or answer.agent
        row["verdict"], row["reason"] = answer.verdict, answer.reason
        row["rule"], row["rule_line"] = answer.rule, answer.line
        version = answer.members.get("version")
        row["version"] = version if isinstance(version, str) else None
        row["interval"] = answer.interval
        if "retry_at" in row and answer.retry_at is not None:
            row["retry_at"] = rfc3339(answer.retry_at.timestamp())
        return Outcome(row, answer.verdict, answer.reason)
    if isinstance(answer, NotAsked):
        row["reason"], row["detail"] = answer.reason, answer.detail
    else:
        row["reason"], row["detail"] = _why(answer), answer.why
    return Outcome(row, None, row["reason"])


def _why(answer: Unanswered) -> str:
    if answer.status == _NO_VERSION:
        return UNKNOWN
    return UNREADABLE if answer.status in INVALID else "unanswered"


class Counts:
    """How many lines there are of each verdict and reason, and fetches that were too early."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str | None, str]] = Counter()
        self.early = 0

    def add(self, kind: str | None, reason: str, number: int = 1) -> None:
        """Count lines."""
        self._counts[kind, reason] += number

    @property
    def total(self) -> int:
        """All lines."""
        return sum(self._counts.values())

    def of_kind(self, kind: str | None, *reasons: str) -> int:
        """The lines of a verdict; without one, those of these reasons."""
        return sum(n for (own, reason), n in self._counts.items() if own == kind and (not reasons or reason in reasons))

    def saved(self) -> Sequence[Any]:
        """The counts, to be added to others."""
        return [[kind, reason, number] for (kind, reason), number in self._counts.items()]

    def text(self, what: str) -> str:
        """The counts in a sentence."""
        parts = []
        for kind in sorted({kind for kind, _ in self._counts if kind}):
            reasons = sorted((reason, n) for (own, reason), n in self._counts.items() if own == kind and reason)
            named = ", ".join(f"{n} {reason}" for reason, n in reasons)
            parts.append(f"{self.of_kind(kind)} {kind}" + (f" ({named})" if named else ""))
        parts += [f"{n} {reason}" for (kind, reason), n in sorted(self._counts.items(), key=str) if kind is None]
        early = f"; {self.early} too early" if self.early else ""
        return f"{self.total} {what}{'' if self.total == 1 else 's'}{': ' if parts else ''}{', '.join(parts)}{early}"
