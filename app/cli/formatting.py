"""Answers as lines of text. Text of sites is escaped so that it cannot control a terminal."""

from collections.abc import Iterator, Mapping
from typing import Any

from robots_core.robots.access import BODY_LIMIT


def printable(text: str) -> str:
    """The text on one line, with characters that are not printable escaped as in Python."""
    return text if text.isprintable() else "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def answer_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    """The lines of an answer of `GET /v1/allowed`, the verdict first."""
    members = {
        answer["verdict"]: answer["url"],
        "agent": f"{answer['agent']}, by {answer['dialect']}",
        "reason": answer["reason"],
        "because": answer["explanation"]["summary"],
        "rule": rule_text(answer["rule"]),
        "group": _group(answer["group"]),
        "rate": rate_text(answer["rate"], answer.get("next_rate")),
        "visit": visit_text(answer["visit"]),
        "usage": _usage(answer["usage"]),
        "purposes": _purposes(answer.get("purposes")),
        "edge": _edge(answer.get("edge")),
        "robots": _robots(answer["robots"]),
    }
    for name, text in members.items():
        if text is not None:
            yield f"{name:<9} {printable(text)}"
    for note in answer.get("notes") or ():
        yield f"{'note':<9} {printable(_note(note))}"
    for text in _details(answer["explanation"]):
        yield printable(text)


def row_line(row: Mapping[str, Any]) -> str:
    """One line for a row of `POST /v1/test`."""
    rule = row["rule"]
    why = f"line {rule['line']}: {rule['text']}" if rule else row["explanation"]["summary"]
    return printable(f"{row['verdict']:<9} {row['agent']} ({row['dialect']})  {row['url']}  {why}")


def row_details(row: Mapping[str, Any]) -> Iterator[str]:
    """The further lines of a row, indented: rate, timeline, explanation."""
    if row["partial"]:
        yield f"  lines behind the first {BODY_LIMIT:,} bytes, which are not read, could say otherwise"
    rate = rate_text(row["rate"], row["next_rate"])
    if rate is not None:
        yield f"  rate {printable(rate)}"
    purposes = _purposes(row.get("purposes"))
    if purposes is not None:
        yield f"  purposes {purposes}"
    for note in row.get("notes") or ():
        yield f"  note {printable(_note(note))}"
    for entry in row.get("timeline") or ():
        yield f"  {printable(_entry(entry))}"
    for text in _details(row["explanation"]):
        yield f"  {printable(text)}"


def rule_text(rule: Mapping[str, Any] | None) -> str | None:
    """A rule with its line number, or None."""
    return None if rule is None else f"line {rule['line']}: {rule['directive']}: {rule['pattern']}"


def _group(group: Mapping[str, Any] | None) -> str | None:
    return None if group is None else f"{group['token']} (line {group['line']})"


def rate_text(rate: Mapping[str, Any] | None, following: Mapping[str, Any] | None = None) -> str | None:
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


def visit_text(visit: Mapping[str, Any] | None) -> str | None:
    """Whether a visit is welcome now, or None."""
    if visit is None:
        return None
    return "welcome now" if visit["now"] else f"not welcome now; next: {visit['next_open'] or 'never'}"


def _usage(usage: Mapping[str, Any] | None) -> str | None:
    if usage is None:
        return None
    signals = (usage["content_usage"], usage["content_signal"])
    more = f" and {usage['more']} more" if usage["more"] else ""
    return ", ".join(f"{name}={value}" for signal in signals for name, value in signal.items()) + more or None


def _purposes(purposes: Mapping[str, Any] | None) -> str | None:
    if not purposes:
        return None
    lines = {name: f" (line {it['line']})" if it["line"] else "" for name, it in purposes.items()}
    return ", ".join(f"{name} {it['state']}{lines[name]}" for name, it in purposes.items())


def _note(note: Mapping[str, Any]) -> str:
    return f"{note['code']}: {note['message']}"


def _edge(edge: Mapping[str, Any] | None) -> str | None:
    return (
        None if edge is None else f"pages {edge['state']} since {edge['since']}: {edge['count']}, last {edge['status']}"
    )


def _robots(robots: Mapping[str, Any]) -> str:
    what = [str(robots[name]) for name in ("outcome", "status", "cause") if robots[name] is not None]
    where = f" (at {robots['final_url']})" if robots["final_url"] else ""
    return f"{robots['url']}{where}: {', '.join(what) or 'not fetched yet'}"


def _entry(entry: Mapping[str, Any]) -> str:
    days, rest = divmod(entry["after"], 86_400)
    hours, seconds = divmod(rest, 3600)
    minutes = seconds // 60
    parts = [f"{number} {unit}" for number, unit in ((days, "d"), (hours, "h"), (minutes, "min")) if number]
    stale = ", from the copy" if entry["stale"] else ""
    return f"after {' '.join(parts) or '0 s'}: {entry['verdict']} ({entry['reason']}{stale})"


def _details(explanation: Mapping[str, Any]) -> Iterator[str]:
    if "rules" not in explanation:
        return
    yield f"path      {explanation['path']}"
    yield f"found     {explanation['group']}"
    for rule in explanation["rules"]:
        yield f"matched   line {rule['line']}: {rule['directive']}: {rule['pattern']} ({rule['length']} bytes)"
    omitted = explanation["matched"] - len(explanation["rules"])
    if omitted > 0:
        yield f"          and {omitted} more"
    for span in explanation["schedule"]:
        yield f"{span['start']}-{span['end']} {rate_text(span['rate']) or 'no limit'}"
