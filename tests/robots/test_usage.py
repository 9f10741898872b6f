"""Spec I: what is stated about use is reported by path, and never changes a verdict."""

import re
from collections.abc import Mapping

import http_sf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.robots.agents import read_agent
from app.robots.compiled.uses import by_path, by_purpose, preferences
from app.robots.dialect import RobotsTxt
from app.robots.dialects import DIALECTS
from app.robots.paths import rfc_pattern
from app.robots.syntax import readable
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


def read_by_the_rfc(text: str) -> Mapping[str, str]:
    """The same by a library that follows RFC 9651 step by step."""
    try:
        parsed = http_sf.parse(text.encode("latin-1"), tltype="dictionary")
    except ValueError:
        return {}
    assert isinstance(parsed, dict)
    members = ((key, member[0]) for key, member in parsed.items() if isinstance(member, tuple))
    return {key: str(use) for key, use in members if isinstance(use, http_sf.Token) and str(use) in ("y", "n")}


ITEMS = [
    *["y", "n", "a:/b", "Y", "*", "1", "-7", "1.5", "1.", "1.1234", "-", "9" * 12, "9" * 12 + ".1", "9" * 13 + ".1"],
    *["9" * 15, "9" * 16, "?0", "?1", "?2", "?", '"x"', '"\\""', '"\\x"', '"', '"\xe9"', "::", ":YQ==:", ":YQ:", ":Y:"],
    *[":Y=Q:", ":=:", ":YQ===:", ":YQ", "@1", "@-1", "@1.5", "@-62135596800", "@-62135596801", "@253402300799"],
    *["@253402300800", "@", '%"a"', '%"%c3%a9"', '%"%C3%A9"', '%"%c3"', '%"%c3a"', '%"%ed%a0%80"', '%"%f4%90%80%80"'],
    *['%"%e0%80%80"', '%"%f0%90%80%80"', '%"%', '%"%4', '%"%4g"', "%x", "()", "(y)", "(y n)", "(y;a=1 2)", "(y,n)"],
    *["( y  n );b", "(y", "((y))", '("x"y)'],
]
PARTS = st.sampled_from(
    ["a", "b-c", "*", "A", "_", "=", "=y", "=n", ",", ", ", "\t,", ";", "; ", ";\t", " ", "\x00", "é"]
)
FIELDS = st.lists(PARTS | st.sampled_from(ITEMS) | st.sampled_from(ITEMS).map("k={}".format), max_size=12).map("".join)


@given(FIELDS | st.text(st.characters(max_codepoint=255)))
def test_i1e_a_dictionary_is_read_as_rfc_9651_has_it(text: str) -> None:
    assert preferences(text) == read_by_the_rfc(text)


@pytest.mark.parametrize("item", ITEMS)
def test_i1e_every_kind_of_item_is_passed_over_as_rfc_9651_has_it(item: str) -> None:
    for text in (
        f"a={item}",
        f"k=y, a={item}, b=n",
        f"b=n;p={item}",
        f"b=n;p={item};q , k=y",
        f"l=({item} {item};x), b=y",
    ):
        assert preferences(text) == read_by_the_rfc(text)
        assert preferences(text[:-1]) == read_by_the_rfc(text[:-1])


def told_one_by_one(values: list[str]) -> Mapping[str, Mapping[str, str]]:
    """Spec I1a to I1c, a line after the other."""
    found: dict[str, dict[str, str]] = {}
    for value in values:
        path = re.split("[ \t\v\f]", value, maxsplit=1)[0] if value.startswith("/") else ""
        stated = found.setdefault(rfc_pattern(path) if path else "*", {})
        for category, use in preferences(value.removeprefix(path).lstrip(" \t\v\f") if path else value).items():
            stated[category] = min(use, stated.get(category, use))
    return found


def test_i1a_a_path_ends_at_a_blank_of_either_kind() -> None:
    assert by_path(["/a\ttrain-ai=n", "/b \t search=y"], str) == {"/a": {"train-ai": "n"}, "/b": {"search": "y"}}


LINES = st.builds("{}{}".format, st.sampled_from(["", "/", "/a ", "/%61 ", "/b\t", "/a\vc "]), FIELDS)


@given(st.lists(LINES | st.sampled_from(["a=y", "/a a=n,b=y", "/a a=y, b=n", "/a a=n,b=y"]), max_size=6))
def test_i1c_all_lines_of_a_path_count(values: list[str]) -> None:
    assert by_path(values, rfc_pattern) == told_one_by_one(values)


@given(st.lists(st.text("ab=, \tAB\xc3\xa9\x85\xa0no"), max_size=5))
def test_i2_signals_are_those_between_commas(values: list[str]) -> None:
    signals: dict[str, str] = {}
    for part in (part for value in values for part in readable(value).split(",")):
        purpose, _, said = (it.strip().lower() for it in part.partition("="))
        if purpose and said:
            signals[purpose] = "no" if said == "no" else signals.get(purpose, said)
    assert by_purpose(values) == signals


@given(st.lists(st.text(st.characters(max_codepoint=255), max_size=30)), st.text(max_size=20))
def test_any_lines_are_read(lines: list[str], path: str) -> None:
    UsageTerms(lines, lines).at("/" + path, allowed=True)
