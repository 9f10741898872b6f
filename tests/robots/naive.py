"""A reference parser that follows the clauses literally, without regard to speed."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from robots_core.robots.access import BODY_LIMIT
from robots_core.robots.groups import Groups
from robots_core.robots.lines import (
    AI_TRAINING_KEYS,
    LINE_LIMIT,
    MEMBER_KEYS,
    RULE_KEYS,
    Directive,
    Form,
    Key,
    Scan,
    key_of,
)

MARKS: Final = {
    b"\xff\xfe\0\0": "utf-32-le",
    b"\0\0\xfe\xff": "utf-32-be",
    b"\xff\xfe": "utf-16-le",
    b"\xfe\xff": "utf-16-be",
    b"\xef\xbb\xbf": "",
    b"\xef\xbb": "",
    b"\xef": "",
}
NAMED: Final = {str(key): key for key in Key if key not in (Key.BLANK, Key.UNKNOWN)}
MISSPELT: Final = {
    Key.USER_AGENT: ["useragent", "user agent", "user-agents", "useragents"],
    Key.DISALLOW: ["dissallow", "dissalow", "disalow", "diasllow", "disallaw", "disallows", "disallowed"],
    Key.ALLOW: ["allows", "allowed"],
    Key.SITEMAP: ["site-map", "sitemaps"],
    Key.CONTENT_SIGNAL: ["content-signals"],
    Key.CRAWL_RATE: ["crawl delay", "request rate"],
}
"""The misspellings in the closed list of spec B6, and variants of statements that have no effect (spec I7)."""

PREFIXES: Final = {
    Key.USER_AGENT: ("user-agent", "useragent", "user agent"),
    Key.ALLOW: ("allow",),
    Key.DISALLOW: ("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"),
    Key.SITEMAP: ("sitemap", "site-map"),
}
"""The prefixes by which Google's parser recognises a key (spec B6)."""

TYPOS: Final = {name: key for key, names in MISSPELT.items() for name in names}
BLANK: Final = " \t\v\f"


class Line(NamedTuple):
    """A line with a key, or an empty one."""

    number: int
    key: Key
    form: Form
    value: bytes
    text: str


class File(NamedTuple):
    """The lines with a key and empty ones; `total` counts all lines."""

    lines: list[Line]
    bom: bool
    truncated: bool
    total: int


class ReadGroup(NamedTuple):
    """The lines of a group. A member comes with the number of User-agent lines above it."""

    line: int
    agents: tuple[bytes, ...]
    rules: tuple[Directive, ...]
    members: tuple[tuple[Directive, int], ...]
    version_2: bool


class Reader(NamedTuple):
    """How a dialect groups lines (spec B6, B9, E5)."""

    forms: tuple[Form, ...]
    members_end_run: bool = False
    blank_ends_record: bool = False
    ai_training_is_rule: bool = False


READERS: Final = {
    "rfc9309": Reader((Form.PROPER, Form.TOLERATED)),
    "google": Reader(tuple(Form), ai_training_is_rule=True),
    "seznam": Reader((Form.PROPER, Form.TOLERATED), members_end_run=True),
    "v2": Reader((Form.PROPER, Form.TOLERATED), members_end_run=True),
    "draft1996": Reader((Form.PROPER,), blank_ends_record=True),
}


def scanned(scan: Scan) -> File:
    """The lines of a file as the core scans them."""
    lines = scan.lines
    found = [
        Line(lines.number(place), *key_of(lines.codes[place]), lines.value(place), scan.text(place))
        for place in range(len(lines))
    ]
    return File(found, scan.bom, scan.truncated, lines.count)


def grouped(groups: Groups) -> tuple[list[ReadGroup], tuple[Directive, ...]]:
    """The groups of a file as the core reads them, and the lines outside groups."""
    found = []
    for group in groups:
        places = group.agent_positions
        members = tuple(
            (member, sum(agent < place for agent in places))
            for member, place in zip(group.members, group.member_positions, strict=True)
        )
        found.append(ReadGroup(group.line, group.agents, group.rules, members, group.version_2))
    return found, groups.orphans


