"""Warnings for the site owner: which line does not say what it seems to, and what to write instead (spec J5)."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from app.robots.access import BODY_LIMIT, is_plain_text
from app.robots.dialects.dialect import Dialect
from app.robots.dialects.google import GOOGLE
from app.robots.dialects.rfc9309 import RFC9309
from app.robots.dialects.seznam import SEZNAM
from app.robots.groups import Groups, tokens_of
from app.robots.lines import (
    LINE_LIMIT,
    MEMBER_KEYS,
    RULE_KEYS,
    Directive,
    Form,
    Key,
    codes_of,
    key_of,
    readable,
)
from app.robots.rates import (
    SEZNAM_RATES,
    RateWarning,
    RateWarningCode,
    clamp_warnings,
    read_crawl_delay,
    read_request_rate,
    read_visit_time,
)
from app.robots.robots_txt import RobotsTxt, is_absolute
from app.robots.usage import read_dictionary, read_simple_dictionary, signal_parts, split_path

WARNINGS_PER_CODE: Final = 100
"""So many lines are named with one code: a file of half a megabyte can be wrong in a quarter of a million lines."""

LINES_CHECKED: Final = 10_000
"""So many lines of one kind are checked."""


class Warned(NamedTuple):
    """A line, 1-based, and what to write instead, in sentences."""

    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Advice:
    """One warning: `code` for programs, the 1-based `line` it is about, and what to write instead, in sentences."""

    code: str
    line: int
    message: str


class _File:
    """The file that is checked, as the dialects group its lines."""

    def __init__(self, robots: RobotsTxt, content_type: str | None) -> None:
        self.robots = robots
        self.scan = robots.scan
        self.content_type = content_type

    def groups(self, dialect: Dialect) -> Groups:
        """Its groups as `dialect` reads them."""
        return self.robots.reading(dialect).groups

    def lines(self, *keys: Key) -> Iterator[Directive]:
        """The first lines that have one of these keys, in either form that most robots take."""
        return map(self.scan.directive, self.robots.places(codes_of(keys))[:LINES_CHECKED])

    def places(self, codes: bytes) -> list[int]:
        """Where the first lines with one of these codes are."""
        return self.robots.places(codes)[:LINES_CHECKED]

    def number(self, place: int) -> int:
        """The number of the line at `place`."""
        return self.scan.lines.number(place)


def lint(robots: RobotsTxt, content_type: str | None = None) -> list[Advice]:
    """Warnings by line; `content_type` is the field's value where the file was fetched, None where that is unknown."""
    file = _File(robots, content_type)
    found = [advice for code, check in _CHECKS.items() for advice in _bounded(code, check(file))]
    return sorted(found, key=lambda advice: advice.line)


def _bounded(code: str, warned: Iterable[Warned]) -> Iterator[Advice]:
    for number, (line, message) in enumerate(islice(warned, WARNINGS_PER_CODE + 1)):
        if number == WARNINGS_PER_CODE:
            message = "From here on, more lines have the same fault."
        yield Advice(code, line, message)


def _bom(file: _File) -> Iterator[Warned]:
    if file.scan.bom:
        yield Warned(1, "The file starts with a byte order mark; save it as UTF-8 without one.")


def _file_truncated(file: _File) -> Iterator[Warned]:
    if file.scan.truncated:
        yield Warned(file.scan.lines.count, f"Only the first {BODY_LIMIT} bytes are read; make the file shorter.")


def _html_body(file: _File) -> Iterator[Warned]:
    if file.robots.is_html:
        yield Warned(1, "The body is an HTML page, not a robots.txt; answer 404 where there is no file.")


def _not_text_plain(file: _File) -> Iterator[Warned]:
    if file.content_type is not None and not is_plain_text(file.content_type):
        yield Warned(1, f"The file is served as {file.content_type[:80]!r}; serve it as text/plain.")


