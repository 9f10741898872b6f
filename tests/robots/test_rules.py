"""Spec B11, D4, D7, D10, E7: rules brought to patterns stand in their order of precedence, each with its own line."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.robots.compiled.lines import group_of
from app.robots.compiled.rules import Rules, in_file_order, longest_first
from app.robots.compiled.texts import Texts
from app.robots.dialects import DIALECTS
from app.robots.document import Document, Group
from app.robots.google import INDEX_PAGE
from app.robots.paths import draft_pattern, glob_pattern, google_pattern, rfc_pattern
from app.robots.syntax import Directive, Key
from tests.robots.memory import left_behind
from tests.robots.test_spelling import OCTETS, PATTERNS, texts

MADE = {
    "rfc9309": lambda groups: longest_first(groups, rfc_pattern),
    "seznam": lambda groups: longest_first(groups, rfc_pattern),
    "google": lambda groups: longest_first(groups, google_pattern, INDEX_PAGE),
    "v2": lambda groups: longest_first(groups, glob_pattern),
    "draft1996": lambda groups: in_file_order(groups, draft_pattern),
}
VALUES = (
    texts(OCTETS)
    | st.sampled_from(["", "/", "/index.html", "/a/index.htm?", "index.htm", "/index.htm/", "/%69ndex.htm"])
    | st.integers(0, 700).map(lambda length: "/" * length)
)
RULES = st.lists(st.tuples(st.sampled_from([Key.ALLOW, Key.DISALLOW]), VALUES), max_size=30)


def numbered(rules: Sequence[tuple[Key, str]]) -> list[Directive]:
    return [(line, key, value) for line, (key, value) in enumerate(rules, 1)]


def group(rules: Sequence[Directive], *, version_2: bool = False) -> Group:
    return group_of(rules, version_2=version_2)


def told(rules: Rules) -> list[tuple[Directive, str]]:
    return [rules[place] for place in range(len(rules))]


def in_order(dialect: str, rules: Sequence[Directive]) -> list[tuple[Directive, str]]:
    """Rules and patterns as the dialect's clauses order them: an empty rule is none."""
    read_value = PATTERNS[
        {"rfc9309": "rfc", "seznam": "rfc", "draft1996": "draft", "v2": "glob"}.get(dialect, dialect)
    ][1]
    found: list[tuple[Directive, str]] = []
    for rule in rules:
        if rule[2]:
            pattern = read_value(rule[2])
            found.append((rule, pattern))
            path, slash, page = pattern.rpartition("/")
            if dialect == "google" and rule[1] is Key.ALLOW and slash and page.startswith("index.htm"):
                found.append((rule, path + "/$"))
    if dialect == "draft1996":
        return found
    return sorted(found, key=lambda it: (-len(it[1]), it[0][1] is not Key.ALLOW))


@pytest.mark.parametrize("dialect", MADE)
@given(parts=st.lists(RULES, max_size=4))
def test_rfc9309_2_2_2_rules_stand_in_their_order_of_precedence(
    dialect: str, parts: list[list[tuple[Key, str]]]
) -> None:
    rules = numbered([rule for part in parts for rule in part])
    ends = [sum(map(len, parts[:at])) for at in range(len(parts) + 1)]
    groups = [group(rules[begin:end], version_2=dialect == "v2") for begin, end in pairwise(ends)]
    found, patterns = MADE[dialect](groups)
    expected = in_order(dialect, rules)
    assert told(found) == expected
    assert [*patterns] == [pattern for _, pattern in expected]
    if groups:
        compiled = DIALECTS[dialect].compile(groups)
        entries = [compiled.entry(place) for place in range(len(compiled))]
        assert entries == expected
        assert all(entry.allows is (entry.directive[1] is Key.ALLOW) for entry in entries)
        assert all(entry.length == len(pattern) for entry, (_, pattern) in zip(entries, expected, strict=True))


@pytest.mark.parametrize("dialect", MADE)
@given(parts=st.lists(RULES, min_size=1, max_size=4), data=st.data())
def test_of_those_at_some_places_the_first_are_told_and_how_many_there_are(
    dialect: str, parts: list[list[tuple[Key, str]]], data: st.DataObject
) -> None:
    rules = numbered([rule for part in parts for rule in part])
    found, patterns = MADE[dialect]([group(rules)])
    places = sorted(data.draw(st.sets(st.integers(0, len(found) - 1)))) if len(found) else []
    limit = data.draw(st.integers(0, len(found) + 1))
    first: dict[Directive, str] = {}
    for place in places:
        rule, pattern = found[place]
        assert pattern == patterns[place]
        first.setdefault(rule, pattern)
    assert found.told(places, limit) == ([*first.items()][:limit], len(first))


