"""Texts side by side are the texts they were made of, whatever is in them."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.robots.compiled.globs import GlobIndex
from app.robots.compiled.patterns import PatternIndex, PrefixIndex
from app.robots.compiled.texts import Texts
from tests.robots.memory import left_behind

ANY = st.lists(st.text(st.characters() | st.sampled_from(["\ud800", "\u0100", "\0"]), max_size=12), max_size=12)


@given(written=ANY, places=st.lists(st.integers(-15, 15), max_size=3), part=st.slices(12))
def test_texts_are_a_sequence_of_what_they_were_made_of(written: list[str], places: list[int], part: slice) -> None:
    held = Texts(iter(written))
    assert (len(held), [*held], [*reversed(held)]) == (len(written), written, written[::-1])
    for place in places:
        if -len(written) <= place < len(written):
            assert held[place] == written[place]
        else:
            with pytest.raises(IndexError):
                held[place]
    assert held[part] == written[part]
    assert all(text in held for text in written)


PATTERNS = st.lists(st.text("/ab*$?[]é\u0100", max_size=6), max_size=40)


@pytest.mark.parametrize("make", [PatternIndex, PrefixIndex, GlobIndex])
@given(patterns=PATTERNS, subjects=st.lists(st.text("/ab$?[]é\u0100", max_size=8), min_size=1, max_size=4))
def test_an_index_reads_texts_as_it_reads_what_they_were_made_of(
    make: type[PatternIndex | PrefixIndex | GlobIndex], patterns: list[str], subjects: Sequence[str]
) -> None:
    if make is GlobIndex:
        patterns, subjects = ([text for text in texts if text.isascii()] for texts in (patterns, subjects))
    one, other = make(patterns), make(Texts(patterns))
    for subject in subjects:
        assert (one.first(subject), one.every(subject)) == (other.first(subject), other.every(subject))


@pytest.mark.parametrize("wrong", [[b"/a"], ["/a", None], 5])
def test_nothing_but_text_is_taken(wrong: Sequence[str]) -> None:
    with pytest.raises((TypeError, AttributeError)):
        Texts(wrong)


def work() -> None:
    held = Texts(["/a", "", "é" * 200])
    assert [*held, held[-1], *held[1:]]
    with pytest.raises(IndexError):
        held[3]


def test_nothing_is_left_behind() -> None:
    assert left_behind(work) < 2000
