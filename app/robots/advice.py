"""Warnings for the site owner: which line does not say what it seems to, and what to write instead (spec J5)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

from app.robots import google, rfc9309
from app.robots.access import BODY_LIMIT, is_plain_text
from app.robots.document import Document, Group
from app.robots.rates import (
    SEZNAM_RATES,
    Problem,
    RequestRate,
    clamp_warnings,
    read_crawl_delay,
    read_request_rate,
    read_visit_time,
)
from app.robots.rfc9309 import RFC9309
from app.robots.seznam import SEZNAM
from app.robots.syntax import LINE_LIMIT, RULE_KEYS, Directive, Key, Oddity, readable

LINES_PER_CODE = 100
"""So many lines are told about with one code; a file of half a megabyte can be wrong a quarter of a million times."""


@dataclass(frozen=True, slots=True)
class Advice:
    """One warning: `code` for programs, the 1-based `line` it is about, and what to write instead, as a sentence."""

    code: str
    line: int
    message: str


def advise(document: Document, content_type: str | None = None) -> list[Advice]:
    """Warnings by line; `content_type` is the field's value where the file was fetched, None where that is unknown."""
    found = (
        _file(document, content_type),
        _writing(document),
        _agents(document),
        _rules(document),
        _members(document),
        _versions(document),
        _deprecated(document),
    )
    return sorted(chain.from_iterable(map(_bounded, _by_code(chain.from_iterable(found)))), key=lambda it: it.line)


def _by_code(found: Iterable[Advice]) -> Iterable[list[Advice]]:
    codes: dict[str, list[Advice]] = {}
    for advice in found:
        codes.setdefault(advice.code, []).append(advice)
    return codes.values()


def _bounded(found: list[Advice]) -> Iterator[Advice]:
    yield from islice(found, LINES_PER_CODE)
    more = len(found) - LINES_PER_CODE
    if more > 0:
        next_one = found[LINES_PER_CODE]
        yield Advice(next_one.code, next_one.line, f"from here on, {more} more lines have the same fault")


def _file(document: Document, content_type: str | None) -> Iterator[Advice]:
    scan = document.scan
    if scan.bom:
        yield Advice("bom", 1, "the file starts with a byte order mark; save it as UTF-8 without one")
    if scan.truncated:
        end = scan.lines
        yield Advice("file-truncated", end, f"only the first {BODY_LIMIT} octets are read; make the file shorter")
    if document.is_html:
        yield Advice("html-body", 1, "the body is a page, not a robots.txt; answer 404 where there is no file")
    if content_type is not None and not is_plain_text(content_type):
        yield Advice("not-text-plain", 1, f"the file is served as {content_type[:80]!r}; serve it as text/plain")
    if not document.is_utf8:
        yield Advice("non-utf8", 1, "the file is not UTF-8; save it as UTF-8")
    for line in scan.long_lines:
        yield Advice(
            "line-truncated", line, f"only the first {LINE_LIMIT} octets of the line are read; make it shorter"
        )


def _writing(document: Document) -> Iterator[Advice]:
    oddities, unknown_keys = document.scan.oddities, document.scan.unknown_keys
    texts = document.line_texts(oddities) if oddities else {}
    for line, key, value in document.scan.directives if oddities else ():
        if line not in oddities:
            continue
        meant = f"{str(key).capitalize()}: {_shown(value)}"
        if oddities[line] is Oddity.NO_COLON:
            yield Advice("no-colon", line, f"there is no colon in {_cut(texts[line])!r}; write {meant!r}")
        else:
            yield Advice("typo-key", line, f"{_cut(texts[line])!r} is read as {meant!r} by some only; write that")
    for line, unknown in unknown_keys.items():
        yield Advice("unknown-key", line, f"no robot knows {_shown(unknown)!r}, so the line says nothing; remove it")


def _agents(document: Document) -> Iterator[Advice]:
    for line, _, value in document.scan.with_keys({Key.USER_AGENT}):
        if not rfc9309.cut(value):
            message = f"the agent {_shown(value)!r} names nobody; write a product token such as ExampleBot, or *"
            yield Advice("empty-agent-token", line, message)
        elif not google.cut(value):
            message = f"Google reads no name in {_shown(value)!r}: a token should begin with a letter, '-' or '_'"
            yield Advice("empty-agent-token", line, message)