@pytest.mark.parametrize("longest", [1, 200, 16_000])
@pytest.mark.parametrize("value", ["x", "é"])
def test_many_rules_of_any_length_keep_file_order_where_they_are_equal(longest: int, value: str) -> None:
    rules = numbered([(Key.DISALLOW if at % 3 else Key.ALLOW, value * (at * 7919 % longest + 1)) for at in range(2000)])
    found, patterns = longest_first([group(rules[:700]), group(rules[700:])], rfc_pattern)
    assert [rule for rule, _ in told(found)] == sorted(
        rules, key=lambda rule: (-len(rule[2]), rule[1] is not Key.ALLOW, rule[0])
    )
    assert [*patterns] == [pattern for _, pattern in told(found)]


def test_what_a_rule_is_matched_by_beside_its_pattern_stands_behind_it() -> None:
    rules = numbered([(Key.ALLOW, "/\xe9/index.html"), (Key.ALLOW, ""), (Key.DISALLOW, "/b/index.htm")])
    found, patterns = longest_first([group(rules)], google_pattern, INDEX_PAGE)
    assert told(found) == [(rules[0], "/%E9/index.html"), (rules[2], "/b/index.htm"), (rules[0], "/%E9/$")]
    assert [*patterns] == [pattern for _, pattern in told(found)]
    assert found.told([0, 1, 2], 5) == ([found[0], found[1]], 2)
    assert found.told([1, 2], 1) == ([found[1]], 2)


@pytest.mark.parametrize("tolerant", [True, False])
def test_rules_are_told_from_what_else_a_file_has(tolerant: bool) -> None:
    lines = ["User-agent: a", "Disalow: /typo", "Crawl-delay: 1", "Allow /no-colon", "Disallow: /a", "", "Allow: /bc"]
    document = Document("\n".join([*lines, "User-agent: b", "Disallow:", "Sitemap: /s", "Disallow: /d"]).encode())
    grammar = next(it.grammar for it in DIALECTS.values() if it.grammar.tolerant is tolerant)
    groups = document.groups(grammar).groups
    found, _ = in_file_order(groups, draft_pattern)
    assert [rule for rule, _ in told(found)] == [rule for it in groups for rule in it.rules if rule[2]]
    assert len(found) == (5 if tolerant else 2)


@pytest.mark.parametrize("place", [-1, 2, 1 << 40])
def test_a_place_that_is_none_is_refused(place: int) -> None:
    found, _ = longest_first([group(numbered([(Key.ALLOW, "/a"), (Key.DISALLOW, "/b")]))], rfc_pattern)
    with pytest.raises(IndexError, match="there are 2 rules"):
        found[place]
    with pytest.raises(IndexError):
        found.told([place], 1)


def test_rules_are_made_of_groups_alone() -> None:
    with pytest.raises(TypeError, match="made by"):
        Rules()
    with pytest.raises(TypeError):
        longest_first([None], rfc_pattern)  # type: ignore[list-item]
    with pytest.raises(TypeError):
        in_file_order([group([])], None)  # type: ignore[arg-type]
    rules, patterns = in_file_order([], rfc_pattern)
    assert (len(rules), len(patterns), rules.told([], 5)) == (0, 0, ([], 0))


def test_rules_that_no_file_can_have_are_refused() -> None:
    many = group(numbered([(Key.ALLOW, "/" * 16_000)] * 100))
    with pytest.raises(OverflowError):
        longest_first([many] * 300, rfc_pattern)


def work() -> None:
    rules = numbered([(Key.ALLOW, "/a/index.html"), (Key.DISALLOW, "/%7e?a:"), (Key.DISALLOW, "")])
    for dialect in DIALECTS.values():
        compiled = dialect.compile([group(rules)])
        assert [entry.directive[0] for entry in compiled.matches("/%7e?a:b", 5)[0]] == [2]
    found, patterns = longest_first([group(rules)], google_pattern, INDEX_PAGE)
    assert isinstance(patterns, Texts)
    assert found.told([0, 1, 2], 1)[1] == 2
    with pytest.raises(IndexError):
        found.told([1, 7], 1)


def test_nothing_is_left_behind() -> None:
    assert left_behind(work) < 2000
