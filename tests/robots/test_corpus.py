"""Properties of generated files also hold for real ones."""

from collections.abc import Iterator
from itertools import islice

import pytest

from robots_core.lint.linter import lint
from robots_core.robots.access import BODY_LIMIT
from robots_core.robots.agents import STAR, Agent, read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.explain import explain
from robots_core.robots.groups import Groups, Selection
from robots_core.robots.lines import Key, scan
from robots_core.robots.robots_txt import RobotsTxt
from robots_core.robots.verdict import Permission, Reason
from tests.corpus import real_files
from tests.robots.judging import AGENT
from tests.robots.naive import READERS, grouped, read_groups, read_lines, scanned
from tests.robots.naive_matching import DECIDE

WIDE = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")
EVERY = pytest.mark.parametrize("dialect", DIALECTS)


def some(step: int) -> Iterator[bytes]:
    return islice(real_files().values(), 0, None, step)


def agents_of(robots: RobotsTxt, most: int) -> list[Agent]:
    """`*`, an agent that the file does not name, and some that it names."""
    lines = robots.scan.directives(range(len(robots.scan.lines)))
    names = [it.text for it in lines if it.key is Key.USER_AGENT and it.value.isalnum() and it.value.isascii()]
    return [read_agent(STAR), AGENT, *map(read_agent, list(dict.fromkeys(names))[:most])]


def paths_of(selection: Selection, most: int) -> Iterator[str]:
    """Paths that match its rules, and paths that nearly do."""
    values = [rule.text for group in selection.groups for rule in group.rules if rule.value]
    for number, value in enumerate(values[:: 1 + len(values) // most]):
        stem = "/" + value.rstrip("$").replace("*", ("", "a", "/b?c:")[number % 3]).removeprefix("/")
        yield from (stem, stem[:-1] or "/", f"{stem}?d=%2F&e=@")
    yield from ("/", "/index.html")


def test_every_file_is_judged_and_explained_in_every_dialect() -> None:
    for body in real_files().values():
        robots = RobotsTxt(body)
        for dialect in DIALECTS.values():
            assert robots.judge(dialect, AGENT, "/robots.txt").reason is Reason.IMPLICIT
            verdict = robots.judge(dialect, AGENT, "/a?b=c")
            assert verdict.permission is not Permission.DEFER
            assert verdict.reason is not Reason.TOO_COMPLEX
            explained = explain(robots, dialect, AGENT, "/a?b=c", limit=1).rules
            assert [rule.directive for rule in explained] == ([verdict.rule.directive] if verdict.rule else [])


def test_no_long_path_is_too_complex_for_any_file() -> None:
    paths = ["/" + "a/b-c_1?" * 2000, "/" + "index.php?" * 1600]
    for body in some(10):
        robots = RobotsTxt(body)
        for dialect in DIALECTS.values():
            assert all(robots.judge(dialect, AGENT, path).reason is not Reason.TOO_COMPLEX for path in paths)


def test_every_file_is_read_as_by_the_reference() -> None:
    for body in some(8):
        read, lines = scan(body), read_lines(body)
        assert scanned(read) == lines
        for dialect in ("rfc9309", "google", "seznam", "draft1996"):
            groups = Groups(read, DIALECTS[dialect].grammar)
            assert grouped(groups) == read_groups(lines, READERS[dialect])


def test_every_file_can_be_checked() -> None:
    for body in some(4):
        robots = RobotsTxt(body)
        assert all(1 <= advice.line <= max(1, robots.scan.lines.count) for advice in lint(robots))


@EVERY
def test_each_file_is_decided_as_by_the_reference(dialect: str) -> None:
    decisions = 0
    for body in some(30):
        robots = RobotsTxt(body)
        for agent in agents_of(robots, 2):
            selection = robots.reading(DIALECTS[dialect]).select(agent)
            if selection is None:
                continue
            name = dialect
            if dialect in ("seznam", "v2"):
                name = "v2" if selection.groups[0].version_2 else "rfc9309"
            decide, spell_pattern, spell_subject = DECIDE[name]
            directives = [rule for group in selection.groups for rule in group.rules]
            rules = [(rule.key is Key.ALLOW, spell_pattern(rule.value)) for rule in directives]
            for path in paths_of(selection, 8):
                verdict = robots.judge(DIALECTS[dialect], agent, path)
                if path == "/robots.txt":
                    continue
                place = decide(rules, spell_subject(path.encode()))
                expected = None if place is None else directives[place]
                assert (verdict.rule and verdict.rule.directive) == expected, path
                decisions += 1
    assert decisions > 1500


def test_b1_real_files_mean_the_same_with_any_line_ending() -> None:
    for body in some(10):
        lf = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if 2 * len(lf) > BODY_LIMIT or lf.startswith(WIDE):
            continue
        read = scanned(scan(lf))
        assert read == scanned(scan(body))
        assert read == scanned(scan(lf.replace(b"\n", b"\r\n"))) == scanned(scan(lf.replace(b"\n", b"\r")))