def read_lines(body: bytes, *, truncated: bool = False) -> File:
    """The lines of spec B and K1 to K2."""
    truncated = truncated or len(body) > BODY_LIMIT
    ends_rule = body[BODY_LIMIT - 1 :][:1] not in b"\n\r" and body[BODY_LIMIT:][:1] in b"\n\r#\0"
    body = body[: BODY_LIMIT + ends_rule]
    mark = next((mark for mark in MARKS if body.startswith(mark)), b"")
    body = body.removeprefix(mark)
    if encoding := MARKS.get(mark):
        body = body.decode(encoding, "replace").encode("utf-8", "replace")
    # The last one is the text after the last line end: a line if it is not empty, unless the body was truncated before
    # its comment or NUL.
    *lines, last = re.split("\r\n|\r|\n", body.decode("latin-1"))
    if last and (not truncated or "#" in last or "\0" in last):
        lines.append(last)
    found: list[Line] = []
    for number, line in enumerate(lines, 1):
        read = read_line(number, line)
        if read is not None and not (read.key is Key.BLANK and found and found[-1].key is Key.BLANK):
            found.append(read)
    return File(found, bool(mark), truncated, len(lines))


def read_line(number: int, line: str) -> Line | None:
    """Read a line, in which each character is a byte; None if it has no key and is not empty."""
    line = line[:LINE_LIMIT].split("\0")[0]
    text = line.split("#")[0].strip(BLANK)
    if not text:
        return None if "#" in line else Line(number, Key.BLANK, Form.PROPER, b"", "")
    words = re.split("[ \t]+", text)
    if ":" in text:
        name, value = text.split(":", 1)
    elif len(words) == 2:
        name, value = words
    else:
        return None
    key, form = read_key(name.strip(BLANK).lower())
    if ":" not in text and key is not Key.UNKNOWN:
        form = max(form, Form.TOLERATED)
    shown = text.encode("latin-1").decode("utf-8", "replace")
    return Line(number, key, form, value.strip(BLANK).encode("latin-1"), shown)


def read_key(name: str) -> tuple[Key, Form]:
    """The key and form of a lower-case name (spec B6)."""
    if name in NAMED:
        return NAMED[name], Form.PROPER
    if name in TYPOS:
        return TYPOS[name], Form.TOLERATED
    meant = [key for key, prefixes in PREFIXES.items() if name.startswith(prefixes)]
    return (meant[0], Form.BY_PREFIX) if meant else (Key.UNKNOWN, Form.PROPER)


def read_groups(file: File, reader: Reader) -> tuple[list[ReadGroup], tuple[Directive, ...]]:
    """The groups of spec K3, and the lines outside groups."""
    groups: list[list[tuple[Key, Line]]] = []
    orphans: list[Directive] = []
    group: list[tuple[Key, Line]] | None = None
    ended = True
    for line in file.lines:
        key = line.key
        if line.form not in reader.forms:
            continue
        if reader.ai_training_is_rule and key in AI_TRAINING_KEYS:
            key = Key.ALLOW if key is Key.ALLOW_AI_TRAINING else Key.DISALLOW
        if key is Key.USER_AGENT and ended:
            group, ended = [], False
            groups.append(group)
        if key is Key.BLANK and reader.blank_ends_record:
            group, ended = None, True
        if key is Key.USER_AGENT or key in RULE_KEYS | MEMBER_KEYS:
            if group is None:
                orphans.append(directive(line))
            else:
                group.append((key, line))
        if key in RULE_KEYS or (reader.members_end_run and key in MEMBER_KEYS - AI_TRAINING_KEYS):
            ended = True
    return list(map(read_group, groups)), tuple(orphans)


def directive(line: Line) -> Directive:
    """A line with its key as all parsers but Google's read it."""
    return Directive(line.number, Key.UNKNOWN if line.form is Form.BY_PREFIX else line.key, line.value)


def read_group(lines: Sequence[tuple[Key, Line]]) -> ReadGroup:
    """A group from its lines, each with its key as the dialect reads it."""
    agents = [line for key, line in lines if key is Key.USER_AGENT]
    others = [(key, line) for key, line in lines if key is not Key.USER_AGENT]
    return ReadGroup(
        line=agents[0].number,
        agents=tuple(line.value for line in agents),
        rules=tuple(Directive(line.number, key, line.value) for key, line in others if key in RULE_KEYS),
        members=tuple(
            (directive(line), sum(agent.number < line.number for agent in agents))
            for _, line in others
            if line.key in MEMBER_KEYS
        ),
        version_2=any(
            key is Key.ROBOT_VERSION and re.fullmatch(rb"2|2\.0|2\.0\.[0-9]{1,9}", line.value) is not None
            for key, line in others[:1]
        ),
    )


def read_token(value: bytes, alphabet: str) -> str:
    """The token of a User-agent line (spec C2, C3)."""
    text = value.decode("latin-1")
    if re.fullmatch(r"\*([ \t\v\f].*)?", text, re.DOTALL):
        return "*"
    token = re.match(f"[{alphabet}]*", text)
    return token[0].lower() if token else ""
