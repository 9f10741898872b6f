"""Answers as lines of text."""

from collections.abc import Iterator, Mapping
from typing import Any

from app.observability.logs import printable
from robots_core.robots.access import BODY_LIMIT

_PRECEDENCE = {"draft1996": "the first in the file decides"}


def answer_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    """The lines of an answer of `GET /v1/allowed`, the verdict first."""
    rule, group, robots = answer["rule"], answer["group"], answer["robots"]
    members = [
        (answer["verdict"], answer["url"]),
        ("agent", f"{answer['agent']}, by {answer['dialect']}"),
        ("reason", answer["reason"]),
        ("because", answer["explanation"]["summary"]),
        ("rule", rule and _rule(rule)),
        ("group", group and f"{group['token']} (line {group['line']})"),
        *_facts(answer),
        ("robots", _robots(robots)),
        *_explanation(answer),
    ]
    if "rules" in answer["explanation"]:
        members.append(("recheck", robots["recheck_at"]))
    yield from (printable(f"{name:<9} {text}") for name, text in members if text)


def row_lines(row: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a row of `POST /v1/test`; those after the first are indented."""
    rule = row["rule"]
    why = f"line {rule['line']}: {rule['text']}" if rule else row["explanation"]["summary"]
    yield printable(f"{row['verdict']:<9} {row['agent']} ({row['dialect']})  {row['url']}  {why}")
    for name, text in (*_facts(row), *map(_entry, row.get("timeline", ())), *_explanation(row)):
        yield printable(f"  {name:<9} {text}")


def _facts(answer: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What an answer or a row says beside its verdict: each fact with its name."""
    if answer["partial"]:
        yield "partial", f"lines behind the first {BODY_LIMIT:,} bytes, which are not read, could say otherwise"
    rate = _rate(answer["rate"], answer["next_rate"])
    if rate is not None:
        yield "rate", rate
    visit, usage = answer.get("visit"), answer.get("usage")
    if visit is not None:
        yield "visit", "welcome now" if visit["now"] else f"not welcome now; next: {visit['next_open'] or 'never'}"
    if usage is not None:
        stated = [*usage["content_usage"].items(), *usage["content_signal"].items()]
        more = f" and {usage['more']} more" if usage["more"] else ""
        yield "usage", ", ".join(f"{name}={value}" for name, value in stated) + more
    purposes = answer.get("purposes")
    if purposes:
        lines = {name: f" (line {it['line']})" if it["line"] else "" for name, it in purposes.items()}
        yield "purposes", ", ".join(f"{name} {it['state']}{lines[name]}" for name, it in purposes.items())
    for note in answer.get("notes") or ():
        yield "note", f"{note['code']}: {note['message']}"


def _explanation(answer: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """How the group was found, which rules matched, and the rates of the day, if `explain` was asked for."""
    explanation = answer["explanation"]
    if "rules" not in explanation:
        return
    rules, matched = explanation["rules"], explanation["matched"]
    yield "path", explanation["path"]
    yield "found", explanation["group"]
    for rule in rules:
        yield "matched", f"{_rule(rule)} ({rule['length']} bytes)"
    if matched > len(rules):
        yield "", f"and {matched - len(rules)} more"
    if matched > 1:
        yield "", _PRECEDENCE.get(answer["dialect"], "the longest decides; allow wins a tie")
    for span in explanation["schedule"]:
        yield f"{span['start']}-{span['end']}", _rate(span["rate"]) or "no limit"


def _rule(rule: Mapping[str, Any]) -> str:
    return f"line {rule['line']}: {rule['directive']}: {rule['pattern']}"


def _rate(rate: Mapping[str, Any] | None, following: Mapping[str, Any] | None = None) -> str | None:
    """A rate in words, and the next one; None for no limit at any time."""
    then = ""
    if following is not None:
        interval = following["interval"]
        pace = "no limit" if interval is None else f"one document every {interval:g} s"
        then = f", until {following['at']}, then {pace}"
    if rate is None:
        return f"no limit{then}" if then else None
    declared = ""
    if rate["declared_interval"] != rate["interval"]:
        declared = f", declared as {rate['declared_interval']:g} s"
    inherited = " of the group for *" if rate["inherited"] else ""
    where = f"{rate['source']}, line {rate['line']}{inherited}{declared}"
    return f"one document every {rate['interval']:g} s ({where}){then}"


def _robots(robots: Mapping[str, Any]) -> str:
    what = [str(robots[name]) for name in ("outcome", "status", "cause") if robots[name] is not None]
    where = f" (at {robots['final_url']})" if robots["final_url"] else ""
    return f"{robots['url']}{where}: {', '.join(what)}"


def _entry(entry: Mapping[str, Any]) -> tuple[str, str]:
    """An entry of a timeline."""
    days, rest = divmod(entry["after"], 86_400)
    hours, seconds = divmod(rest, 3600)
    parts = [f"{number} {unit}" for number, unit in ((days, "d"), (hours, "h"), (seconds // 60, "min")) if number]
    stale = ", from the copy" if entry["stale"] else ""
    return "after", f"{' '.join(parts) or '0 s'}: {entry['verdict']} ({entry['reason']}{stale})"
