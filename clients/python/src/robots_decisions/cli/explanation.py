"""An answer of `GET /v1/allowed` with `explain`, as lines for people. They are not escaped."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_SOURCES = {
    "memory": "from memory",
    "store": "from the store",
    "fetched": "fetched for this answer",
    "revalidated": "revalidated for this answer, unchanged",
    "ingested": "sent by a crawler that fetched it",
}
_PRECEDENCE = {"draft1996": "the first in the file decides"}


def explanation(answer: Mapping[str, Any], before: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The lines: the verdict and why, what led to it, and what is known beside it; then the versions `before`."""
    explained = answer["explanation"]
    yield f"{answer['verdict']} ({answer['reason']}): {explained['summary']}"
    yield ""
    yield f"URL       {answer['url']}"
    yield f"agent     {answer['agent']}, read by the dialect {answer['dialect']}"
    yield from _file(answer["robots"])
    if "rules" in explained:
        yield f"group     {explained['group']}"
        yield from _rules(explained, answer["dialect"])
    if answer["override"] is not None:
        yield from _override(answer["override"])
    rate = _rate(answer["rate"], answer.get("next_rate"))
    if rate is not None:
        yield f"rate      {rate}"
    visit, usage, edge = answer["visit"], answer["usage"], answer.get("edge")
    if visit is not None:
        welcome = "welcome now" if visit["now"] else f"not welcome now; next: {visit['next_open'] or 'never'}"
        yield f"visit     {welcome}"
    for stated in () if usage is None else (usage["content_usage"], usage["content_signal"]):
        for name, value in stated.items():
            yield f"usage     {name}={value}"
    for name, purpose in (answer.get("purposes") or {}).items():
        line = f" (line {purpose['line']})" if purpose["line"] else ""
        yield f"purpose   {name}: {purpose['state']}{line}"
    if edge is not None:
        yield f"edge      pages {edge['state']} since {edge['since']}: {edge['count']}, last {edge['status']}"
    for note in answer.get("notes") or ():
        yield f"note      {note['code']}: {note['message']}"
    if before:
        yield ""
        yield from map(_version, before)


def _rate(rate: Mapping[str, Any] | None, following: Mapping[str, Any] | None) -> str | None:
    """A rate in words, and the next one; None for no limit at any time."""
    then = ""
    if following is not None:
        interval = following["interval"]
        pace = "no limit" if interval is None else f"one document every {interval:g} s"
        then = f", until {following['at']}, then {pace}"
    if rate is None:
        return f"no limit{then}" if then else None
    line = "" if rate["line"] is None else f", line {rate['line']}"
    inherited = " of the group for *" if rate["inherited"] else ""
    differs = rate["declared_interval"] != rate["interval"]
    declared = f", declared as {rate['declared_interval']:g} s" if differs else ""
    return f"one document every {rate['interval']:g} s ({rate['source']}{line}{inherited}{declared}){then}"


def _file(robots: Mapping[str, Any]) -> Iterator[str]:
    if robots["outcome"] is None:
        yield f"file      {robots['url']} has not been fetched yet"
        return
    outcome = ", ".join(str(robots[name]) for name in ("outcome", "status", "cause") if robots[name] is not None)
    yield f"file      {robots['url']}: {outcome}"
    if robots["final_url"]:
        yield f"          redirected to {robots['final_url']}"
    source = _SOURCES.get(robots["source"], robots["source"])
    yield f"          fetched at {robots['fetched_at']}, {robots['age']} s ago; {source}"
    if robots["failing_since"]:
        copy = "; the copy above is used meanwhile" if robots["outcome"] == "successful" else ""
        yield f"          fetches have failed since {robots['failing_since']}{copy}"
    if robots["truncated"]:
        yield "          the file is too long and was truncated"
    if robots["recheck_at"]:
        yield f"          due for a recheck at {robots['recheck_at']}"


def _rules(explained: Mapping[str, Any], dialect: str) -> Iterator[str]:
    matched, shown = explained["matched"], explained["rules"]
    precedence = _PRECEDENCE.get(dialect, "the longest decides; allow wins a tie")
    yield f"rules     {matched or 'none'} matched {explained['path']}" + (f"; {precedence}" if matched > 1 else "")
    for number, rule in enumerate(shown):
        yield f"          {'decides: ' if number == 0 else 'and '}{_rule(rule)} ({rule['length']} bytes)"
    if matched > len(shown):
        yield f"          and {matched - len(shown)} more"


def _rule(rule: Mapping[str, Any]) -> str:
    return f"line {rule['line']}: {rule['directive']}: {rule['pattern']}"


def _override(override: Mapping[str, Any]) -> Iterator[str]:
    effect = "would apply, but is in shadow mode" if override["shadow"] else "applies"
    until = f", until {override['expires_at']}" if override["expires_at"] else ""
    yield f"override  {override['id']} {effect}: {override['action']} for {override['scope']}{until}"
    yield f"          because {override['reason']}"


def _version(version: Mapping[str, Any]) -> str:
    rule = f", {_rule(version['rule'])}" if version["rule"] else ""
    what = version["outcome"] if version["size"] is None else f"version {version['id']}"
    until = version["until"] or "now"
    return f"{version['from']} to {until}: {version['verdict']} ({version['reason']}{rule}), by {what}"