def _rules(document: Document) -> Iterator[Advice]:
    groups = document.groups(RFC9309.grammar)
    for line, key, value in groups.orphans:
        if key in RULE_KEYS:
            said = f"{str(key).capitalize()}: {_shown(value)}"
            message = f"{said!r} stands before any User-agent line and binds nobody; put 'User-agent: *' above it"
            yield Advice("rule-before-agent", line, message)
    for group in groups.groups:
        for line, _, value in group.rules:
            if value and value[0] not in "/*":
                message = (
                    f"{_shown(value)!r} never matches, since every path begins with '/'; write {'/' + _shown(value)!r}"
                )
                yield Advice("rule-no-slash", line, message)


def _members(document: Document) -> Iterator[Advice]:
    rates: list[RequestRate] = []
    for line, key, value in document.scan.with_keys({Key.REQUEST_RATE, Key.CRAWL_DELAY, Key.VISIT_TIME}):
        problem, rate = _read_member(line, key, readable(value))
        if problem is not None:
            yield _told(problem)
        if rate is not None:
            rates.append(rate)
    yield from map(_told, clamp_warnings(rates, None, SEZNAM_RATES))
    for group in document.groups(RFC9309.grammar).groups:
        yield from _between_agents(group)


def _read_member(line: int, key: Key, value: str) -> tuple[Problem | None, RequestRate | None]:
    if key is Key.REQUEST_RATE:
        rate = read_request_rate(value, line)
        return rate.problem, rate.value
    if key is Key.CRAWL_DELAY:
        return read_crawl_delay(value, line).problem, None
    if key is Key.VISIT_TIME:
        return read_visit_time(value, line).problem, None
    return None, None


def _told(problem: Problem) -> Advice:
    return Advice(str(problem.code), problem.line, problem.message)


def _between_agents(group: Group) -> Iterator[Advice]:
    for line, key, _, listed in group.members:
        if listed < len(group.agents):
            name = str(key).capitalize()
            message = (
                f"{name} stands between User-agent lines: for some robots it ends the group, for others all of"
                " them share the rules below; give each agent a group and rules of its own"
            )
            yield Advice("rate-between-agents", line, message)


def _versions(document: Document) -> Iterator[Advice]:
    groups = document.groups(SEZNAM.grammar)
    yield from (_misplaced(member) for member in groups.orphans if member[1] is Key.ROBOT_VERSION)
    for group in groups.groups:
        versions = [member for member in group.members if member[1] is Key.ROBOT_VERSION]
        for line, key, value, _ in versions[1:] if group.version_2 else versions:
            yield _misplaced((line, key, value))
        for line, _, value in group.rules:
            if group.version_2 and value == "/":
                message = "with Robot-version 2.0, '/' is the root page alone; write '/*' for the whole site"
                yield Advice("v2-root-only", line, message)


def _misplaced(version: Directive) -> Advice:
    line, _, value = version
    shown = _shown(value)
    message = f"Robot-version {shown!r} has no effect here; put 'Robot-version: 2.0' right below the User-agent lines"
    return Advice("version-misplaced", line, message)


_OUT_OF_USE = {
    Key.ROBOT_VERSION: "Robot-version is deprecated; write rules of version 1.0 with * and $",
    Key.NOINDEX: "Noindex in robots.txt has no effect since 2019; use a robots meta tag or X-Robots-Tag",
    Key.HOST: "Host has no effect since 2018; redirect to the main host instead",
}


def _deprecated(document: Document) -> Iterator[Advice]:
    for line, key, _ in document.scan.with_keys(_OUT_OF_USE.keys()):
        yield Advice("deprecated", line, _OUT_OF_USE[key])


def _shown(value: str) -> str:
    return _cut(readable(value))


def _cut(text: str) -> str:
    return text if len(text) <= 80 else text[:80] + "…"
