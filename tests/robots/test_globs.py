"""Spec F10, F11: a 2.0 glob says what its definition says, whether a place is compared or searched for."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.robots.globs import Glob, Subject, read_glob
from app.robots.matcher import GlobIndex
from app.robots.sketches import Sketches
from tests.robots.test_matcher import glob_reference

PIECES = ["a", "b", "ab", "*", "*", "?", "??", "[ab]", "[ab][ab][ab]", "[!a]", "[bc]", "[z-a]", "[!z-a]"]
SUBJECT = st.text("abc", max_size=14)


@settings(max_examples=600, deadline=None)
@given(pattern=st.lists(st.sampled_from(PIECES), max_size=8).map("".join), subject=SUBJECT)
def test_a_glob_matches_what_its_definition_says(pattern: str, subject: str) -> None:
    assert read_glob(pattern).matches(subject) is glob_reference(pattern, subject)


@pytest.mark.parametrize("stretch", ["[ab]" * 300, "?a" * 150, "[ab][ac]" * 150, "?" * 300, "a" * 200 + "?" * 100])
def test_a_long_stretch_is_found_at_the_first_place_that_has_room_for_it(stretch: str) -> None:
    random = Random(stretch)
    for _ in range(20):
        lead, rest = ("".join(random.choices("abc", k=random.randrange(40))) for _ in range(2))
        subject = lead + "a" * random.randrange(290, 310) + rest
        for pattern in (f"*{stretch}*", f"{stretch}*", f"*{stretch}", f"*b{stretch}*c", f"*{stretch}*?c*"):
            assert read_glob(pattern).matches(subject) is glob_reference(pattern, subject), (pattern, subject)


def test_what_a_subject_keeps_of_a_files_sets_is_bounded_and_never_changes_an_answer() -> None:
    random = Random(1)
    letters = "abcdefghijklmnop"
    subject = "".join(random.choices(letters, k=40))
    asked = Subject(subject)
    for _ in range(3000):
        one, other = ("[" + "".join(random.sample(letters, random.randrange(2, 9))) + "]" for _ in range(2))
        pattern = f"*{one}{one}{other}*{other}*"
        glob = read_glob(pattern)
        assert not hasattr(glob, "fits") or glob.fits(asked) is glob_reference(pattern, subject)


def test_globs_whose_sets_the_subject_lacks_are_passed_over_among_many() -> None:
    patterns = [f"/*[{first}{second}]*" for first in "abcdefgh" for second in "jklmnopq"]
    subject = "/x-h-p"
    expected = [place for place, pattern in enumerate(patterns) if glob_reference(pattern, subject)]
    assert 0 < len(expected) < len(patterns)
    assert GlobIndex(patterns).every(subject) == expected
    assert GlobIndex(patterns).first(subject) == expected[0]


def sketches(written: list[str], followed: int) -> Sketches:
    read = [(2 * place, read_glob(pattern)) for place, pattern in enumerate(written)]
    return Sketches([(place, glob) for place, glob in read if isinstance(glob, Glob)], followed=followed)


STRETCHES = ["a", "b", "c", "?", "[ab]", "[bc]", "[!a]", "[!ab]", "[z-a]", "[ab][bc]", "a[bc]", "*", "*", "*"]
GLOB = st.lists(st.sampled_from(STRETCHES), max_size=9).map("".join)


@pytest.mark.parametrize("followed", [0, 1000])
@settings(max_examples=300, deadline=None)
@given(written=st.lists(GLOB.map(lambda it: f"{it}[ab]*"), min_size=1, max_size=30), subject=SUBJECT)
def test_no_sketch_strikes_out_a_glob_that_matches(followed: int, written: list[str], subject: str) -> None:
    places = [2 * place for place in range(len(written))]
    left = sketches(written, followed).left(places, subject)
    assert left == sorted(left)
    assert {place for place in places if glob_reference(written[place // 2], subject)} <= set(left)


def test_places_that_have_no_sketch_are_left() -> None:
    made = sketches(["a[bc]*", "b[bc]*"], 0)
    assert made.left([0, 1, 2, 5], "ab") == [0, 1, 5]


@pytest.mark.parametrize(
    ("pattern", "subject"),
    [
        ("/*[ab]1*1[cd]*", "/1c-a1"),  # each stands, but in another order
        ("/*[ab]1*1[cd]*", "/a1c"),  # and there, upon one another
        ("/[ab]*", "/c"),
        ("/*[ab]", "/abc"),
        ("/*[ab]c[!x]*", "/xxxx"),
        ("/*[ab][ab][ab][ab]*", "/aba"),
        ("/*[ab]1*[cd]2*[ef]3*", "/c2-a1-e3-d2"),  # only by where the second stands behind the first
    ],
)
def test_a_sketch_strikes_out_globs_by_order_and_room(pattern: str, subject: str) -> None:
    assert sketches([pattern], 0).left([0], subject) == []
    assert not glob_reference(pattern, subject)


@pytest.mark.parametrize("length", [30, 300])
def test_thousands_of_globs_with_the_same_outline_are_decided_as_one_by_one(length: int) -> None:
    random = Random(length)
    letters = "abcdefghij"

    def some() -> str:
        return "[" + "".join(random.sample(letters, random.randrange(1, 4))) + "]"

    written = list(dict.fromkeys(f"/*{some()}1*1{some()}*{some()}{random.choice(['', '*'])}" for _ in range(1500)))
    subject = "/" + "".join(random.choices(letters + "1", k=length))
    expected = [place for place, pattern in enumerate(written) if glob_reference(pattern, subject)]
    index = GlobIndex(written)
    assert index.every(subject) == expected
    assert index.first(subject) == (expected[0] if expected else len(written))
    whole = GlobIndex([*written[:700], subject, *written[700:]])
    assert whole.first(subject) == min([*(place for place in expected if place < 700), 700])