def _non_utf8(file: _File) -> Iterator[Warned]:
    if not file.robots.is_utf8:
        yield Warned(1, "The file is not UTF-8; save it as UTF-8.")


# Tried at the beginnings of lines only: from each byte of a line, it would be quadratic.
_LONG_LINE: Final = re.compile(rb"(?<![^\r\n])[^\r\n]{%d}[^\r\n]++" % LINE_LIMIT)
_LINE_END: Final = re.compile(rb"\r\n?|\n")


def _line_truncated(file: _File) -> Iterator[Warned]:
    body, number, counted = file.scan.lines.body, 1, 0
    for found in _LONG_LINE.finditer(body):
        number += sum(1 for _ in _LINE_END.finditer(body, counted, found.start()))
        counted = found.start()
        yield Warned(number, f"Only the first {LINE_LIMIT} bytes of the line are read; make it shorter.")


_ODD: Final = codes_of(set(Key) - {Key.BLANK, Key.UNKNOWN}, (Form.TOLERATED,))


def _odd_lines(file: _File, *, colon: bool) -> Iterator[tuple[int, str, str]]:
    """Lines whose key only some robots take: their numbers, as they are, and as they are meant."""
    for place in file.places(_ODD):
        written, directive = file.scan.text(place), file.scan.directive(place)
        if (":" in written) is colon:
            meant = _name(directive.key) + (f": {_shown(directive.value)}" if directive.value else ":")
            yield directive.line, _cut(written), meant


def _no_colon(file: _File) -> Iterator[Warned]:
    for line, written, meant in _odd_lines(file, colon=False):
        yield Warned(line, f"There is no colon in {written!r}; write {meant!r}.")


def _typo_key(file: _File) -> Iterator[Warned]:
    for line, written, meant in _odd_lines(file, colon=True):
        yield Warned(line, f"Only some robots read {written!r} as {meant!r}; write the latter.")


def _key_read_by_prefix(file: _File) -> Iterator[Warned]:
    lines, letters = file.scan.lines, file.scan.lines.codes.translate(GOOGLE.grammar.letters)
    ours = lines.codes.translate(RFC9309.grammar.letters)
    for place in file.places(_BY_PREFIX):
        if letters[place] == ours[place]:
            continue
        meant = {ord("A"): Key.ALLOW, ord("D"): Key.DISALLOW, ord("U"): Key.USER_AGENT}.get(letters[place])
        if meant is not None:
            written = _cut(file.scan.text(place))
            yield Warned(
                lines.number(place),
                f"Google reads {written!r} as {_name(meant)}, because the key begins so; no other robot does.",
            )


_BY_PREFIX: Final = codes_of(Key, (Form.BY_PREFIX,)) + codes_of({Key.ALLOW_AI_TRAINING, Key.DISALLOW_AI_TRAINING})
_UNKNOWN: Final = codes_of({Key.UNKNOWN}) + codes_of(Key, (Form.BY_PREFIX,))


def _unknown_key(file: _File) -> Iterator[Warned]:
    for place in file.places(_UNKNOWN):
        written = file.scan.text(place)
        key = written.partition(":")[0].rstrip() if ":" in written else re.split("[ \t]", written, maxsplit=1)[0]
        known = key_of(file.scan.lines.codes[place])[1] is not Form.BY_PREFIX
        robots = "No robot that we know reads" if known else "No robot that we know but Google's reads"
        yield Warned(file.number(place), f"{robots} {_cut(key)!r}.")


def _empty_agent_token(file: _File) -> Iterator[Warned]:
    for line, _, value in file.lines(Key.USER_AGENT):
        shown = _shown(value)
        if not tokens_of([value], RFC9309.token)[0]:
            yield Warned(line, f"The agent {shown!r} names no robot; write a product token such as ExampleBot, or *.")
        elif not tokens_of([value], GOOGLE.token)[0]:
            yield Warned(line, f"Google reads no name in {shown!r}; a token should begin with a letter, '-' or '_'.")


