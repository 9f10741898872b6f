"""Wildcards asked as a crowd: they say what each alone would, however many are looked at together and for how long."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.robots.crowds import Crowd, Limits
from app.robots.paths import Wildcard
from app.robots.wildcards import Wildcards

TOGETHER = 1e12
LIMITS = {
    "as it is": Limits(),
    "one by one": Limits(haste=0),
    "together": Limits(haste=TOGETHER),
    "some rounds together": Limits(haste=0.2),
    "without a table": Limits(haste=TOGETHER, table=0, few=0),
    "by a small table": Limits(haste=TOGETHER, table=500),
    "from one end": Limits(haste=TOGETHER, few=0),
    "from both ends": Limits(haste=TOGETHER, few=1 << 30, rounds=2),
    "from both ends without a table": Limits(haste=TOGETHER, table=0, few=1 << 30),
    "few places": Limits(haste=TOGETHER, places=5),
}


def read(patterns: Sequence[str]) -> list[tuple[int, Wildcard]]:
    return [(place, Wildcard.read(pattern)) for place, pattern in enumerate(patterns) if "*" in pattern.rstrip("*")]


def one_by_one(patterns: Sequence[tuple[int, Wildcard]], subject: str) -> list[int]:
    return [place for place, pattern in patterns if pattern.matches(subject)]


def text(random: Random, letters: str, longest: int) -> str:
    return "".join(random.choices(letters, k=random.randrange(1, longest)))


def patterns(random: Random, letters: str) -> list[str]:
    """Of every length of text, with many or few texts, so that all grams there are come into play."""
    found = []
    for _ in range(random.choice([1, 15, 150])):
        longest = random.choice([3, 3, 12, 40])
        texts = [text(random, letters, longest) for _ in range(random.choice([1, 2, 3, 3, 30]))]
        ending = random.choice(["", "", "$", "*", "*$"])
        found.append(random.choice(["/", "/", "/a", ""]) + "*" + "*".join(texts) + ending)
    return found


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("letters", ["a", "ab", "abcdefgh"])
def test_a_crowd_says_what_each_says_alone(limits: str, letters: str) -> None:
    random = Random(f"{limits} {letters}")
    for _ in range(40):
        written = read(patterns(random, letters))
        crowd = Crowd(written, LIMITS[limits])
        for length in (0, 1, 5, 60, 300):
            subject = "/" + "".join(random.choice(letters) * random.randrange(1, 9) for _ in range(length))[:length]
            expected = one_by_one(written, subject)
            assert list(crowd.matching(subject, len(written))) == expected
            for below in expected[:2]:
                assert list(crowd.matching(subject, below)) == expected[: expected.index(below)]


PIECES = st.sampled_from(["a", "b", "ab", "aab", "*", "*", "aaaaaaaab", "/"])
PATTERN = st.tuples(st.lists(PIECES, max_size=9).map("".join), st.sampled_from(["", "$", "*"])).map(
    lambda it: "/*" + "".join(it)
)


@pytest.mark.parametrize("limits", LIMITS)
@settings(max_examples=100, deadline=None)
@given(written=st.lists(PATTERN, max_size=30), subject=st.lists(PIECES, max_size=20).map("".join))
def test_a_crowd_says_so_of_any_patterns(limits: str, written: list[str], subject: str) -> None:
    subject = "/" + subject.replace("*", "")
    alone = read(written)
    assert list(Crowd(alone, LIMITS[limits]).matching(subject, len(written))) == one_by_one(alone, subject)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 7, 8, 9, 15, 16, 31, 33, 64, 100, 127, 128, 500])
def test_a_text_is_told_from_one_that_differs_in_one_letter(length: int) -> None:
    random = Random(length)
    subject = "/" + "".join(random.choices("ab", k=700))
    begin = random.randrange(1, 200)
    stands = subject[begin : begin + length]
    flipped = {"a": "b", "b": "a"}
    others = [stands[:at] + flipped[stands[at]] + stands[at + 1 :] for at in range(0, length, max(1, length // 50))]
    written = read([f"/*{text}" for text in (stands, *others)])
    assert list(Crowd(written, LIMITS["together"]).matching(subject, 1000)) == one_by_one(written, subject)


def test_texts_do_not_overlap_and_an_end_stands_behind_them() -> None:
    written = read(["/*aba*aba", "/*aba*ba$", "/*ab*ba$", "/*aba*$", "/aba*ba", "/aba*a*$", "/*abab*bab"])
    assert one_by_one(written, "/ababa") == [1, 2, 3, 4, 5]
    for limits in LIMITS.values():
        assert list(Crowd(written, limits).matching("/ababa", 9)) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(("entered", "reach"), [(0, 10_000), (3, 10_000), (40, 10_000), (200, 0), (200, 40)])
@pytest.mark.parametrize("letters", ["ab", "abcdefgh"])
def test_wildcards_say_the_same_of_a_subject_of_any_length(entered: int, reach: int, letters: str) -> None:
    random = Random(f"{entered} {reach} {letters}")
    for _ in range(30):
        written = read(patterns(random, letters))
        wildcards = Wildcards(written, entered=entered, reach=reach)
        for length in (3, 30, 50, 1200):
            subject = "/" + text(random, letters, length)
            expected = one_by_one(written, subject)
            assert list(wildcards.every(subject, len(written))) == expected
            assert wildcards.first(subject, len(written)) == (expected[0] if expected else len(written))
            for below in expected[:1]:
                assert wildcards.first(subject, below) == below
                assert list(wildcards.every(subject, below)) == []


def test_a_few_long_texts_and_a_long_subject_are_no_reason_to_try_each() -> None:
    written = read([f"/*{'a' * (60 + more)}ba" for more in range(12)])
    wildcards = Wildcards(written)
    assert wildcards.first("/" + "a" * 20_000, 12) == 12
    assert list(wildcards.every("/" + "a" * 20_000 + "ba", 12)) == list(range(12))
