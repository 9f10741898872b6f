"""Spec X5: a query is asked in both of its forms, and no pattern where it cannot match."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.robots.compiled.deciding import Decider
from app.robots.compiled.lines import group_of
from app.robots.compiled.rules import Rules, in_file_order
from app.robots.compiled.texts import Texts
from app.robots.paths import google_pattern, google_subject, query_escaped, rfc_subject
from app.robots.syntax import Key
from tests.robots.memory import left_behind


class Naive:
    """Prefixes, tried one by one; every index that is made is noted, and so is what each is asked."""

    made: list["Naive"]

    def __init__(self, patterns: Sequence[str]) -> None:
        self.patterns = list(patterns)
        self.asked: list[str] = []
        Naive.made.append(self)

    def every(self, subject: str) -> list[int]:
        self.asked.append(subject)
        return [place for place, pattern in enumerate(self.patterns) if subject.startswith(pattern)]

    def first(self, subject: str) -> int:
        return min(self.every(subject), default=len(self.patterns))


def ruled(patterns: Sequence[str]) -> tuple[Rules, Texts]:
    """Rules of these patterns, in their order."""
    Naive.made = []
    return in_file_order([group_of([(1, Key.DISALLOW, pattern) for pattern in patterns])], google_pattern)


PIECES = st.sampled_from(["/a", "?", ":", "%3A", "%3B", "@", "b", "/"])
PATTERNS = st.lists(PIECES, min_size=1, max_size=5).map("".join)


@given(patterns=st.lists(PATTERNS, max_size=8), paths=st.lists(PATTERNS, min_size=1, max_size=4))
def test_x5_a_pattern_matches_where_it_does_as_written_or_with_both_queries_escaped(
    patterns: list[str], paths: list[str]
) -> None:
    decider = Decider(*ruled(patterns), rfc_subject, Naive, query_escaped)
    for path in paths:
        subject = rfc_subject(path)
        formed = query_escaped(subject)
        expected = [
            place
            for place, pattern in enumerate(patterns)
            if subject.startswith(pattern) or formed.startswith(query_escaped(pattern))
        ]
        assert decider.places(path) == expected
        assert decider.first(path) == min(expected, default=len(patterns))


def test_x5_no_pattern_is_asked_where_it_can_not_match_and_none_more_than_twice() -> None:
    decider = Decider(*ruled(["/?a:", "/?b=", "/", "/c", "/?[@]d"]), rfc_subject, Naive, query_escaped)
    asking, plain = Naive.made
    assert (asking.patterns, plain.patterns) == (["/?a:", "/?[@]d"], ["/?b=", "/", "/c"])
    assert decider.first("/x") == 2
    assert decider.first("/?b=") == 1
    assert len(Naive.made) == 3
    formed = Naive.made[2]
    assert formed.patterns == ["/?a%3A", "/?%5B%40%5Dd"]
    assert (plain.asked, asking.asked, formed.asked) == (["/x", "/?b="], ["/?b="], ["/?b="])
    assert decider.first("/?a%3a") == 0
    assert decider.first("/?b=:") == 1
    assert plain.asked[-2:] == ["/?b=:", "/?b=%3A"]
    assert decider.places("/?[@]d") == [2, 4]


def test_a_decider_without_a_form_matches_as_written() -> None:
    decider = Decider(*ruled(["/?a:", "/"]), google_subject, Naive)
    assert [decider.first(path) for path in ("/?a:", "/?a%3A", "x")] == [0, 1, 2]
    assert decider.places("/?a:b") == [0, 1]


def test_any_function_can_spell_a_path() -> None:
    decider = Decider(*ruled(["/a"]), str.lower, Naive)
    assert (decider.first("/A"), decider.subject("/A"), len(decider.rules)) == (0, "/a", 1)


def test_rules_and_patterns_that_do_not_belong_together_are_refused() -> None:
    rules, _ = ruled(["/a", "/b"])
    with pytest.raises(ValueError, match="2 rules have 1 patterns"):
        Decider(rules, Texts(["/a"]), rfc_subject, Naive)


def broken(patterns: Sequence[str]) -> Naive:
    raise ValueError(len(patterns))


def work() -> None:
    decider = Decider(*ruled(["/?a:", "/?b=", "/"]), rfc_subject, Naive, query_escaped)
    assert (decider.first("/?a%3a"), decider.places("/?b=:")) == (0, [1, 2])
    with pytest.raises(ValueError, match="2"):
        Decider(*ruled(["/", "/?a:", "/?a:b"]), rfc_subject, broken, query_escaped)
    Naive.made = []


def test_nothing_is_left_behind() -> None:
    assert left_behind(work) < 2000
