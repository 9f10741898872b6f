"""An explanation agrees with the verdict, and says how the group was selected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robots_core.robots.agents import first_of, read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.explain import Explanation, explain
from robots_core.robots.robots_txt import RobotsTxt

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
    explanation = explained(BODY, "Googlebot", "/a/b")
    assert [(entry.directive.line, entry.length) for entry in explanation.rules] == [(4, 4), (10, 4), (3, 2)]
    assert explanation.matched == 3


@pytest.mark.parametrize("limit", range(4))
def test_the_first_rules_are_listed_and_all_are_counted(limit: int) -> None:
    robots, dialect, agent = RobotsTxt(BODY.encode()), DIALECTS["rfc9309"], read_agent("Googlebot")
    every = explain(robots, dialect, agent, "/a/b", limit=100)
    explanation = explain(robots, dialect, agent, "/a/b", limit=limit)
    assert (explanation.rules, explanation.matched) == (every.rules[:limit], 3)


def test_a_given_selection_gives_the_same_explanation() -> None:
    robots, dialect, agent = RobotsTxt(BODY.encode()), DIALECTS["rfc9309"], read_agent("Googlebot")
    selection = robots.judge(dialect, agent, "/a/b").selection
    assert selection is not None
    explanation = explain(robots, dialect, agent, "/a/b", limit=9, selection=selection)
    assert explanation == explain(robots, dialect, agent, "/a/b", limit=9)


@pytest.mark.parametrize(("count", "explanation"), [(10, "15, 17, 19)"), (11, "15, 17, 19, …)")])
def test_the_first_lines_of_many_groups_are_listed(count: int, explanation: str) -> None:
    assert explanation in explained("User-agent: *\nDisallow: /\n" * count, "FooBot", "/").group


def test_c12_an_inherited_delay_of_bing_is_explained() -> None:
    star, own = "User-agent: *\nCrawl-delay: 20\nDisallow: /y\n", "User-agent: bingbot\nDisallow: /x\n"
    explanation = "only the Crawl-delay of * (line 2) counts for this crawler, too, since its own group has none"
    assert explained(star + own, "bingbot", "/x").group.endswith(explanation)
    assert "Crawl-delay" not in explained(star + own + "Crawl-delay: 2\n", "bingbot", "/x").group
    assert "Crawl-delay" not in explained(star + own.replace("bingbot", "a"), "a", "/x").group


def test_d10_a_rule_that_matched_as_directory_has_that_length() -> None:
    explanation = explained(BODY, "Googlebot", "/a/", "google")
    assert [(entry.directive.line, entry.pattern) for entry in explanation.rules] == [(2, "/a/$"), (3, "/a")]


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
    explanation = explained(BODY, agent, "/", dialect)
    assert explanation.tokens == tokens
    assert group in explanation.group


def test_merged_groups_are_named() -> None:
    assert "(lines 1, 9); groups with the same token are read as one" in explained(BODY, "Googlebot", "/").group
    assert "restricts no crawler" in explained("", "FooBot", "/").group
    assert "there is none for *" in explained("User-agent: a", "FooBot", "/").group


def test_several_agents_are_named_in_order() -> None:
    asking = first_of([read_agent("NewBot"), read_agent("Googlebot")])
    explanation = explain(RobotsTxt(BODY.encode()), DIALECTS["rfc9309"], asking, "/", limit=1)
    assert explanation.group.startswith("no group names newbot, and googlebot comes next")


LINES = st.lists(
    st.sampled_from(["User-agent: a", "User-agent: *", "Robot-version: 2.0", ""])
    | st.builds("{}: {}".format, st.sampled_from(["Allow", "Disallow"]), st.text("/ab*$?", max_size=5)),
    max_size=12,
)


@given(LINES, st.text("/ab?:", max_size=6), st.sampled_from(sorted(DIALECTS)))
def test_the_first_listed_rule_decided(lines: list[str], rest: str, dialect: str) -> None:
    robots = RobotsTxt("\n".join(lines).encode())
    verdict = robots.judge(DIALECTS[dialect], read_agent("a"), "/" + rest)
    explanation = explain(robots, DIALECTS[dialect], read_agent("a"), "/" + rest, limit=1)
    assert (explanation.rules[0].directive if explanation.rules else None) == (verdict.rule and verdict.rule.directive)
