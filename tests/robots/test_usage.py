"""Spec I: what is stated about use is reported by path, and never changes a verdict."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.robots.agents import read_agent
from app.robots.dialect import RobotsTxt
from app.robots.dialects import DIALECTS
from app.robots.usage import Usage, UsageTerms

DRAFT = """User-Agent: *
Allow: /
Disallow: /never/
Content-Usage: train-ai=n
Content-Usage: /ai-ok/ train-ai=y

User-Agent: ExampleBot
Allow: /
Content-Usage: train-ai=y
"""


def usage(robots: str, agent: str, path: str, dialect: str = "rfc9309") -> Usage | None:
    reading = RobotsTxt(robots.encode()).reading(DIALECTS[dialect])
    asking = read_agent(agent)
    selection = reading.select(asking)
    assert selection is not None
    terms = reading.terms(selection, asking).usage
    rule = reading.rules(selection).best(path)
    return None if terms is None else terms.at(path, allowed=rule is None or rule.allows)


@pytest.mark.parametrize(
    ("agent", "path", "stated"),
    [
        ("FooBot", "/test", {"train-ai": "n"}),
        ("FooBot", "/ai-ok/test", {"train-ai": "y"}),
        ("FooBot", "/never/test", None),
        ("ExampleBot", "/never/test", {"train-ai": "y"}),
    ],
)
def test_i1g_the_example_of_the_draft(agent: str, path: str, stated: Mapping[str, str] | None) -> None:
    found = usage(DRAFT, agent, path)
    assert (None if found is None else found.content_usage) == stated


@pytest.mark.parametrize(
    ("lines", "stated"),
    [
        (["train-ai=n, train-ai=y"], {"train-ai": "y"}),
        (["train-ai=y", "train-ai=n"], {"train-ai": "n"}),
        (["train-ai=n", "train-ai=y"], {"train-ai": "n"}),
        (["train-ai=y", "search=n"], {"train-ai": "y", "search": "n"}),
        (["train-ai=N"], None),
        (['train-ai="n"'], None),
        (["train-ai"], None),
        (["Train-AI=n"], None),
        (["train-ai=n; x=1"], {"train-ai": "n"}),
        (["train-ai=n,,"], None),
        (["/x* train-ai=n", "/x train-ai=y"], {"train-ai": "n"}),
        (["/y train-ai=n"], None),
        (["/x/z/ train-ai=n", "train-ai=y"], {"train-ai": "y"}),
        (["/x"], None),
        ([""], None),
    ],
)
def test_i1_the_longest_path_counts_and_what_forbids_wins(lines: list[str], stated: Mapping[str, str] | None) -> None:
    found = UsageTerms(lines, ()).at("/x/y", allowed=True)
    assert (None if found is None else found.content_usage) == stated


@pytest.mark.parametrize(
    ("lines", "stated"),
    [
        (["search=yes,ai-train=no"], {"search": "yes", "ai-train": "no"}),
        (["Search = YES , use=reference"], {"search": "yes", "use": "reference"}),
        (["search=yes", "search=no", "search=yes"], {"search": "no"}),
        (["search", "=", "a=", "=b", ","], {}),
    ],
)
def test_i2_signals_are_kept_and_no_wins(lines: list[str], stated: Mapping[str, str]) -> None:
    found = UsageTerms((), lines).at("/", allowed=False)
    assert (found.content_signal if found else {}) == stated


def test_i2_a_group_of_ones_own_inherits_no_signal() -> None:
    robots = "User-agent: *\nContent-Signal: search=yes,ai-train=no\nAllow: /\n\nUser-agent: GPTBot\nDisallow: /\n"
    assert usage(robots, "GPTBot", "/") is None
    assert usage(robots, "FooBot", "/") == Usage({}, {"search": "yes", "ai-train": "no"})


@given(st.lists(st.text(st.characters(max_codepoint=255), max_size=30)), st.text(max_size=20))
def test_any_lines_are_read(lines: list[str], path: str) -> None:
    UsageTerms(lines, lines).at("/" + path, allowed=True)
