"""A whole robots.txt as JSON, with rates and usage as declared and as one agent applies them: from bytes to bytes."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import Any, TypeVar

from robots_core.lint.linter import lint
from robots_core.robots.agents import Agent
from robots_core.robots.as_json import (
    dumped,
    extension_members,
    group_members,
    rule_members,
    span_members,
    window_members,
)
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.groups import Group
from robots_core.robots.lines import Directive, Key, readable
from robots_core.robots.rates import (
    CrawlDelay,
    Parsed,
    RequestRate,
    Timetable,
    VisitTime,
    read_crawl_delay,
    read_request_rate,
    read_visit_time,
    schedule,
)
from robots_core.robots.robots_txt import Reading, RobotsTxt
from robots_core.robots.usage import USAGE_KEYS, UsageTerms

T = TypeVar("T")
_Members = dict[str, Any]


def file_json(
    body: bytes, dialect: str, reader: Agent | None, content_type: str | None, site: str | None, *, truncated: bool
) -> bytes:
    """An object with the members of RobotsFileOut from `text` on, as `dialect` groups the file.

    `reader` is the agent that the member of this name is about. `content_type` and `site` are as for `lint`.
    """
    robots = RobotsTxt(body, truncated=truncated)
    reading = robots.reading(DIALECTS[dialect])
    members = {
        "text": dumped(robots.body.decode("utf-8", "replace")),
        "groups": groups_json(reading),
        "reader": dumped(reader and _reader(reading, reader)),
        "sitemaps": dumped(robots.sitemaps),
        "licenses": dumped(robots.licenses),
        "extensions": b"[%b]" % b",".join(dumped(extension_members(it)) for it in robots.extensions),
        "warnings": dumped([asdict(advice) for advice in lint(robots, content_type, site)]),
    }
    return b"{%b}" % b",".join(b'"%b":%b' % (name.encode(), text) for name, text in members.items())


def groups_json(reading: Reading) -> bytes:
    """An array with the members of RobotsGroupOut for each group of a file."""
    # One after another: all members of a hostile file together take ten times as much memory as their JSON.
    return b"[%b]" % b",".join(dumped(_group(group)) for group in reading.groups)


def _group(group: Group) -> _Members:
    members = group.members
    usages = [member for member in members if member.key in USAGE_KEYS]
    return {
        "agents": list(map(readable, group.agents)),
        "line": group.line,
        "rules": list(map(rule_members, group.rules)),
        "members": list(map(extension_members, members)),
        "declared": {
            "crawl_delays": list(map(_delay, _read(members, Key.CRAWL_DELAY, read_crawl_delay))),
            "request_rates": list(map(_request_rate, _read(members, Key.REQUEST_RATE, read_request_rate))),
            "visit_times": list(map(_visit_time, _read(members, Key.VISIT_TIME, read_visit_time))),
        },
        "usage": _usage(UsageTerms(usages)) if usages else None,
    }


def _reader(reading: Reading, agent: Agent) -> _Members:
    selection = reading.select(agent)
    terms = None if selection is None else reading.terms(selection, agent)
    return {
        "agent": agent.token,
        "policy": agent.policy,
        "exempt": agent.exempt,
        "group": None if selection is None else group_members(selection.token, selection.groups[0]),
        "crawl_delay": terms and terms.crawl_delay and _delay(terms.crawl_delay),
        "schedule": [] if terms is None else list(map(span_members, schedule(terms.rates))),
        "visits": None if terms is None or terms.visits is None else _open(terms.visits),
        "usage": terms and terms.usage and _usage(terms.usage),
    }


def _read(lines: Iterable[Directive], wanted: Key, parse: Callable[[str, int], Parsed[T]]) -> Iterator[T]:
    for directive in lines:
        if directive.key is wanted:
            declared = parse(directive.text, directive.line).value
            if declared is not None:
                yield declared


def _delay(delay: CrawlDelay) -> _Members:
    return {"seconds": delay.seconds, "line": delay.line, "capped": delay.capped}


def _request_rate(rate: RequestRate) -> _Members:
    return {
        "documents": rate.documents,
        "seconds": rate.seconds,
        "interval": rate.interval,
        "window": rate.window and window_members(rate.window),
        "line": rate.line,
    }


def _visit_time(time: VisitTime) -> _Members:
    return {**window_members(time.window), "line": time.line}


def _usage(terms: UsageTerms) -> _Members:
    return {
        "paths": [
            {"path": path, "content_usage": {name: it.value for name, it in stated.items()}}
            for path, stated in terms.by_path
        ],
        "content_signal": {name: it.value for name, it in terms.signals.items()},
        "ai_training": list(map(rule_members, terms.ai_training)),
    }


def _open(table: Timetable[bool]) -> list[_Members]:
    ends = (*table.starts[1:], 24 * 60)
    return [
        {"start": _clock(start), "end": _clock(end)}
        for start, end, is_open in zip(table.starts, ends, table.values, strict=True)
        if is_open
    ]


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