def _rule_before_agent(file: _File) -> Iterator[Warned]:
    for line, key, value in file.groups(RFC9309).orphans:
        if key in RULE_KEYS:
            said = f"{_name(key)}: {_shown(value)}"
            yield Warned(line, f"{said!r} is above the first User-agent line; put 'User-agent: *' above it.")


def _member_before_agent(file: _File) -> Iterator[Warned]:
    for line, key, value in file.groups(RFC9309).orphans:
        if key in MEMBER_KEYS:
            said = f"{_name(key)}: {_shown(value)}"
            yield Warned(line, f"{said!r} is above the first User-agent line, so it binds no robot; move it below one.")


def _rule_no_slash(file: _File) -> Iterator[Warned]:
    ai_training = file.lines(Key.ALLOW_AI_TRAINING, Key.DISALLOW_AI_TRAINING)
    for line, key, value in _merged(_rules(file.groups(RFC9309)), ai_training):
        # A path of AI training may also begin with `$` (spec I5).
        if value and value[:1] not in (b"/", b"*") and not (key not in RULE_KEYS and value[:1] == b"$"):
            shown = _shown(value)
            yield Warned(line, f"{shown!r} never matches, since every path begins with '/'; write {'/' + shown!r}.")


def _merged(*parts: Iterable[Directive]) -> list[Directive]:
    return sorted((line for part in parts for line in islice(part, LINES_CHECKED)), key=lambda it: it.line)


def _rules(groups: Groups) -> Iterator[Directive]:
    return (rule for group in groups for rule in group.rules)


_PARSERS: Final[Mapping[Key, Callable[[str, int], object]]] = {
    Key.REQUEST_RATE: lambda value, line: read_request_rate(value, line).warning,
    Key.CRAWL_DELAY: lambda value, line: read_crawl_delay(value, line).warning,
    Key.VISIT_TIME: lambda value, line: read_visit_time(value, line).warning,
}


def _rate_lines(code: RateWarningCode) -> Callable[[_File], Iterator[Warned]]:
    def check(file: _File) -> Iterator[Warned]:
        for directive in file.lines(*_PARSERS):
            warning = _PARSERS[directive.key](directive.text, directive.line)
            if isinstance(warning, RateWarning) and warning.code is code:
                yield Warned(warning.line, warning.message)

    return check


def _rate_clamped(file: _File) -> Iterator[Warned]:
    parsed = (read_request_rate(line.text, line.line).value for line in file.lines(Key.REQUEST_RATE))
    for warning in clamp_warnings([rate for rate in parsed if rate is not None], None, SEZNAM_RATES):
        yield Warned(warning.line, warning.message)


def _rate_between_agents(file: _File) -> Iterator[Warned]:
    for group in islice(file.groups(RFC9309), LINES_CHECKED):
        last = group.agent_places[-1]
        for place in group.member_places:
            directive = file.scan.directive(place)
            if place < last and directive.key in _ENDING_KEYS:
                yield Warned(
                    directive.line,
                    f"{_name(directive.key)} is between User-agent lines: for some robots it ends the group, for"
                    " others all of them share the rules below. Give each agent a group and rules of its own.",
                )


_ENDING_KEYS: Final = MEMBER_KEYS - {Key.ALLOW_AI_TRAINING, Key.DISALLOW_AI_TRAINING}


def _version_misplaced(file: _File) -> Iterator[Warned]:
    groups = file.groups(SEZNAM)
    if not groups.has_version:
        return
    placed = {group.version_place for group in groups if group.version_2}
    for place in file.places(codes_of({Key.ROBOT_VERSION})):
        if place not in placed:
            shown = _shown(file.scan.lines.value(place))
            message = f"Robot-version {shown!r} has no effect here; put it right below the User-agent lines."
            yield Warned(file.number(place), message)


