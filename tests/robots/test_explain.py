"""An explanation agrees with the verdict, and tells how the group was found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.robots.agents import first_of, read_agent
from app.robots.dialects import DIALECTS
from app.robots.explain import Explanation, explain
from app.robots.robots_txt import RobotsTxt

BODY = """User-agent: googlebot
Allow: /a/index.html
Disallow: /a
Disallow: /*b$

User-agent: *
Disallow: /

User-agent: Googlebot
Disallow: /a/b
"""


def explained(body: str, agent: str, path: str, dialect: str = "rfc9309") -> Explanation:
    return explain(RobotsTxt(body.encode()), DIALECTS[dialect], read_agent(agent), path, limit=100)


def test_every_matching_rule_is_listed_in_order_of_precedence() -> None:
    told = explained(BODY, "Googlebot", "/a/b")
    assert [(entry.directive.line, entry.length) for entry in told.rules] == [(4, 4), (10, 4), (3, 2)]
    assert told.matched == 3


@pytest.mark.parametrize("limit", range(4))
def test_the_first_rules_are_listed_and_all_are_counted(limit: int) -> None:
    robots, dialect, agent = RobotsTxt(BODY.encode()), DIALECTS["rfc9309"], read_agent("Googlebot")
    every = explain(robots, dialect, agent, "/a/b", limit=100)
    told = explain(robots, dialect, agent, "/a/b", limit=limit)
    assert (told.rules, told.matched) == (every.rules[:limit], 3)


def test_what_the_verdict_names_is_not_looked_for_again() -> None:
    robots, dialect, agent = RobotsTxt(BODY.encode()), DIALECTS["rfc9309"], read_agent("Googlebot")
    selection = robots.judge(dialect, agent, "/a/b").selection
    assert selection is not None
    told = explain(robots, dialect, agent, "/a/b", limit=9, selection=selection)
    assert told == explain(robots, dialect, agent, "/a/b", limit=9)


@pytest.mark.parametrize(("count", "told"), [(10, "15, 17, 19)"), (11, "15, 17, 19, …)")])
def test_the_first_lines_of_many_groups_are_listed(count: int, told: str) -> None:
    assert told in explained("User-agent: *\nDisallow: /\n" * count, "FooBot", "/").group


def test_d10_a_rule_that_matched_as_a_directory_has_its_length() -> None:
    told = explained(BODY, "Googlebot", "/a/", "google")
    assert [(entry.directive.line, entry.pattern) for entry in told.rules] == [(2, "/a/$"), (3, "/a")]


def test_the_path_is_shown_as_it_was_matched() -> None:
    assert explained(BODY, "Googlebot", "/%7Ea/é*").path == "/~a/%C3%A9%2A"
    assert explained(BODY, "Googlebot", "/%7Ea/é*", "google").path == "/%7Ea/%C3%A9*"


@pytest.mark.parametrize(
    ("agent", "dialect", "tokens", "group"),
    [
        ("Googlebot", "google", ("googlebot",), "a group names googlebot"),
        ("Googlebot-News", "google", ("googlebot-news", "googlebot"), "no group names googlebot-news, and googlebot"),
        ("FooBot", "rfc9309", ("foobot",), "no group names foobot, so the one for * applies (line 6)"),
        ("Applebot", "draft1996", ("applebot",), "no group names applebot, so the one for * applies (line 6)"),
        ("AdsBot-Google", "google", ("adsbot-google",), "not bound by the group for *"),
        ("*", "rfc9309", (), "the one for * applies"),
    ],
)
def test_the_choice_of_the_group_is_explained(agent: str, dialect: str, tokens: tuple[str, ...], group: str) -> None:
    told = explained(BODY, agent, "/", dialect)
    assert told.tokens == tokens
    assert group in told.group


def test_merged_groups_are_named() -> None:
    assert "(lines 1, 9); groups with the same token are read as one" in explained(BODY, "Googlebot", "/").group
    assert "restricts no crawler" in explained("", "FooBot", "/").group
    assert "there is none for *" in explained("User-agent: a", "FooBot", "/").group


def test_several_agents_are_named_in_their_order() -> None:
    asking = first_of([read_agent("NewBot"), read_agent("Googlebot")])
    told = explain(RobotsTxt(BODY.encode()), DIALECTS["rfc9309"], asking, "/", limit=1)
    assert told.group.startswith("no group names newbot, and googlebot comes next")


LINES = st.lists(
    st.sampled_from(["User-agent: a", "User-agent: *", "Robot-version: 2.0", ""])
    | st.builds("{}: {}".format, st.sampled_from(["Allow", "Disallow"]), st.text("/ab*$?", max_size=5)),
    max_size=12,
)


@given(LINES, st.text("/ab?:", max_size=6), st.sampled_from(sorted(DIALECTS)))
def test_the_first_rule_listed_is_the_one_that_decided(lines: list[str], rest: str, dialect: str) -> None:
    robots = RobotsTxt("\n".join(lines).encode())
    verdict = robots.judge(DIALECTS[dialect], read_agent("a"), "/" + rest)
    told = explain(robots, DIALECTS[dialect], read_agent("a"), "/" + rest, limit=1)
    assert (told.rules[0].directive if told.rules else None) == (verdict.rule and verdict.rule.directive)
