"""Files as they are on the web: what is proved of files that are made up holds for them too."""

from collections.abc import Callable, Iterator
from itertools import islice

import pytest

from app.robots.access import BODY_LIMIT
from app.robots.advice import advise
from app.robots.agents import STAR, Agent, read_agent
from app.robots.compiled.lines import Scan, scan
from app.robots.dialect import Decision, Dialect, Reason, RobotsTxt, judge_file
from app.robots.dialects import DIALECTS
from app.robots.explain import explain
from app.robots.paths import draft_pattern, glob_pattern, google_pattern, rfc_pattern
from app.robots.selection import Selection
from app.robots.syntax import Key
from tests.corpus import real_files
from tests.robots.naive import told
from tests.robots.test_matcher import NAIVE
from tests.robots.test_size import UNDER, cost

STRANGER = read_agent("ExampleBot")
WIDE = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")


def some(step: int) -> Iterator[bytes]:
    return islice(real_files().values(), 0, None, step)


def agents_of(robots: RobotsTxt, most: int) -> list[Agent]:
    """`*`, somebody the file does not name, and some of those it does."""
    values = [value for _, key, value in robots.document.scan.directives if key is Key.USER_AGENT]
    names = [value for value in dict.fromkeys(values) if value.isalnum() and value.isascii()]
    return [read_agent(STAR), STRANGER, *map(read_agent, names[:most])]


def paths_of(selection: Selection, most: int) -> Iterator[str]:
    """Paths that its rules are made for, and such as miss them by little."""
    values = [value for group in selection.groups for _, _, value in group.rules if value]
    for number, value in enumerate(values[:: 1 + len(values) // most]):
        stem = "/" + value.rstrip("$").replace("*", ("", "a", "/b?c:")[number % 3]).removeprefix("/")
        yield from (stem, stem[:-1], f"{stem}?d=%2F&e=@")
    yield from ("/", "/index.html")


def test_every_file_is_read_judged_and_explained_in_every_dialect() -> None:
    for body in real_files().values():
        robots = RobotsTxt(body)
        for dialect in DIALECTS.values():
            assert judge_file(robots, dialect, STRANGER, "/robots.txt").reason is Reason.IMPLICIT
            verdict = judge_file(robots, dialect, STRANGER, "/a?b=c")
            assert verdict.decision is not Decision.DEFER
            told = explain(robots, dialect, STRANGER, "/a?b=c", limit=1).rules
            assert [rule.directive for rule in told[:1]] == ([verdict.rule.directive] if verdict.rule else [])


def test_every_file_can_be_advised_on() -> None:
    for body in some(4):
        robots = RobotsTxt(body)
        assert all(1 <= advice.line <= max(1, robots.document.scan.lines) for advice in advise(robots.document))


PATTERN: dict[str, Callable[[str], str]] = {
    "rfc9309": rfc_pattern,
    "google": google_pattern,
    "draft1996": draft_pattern,
    "v2": glob_pattern,
}


def naive_line(selection: Selection, dialect: Dialect) -> Callable[[str], int | None]:
    """The line of the rule that decides about a path, by trying them all."""
    name = dialect.name
    if name in ("seznam", "v2"):
        name = "v2" if selection.groups[0].version_2 else "rfc9309"
    decide, subject = NAIVE[name]
    directives = [rule for group in selection.groups for rule in group.rules]
    rules = [(key is Key.ALLOW, PATTERN[name](value)) for _, key, value in directives]

    def line(path: str) -> int | None:
        place = decide(rules, subject(path))
        return None if place is None else directives[place][0]

    return line


@pytest.mark.parametrize("name", DIALECTS)
def test_the_index_decides_about_a_file_s_own_patterns_as_trying_every_rule_does(name: str) -> None:
    dialect = DIALECTS[name]
    asked = 0
    for body in some(30):
        robots = RobotsTxt(body)
        for agent in agents_of(robots, 2):
            selection = robots.reading(dialect).select(agent)
            if selection is None:
                continue
            line = naive_line(selection, dialect)
            for path in paths_of(selection, 8):
                rule = judge_file(robots, dialect, agent, path).rule
                assert (rule and rule.directive[0]) == line(path), path
                asked += 1
    assert asked > 1500


def test_b1_a_real_file_says_the_same_with_any_line_ending() -> None:
    for body in some(4):
        lf = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if 2 * len(lf) > BODY_LIMIT or lf.startswith(WIDE):
            continue
        read = told(scan(lf))
        assert read == told(scan(body))
        assert read == told(scan(lf.replace(b"\n", b"\r\n"))) == told(scan(lf.replace(b"\n", b"\r")))


def test_what_was_read_of_a_file_reads_the_same_when_it_is_written_down() -> None:
    for body in some(4):
        read = scan(body)
        assert scan(written(read)).directives == read.directives


def written(read: Scan) -> bytes:
    """Its directives, each in its line; what else the file held is a comment."""
    lines = ["#"] * read.lines
    for line, key, value in read.directives:
        lines[line - 1] = "" if key is Key.BLANK else f"{key}: {value}"
    return "\n".join([*lines, ""]).encode("latin-1")


@pytest.mark.parametrize("name", ["rfc9309", "seznam"])
def test_no_real_file_costs_much_more_than_its_size(name: str) -> None:
    for body in some(60):
        robots, taken = cost(body, name)
        assert taken <= robots.size * UNDER