def _v2_root_only(file: _File) -> Iterator[Warned]:
    groups = file.groups(SEZNAM)
    for group in groups if groups.has_version else ():
        for line, _, value in group.rules if group.version_2 else ():
            if value == b"/":
                message = "With Robot-version 2.0, '/' is the root page alone; write '/*' for the whole site."
                yield Warned(line, message)


_OUT_OF_USE: Final = {
    Key.ROBOT_VERSION: "Robot-version is deprecated; write rules of version 1.0 with * and $.",
    Key.NOINDEX: "Noindex in robots.txt has no effect since 2019; use a robots meta tag or X-Robots-Tag.",
    Key.HOST: "Host has no effect since 2018; redirect to the main host instead.",
}


def _deprecated(file: _File) -> Iterator[Warned]:
    return (Warned(line, _OUT_OF_USE[key]) for line, key, _ in file.lines(*_OUT_OF_USE))


def _not_absolute(key: Key) -> Callable[[_File], Iterator[Warned]]:
    def check(file: _File) -> Iterator[Warned]:
        for directive in file.lines(key):
            if not is_absolute(directive.text):
                shown = _shown(directive.value)
                message = f"{_name(key)} {shown!r} is not an absolute URL, so it is ignored; write it with its scheme."
                yield Warned(directive.line, message)

    return check


_SIGNALS: Final = ("search", "ai-input", "ai-train")
_USES: Final = ("immediate", "reference", "full")


def _usage_malformed(file: _File) -> Iterator[Warned]:
    for line, key, value in file.lines(Key.CONTENT_USAGE, Key.CONTENT_SIGNAL):
        if key is Key.CONTENT_USAGE:
            preferences = split_path(value)[1]
            parsed = read_simple_dictionary(preferences)
            parsed = read_dictionary(preferences) if parsed is None else parsed
            understood = bool(parsed) and all(
                category in ("train-ai", "search") and use in ("y", "n") for category, use in (parsed or {}).items()
            )
            known = "train-ai and search, each y or n"
        else:
            understood = all(
                said in _USES if purpose == "use" else purpose in _SIGNALS and said in ("yes", "no")
                for purpose, said in signal_parts(value)
            )
            known = "search, ai-input and ai-train, each yes or no"
        if not understood:
            yield Warned(line, f"Not all of {_shown(value)!r} is understood; the words that are known are {known}.")


_CHECKS: Final[Mapping[str, Callable[[_File], Iterator[Warned]]]] = {
    "bom": _bom,
    "file-truncated": _file_truncated,
    "html-body": _html_body,
    "not-text-plain": _not_text_plain,
    "non-utf8": _non_utf8,
    "line-truncated": _line_truncated,
    "no-colon": _no_colon,
    "typo-key": _typo_key,
    "key-read-by-prefix": _key_read_by_prefix,
    "unknown-key": _unknown_key,
    "empty-agent-token": _empty_agent_token,
    "rule-before-agent": _rule_before_agent,
    "member-before-agent": _member_before_agent,
    "rule-no-slash": _rule_no_slash,
    "rate-malformed": _rate_lines(RateWarningCode.MALFORMED),
    "rate-window": _rate_lines(RateWarningCode.WINDOW),
    "rate-clamped": _rate_clamped,
    "rate-between-agents": _rate_between_agents,
    "version-misplaced": _version_misplaced,
    "v2-root-only": _v2_root_only,
    "deprecated": _deprecated,
    "sitemap-not-absolute": _not_absolute(Key.SITEMAP),
    "license-not-absolute": _not_absolute(Key.LICENSE),
    "usage-malformed": _usage_malformed,
}
"""Every warning by its code."""


def _name(key: Key) -> str:
    return str(key).capitalize()


def _shown(value: bytes) -> str:
    return _cut(readable(value))


def _cut(text: str) -> str:
    return text if len(text) <= 80 else text[:80] + "…"
