"""Spec D7: a rule that is reported as pointless changes no verdict."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robots_core.lint.linter import lint
from robots_core.robots.agents import read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.robots_txt import RobotsTxt

POINTLESS = ("duplicate-rule", "shadowed-rule")
PATHS = ["/", "/a", "/ab", "/abc", "/b", "/a/b", "/a*", "/a*b", "/*b", "*", "/a$", "/ab$", "/ab*", "/%61b", "/é", ""]
ASKED = ["/", "/a", "/ab", "/abc", "/abcd", "/b", "/a/b", "/a/b/c", "/xb", "/axb", "/aé", "/é", "/abé", "/%61bc"]
RULES = st.lists(st.tuples(st.sampled_from(["Allow", "Disallow"]), st.sampled_from(PATHS)), max_size=8)


GROUPS = st.lists(st.sampled_from(["User-agent: *", "User-agent: b", "User-agent: c"]), min_size=1, max_size=2)
FILES = st.lists(st.tuples(GROUPS, RULES), min_size=1, max_size=3)


def verdicts(lines: list[str], dialect: str) -> list[str]:
    robots = RobotsTxt("\n".join(["User-agent: *", *lines]).encode())
    agents = map(read_agent, ("*", "b", "c"))
    return [robots.judge(DIALECTS[dialect], agent, path).permission for agent in agents for path in ASKED]


@given(RULES, FILES)
def test_d7_a_pointless_rule_changes_no_verdict(
    rules: list[tuple[str, str]], groups: list[tuple[list[str], list[tuple[str, str]]]]
) -> None:
    lines = [f"{key}: {path}" for key, path in rules]
    for agents, of_group in groups:
        lines += [*agents, *(f"{key}: {path}" for key, path in of_group)]
    found = lint(RobotsTxt("\n".join(["User-agent: *", *lines]).encode()))
    for advice in found:
        if advice.code not in POINTLESS:
            continue
        left = [line for number, line in enumerate(lines, 2) if number != advice.line]
        for dialect in ("rfc9309", "google", "seznam"):
            assert verdicts(left, dialect) == verdicts(lines, dialect)


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["Disallow: /a", "Disallow: /a/b"], [("shadowed-rule", 3)]),
        (["Disallow: /a/b", "Disallow: /a"], [("shadowed-rule", 2)]),
        (["Disallow: /a*", "Disallow: /a/b"], [("shadowed-rule", 3)]),
        (["Disallow: /a", "Disallow: /a*b"], [("shadowed-rule", 3)]),
        # The Allow between them makes the longer one count.
        (["Disallow: /a", "Allow: /a/", "Disallow: /a/b"], []),
        (["Disallow: /a", "Allow: /*.css", "Disallow: /a/b.css"], []),
        (["Disallow: /a", "Allow: /b/c/d/e", "Disallow: /a/b"], [("shadowed-rule", 4)]),
        (["Disallow: /a$", "Disallow: /a/b"], []),
        (["Disallow: /a*b", "Disallow: /a*bc"], []),
        (["Disallow: /é", "Disallow: /é/b"], []),
        (["Disallow: /a", "Disallow: /a"], [("duplicate-rule", 3)]),
        (["Disallow:", "Disallow:"], []),
        (["Disallow: /a", "Allow: /a"], [("allowed-and-disallowed", 2)]),
        (["Allow: /a", "Disallow: /a", "Disallow: /a"], [("allowed-and-disallowed", 3), ("duplicate-rule", 4)]),
        (["Disallow: /a", "User-agent: b", "Disallow: /a"], []),
        # A crawler obeys all groups that name it, so that a rule of another one counts as well.
        (["Disallow: /a", "Disallow: /a/b", "User-agent: b", "Allow: /a/"], [("shadowed-rule", 3)]),
        (["Disallow: /", "Disallow: /a/b", "User-agent: *", "Allow: /a"], [("agent-in-two-groups", 4)]),
        (["Robot-version: 2.0", "Disallow: /a", "Disallow: /a/b"], [("deprecated", 2)]),
    ],
)
def test_d7_rules_that_overlap_are_reported(lines: list[str], found: list[tuple[str, int]]) -> None:
    body = "\n".join(["User-agent: *", *lines]).encode()
    assert [(advice.code, advice.line) for advice in lint(RobotsTxt(body))] == found
