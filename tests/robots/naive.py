"""A robots.txt read by the clauses, plainly and with no thought of time: what the compiled reader has to say."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from app.robots.access import BODY_LIMIT
from app.robots.compiled.lines import Groups, Scan
from app.robots.document import Grammar
from app.robots.syntax import LINE_LIMIT, MEMBER_KEYS, PREFIXES, RULE_KEYS, Directive, Key, Member, Oddity

MARKS = {
    b"\xff\xfe\0\0": "utf-32-le",
    b"\0\0\xfe\xff": "utf-32-be",
    b"\xff\xfe": "utf-16-le",
    b"\xfe\xff": "utf-16-be",
    b"\xef\xbb\xbf": "",
    b"\xef\xbb": "",
    b"\xef": "",
}
NAMED = {str(key): key for key in Key if key not in (Key.BLANK, Key.UNKNOWN)}
BLANK = re.compile(r"[ \t\v\f]*")


class Told(NamedTuple):
    """All that a scan tells."""

    directives: tuple[Directive, ...]
    oddities: dict[int, Oddity]
    unknown_keys: dict[int, str]
    long_lines: list[int]
    texts: dict[int, str]
    bom: bool
    truncated: bool
    lines: int


class ToldGroup(NamedTuple):
    """All that a group tells."""

    line: int
    agents: tuple[str, ...]
    rules: tuple[Directive, ...]
    members: tuple[Member, ...]
    version_2: bool


def told(scan: Scan) -> Told:
    """What the compiled reader says of a file."""
    texts = scan.texts(range(1, scan.lines + 1))
    facts = scan.bom, scan.truncated, scan.lines
    return Told(scan.directives, scan.oddities, scan.unknown_keys, scan.long_lines, texts, *facts)


def told_groups(groups: Groups) -> tuple[list[ToldGroup], tuple[Directive, ...]]:
    """What it says of its groups, and of the lines that are in none."""
    found = [ToldGroup(it.line, it.agents, it.rules, it.members, it.version_2) for it in groups.groups]
    return found, groups.orphans


def read_lines(body: bytes, *, truncated: bool = False) -> Told:
    """The directives of spec B and K1 to K2."""
    truncated = truncated or len(body) > BODY_LIMIT
    body = body[:BODY_LIMIT]
    mark = next((mark for mark in MARKS if body.startswith(mark)), b"")
    body = body.removeprefix(mark)
    if encoding := MARKS.get(mark):
        body = body.decode(encoding, "replace").encode("utf-8", "replace")
    # The last of these is what follows the last line end: a line if it is not empty, unless its own end was cut off.
    *lines, last = re.split("\r\n|\r|\n", body.decode("latin-1"))
    if last and not truncated:
        lines.append(last)
    directives: list[Directive] = []
    oddities: dict[int, Oddity] = {}
    unknown_keys: dict[int, str] = {}
    texts: dict[int, str] = {}
    for number, line in enumerate(lines, 1):
        line = line[:LINE_LIMIT].split("\0")[0]
        text = trimmed(line.split("#")[0])
        texts[number] = text
        if not text:
            if "#" not in line and directives and directives[-1][1] is not Key.BLANK:
                directives.append((number, Key.BLANK, ""))
            continue
        words = re.split("[ \t]+", text)
        if ":" in text:
            name, value = text.split(":", 1)
        elif len(words) == 2:
            name, value = words
        else:
            continue
        key, oddity = read_key(trimmed(name).lower())
        if key is Key.UNKNOWN:
            unknown_keys[number] = trimmed(name)
            continue
        directives.append((number, key, trimmed(value)))
        if ":" not in text:
            oddity = Oddity.NO_COLON
        if oddity:
            oddities[number] = oddity
    long_lines = [number for number, line in enumerate(lines, 1) if len(line) > LINE_LIMIT]
    return Told(tuple(directives), oddities, unknown_keys, long_lines, texts, bool(mark), truncated, len(lines))


def read_key(name: str) -> tuple[Key, Oddity | None]:
    """What a lower-case name means, and whether only some robots take it so (spec B6)."""
    if name in NAMED:
        return NAMED[name], None
    meant = [key for prefix, key in PREFIXES if name.startswith(prefix)]
    return (meant[0], Oddity.TYPO_KEY) if meant else (Key.UNKNOWN, None)


def trimmed(text: str) -> str:
    """Without outer blanks."""
    return text.strip(" \t\v\f")


def read_groups(read: Told, grammar: Grammar) -> tuple[list[ToldGroup], tuple[Directive, ...]]:
    """The groups of spec K3, and the lines that are in none."""
    groups: list[list[Directive]] = []
    orphans: list[Directive] = []
    group: list[Directive] | None = None
    ended = True
    for directive in read.directives:
        line, key, _ = directive
        if line in read.oddities and not grammar.tolerant:
            continue
        if key is Key.USER_AGENT and ended:
            group, ended = [], False
            groups.append(group)
        if key is Key.BLANK and grammar.blank_ends_record:
            group, ended = None, True
        if key is Key.USER_AGENT or key in RULE_KEYS | MEMBER_KEYS:
            (orphans if group is None else group).append(directive)
        if key in RULE_KEYS or (key in MEMBER_KEYS and grammar.members_end_run):
            ended = True
    return list(map(read_group, groups)), tuple(orphans)


def read_group(directives: Sequence[Directive]) -> ToldGroup:
    """What the lines of a group come to."""
    agents = [directive for directive in directives if directive[1] is Key.USER_AGENT]
    others = [directive for directive in directives if directive[1] is not Key.USER_AGENT]
    members = [
        (line, key, value, sum(agent[0] < line for agent in agents))
        for line, key, value in others
        if key not in RULE_KEYS
    ]
    return ToldGroup(
        line=agents[0][0],
        agents=tuple(value for _, _, value in agents),
        rules=tuple(directive for directive in others if directive[1] in RULE_KEYS),
        members=tuple(members),
        version_2=any(
            key is Key.ROBOT_VERSION and re.fullmatch(r"2|2\.0|2\.0\.[0-9]{1,9}", value) is not None
            for _, key, value in others[:1]
        ),
    )


def read_token(value: str, alphabet: str) -> str:
    """The token of a User-agent line (spec C2, C3)."""
    if re.fullmatch(r"\*([ \t\v\f].*)?", value, re.DOTALL):
        return "*"
    token = re.match(f"[{alphabet}]*", value)
    return token[0].lower() if token else ""
