"""The compiled index of patterns: it says what trying each says, of any text and of any number of them."""

import gc
import tracemalloc
from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.robots.compiled.patterns import PatternIndex, PrefixIndex, hash_by

FILLER = [f"/filler/{number}" for number in range(20)]
"""Enough that patterns beside them are no longer tried one by one."""
STARRED = [f"/*filler{number}" for number in range(20)]
"""The same, of patterns with stars behind the same head."""


def matches(pattern: str, subject: str) -> bool:
    """The definition, text by text (spec D2, D3)."""
    anchored = pattern.endswith("$")
    head, *texts = pattern.removesuffix("$").split("*")
    if not texts:
        return subject == head if anchored else subject.startswith(head)
    at, end = len(head), len(subject)
    if anchored:
        last = texts.pop()
        end -= len(last)
        if not subject.endswith(last):
            return False
    for text in texts:
        found = subject.find(text, at, end)
        if found < 0 <= end:
            return False
        at = found + len(text)
    return subject.startswith(head) and at <= end


def check(patterns: Sequence[str], *subjects: str) -> None:
    index = PatternIndex(patterns)
    for subject in subjects:
        expected = [place for place, pattern in enumerate(patterns) if matches(pattern, subject)]
        assert index.every(subject) == expected
        assert index.first(subject) == (expected[0] if expected else len(patterns))


def text(random: Random, letters: str, longest: int) -> str:
    return "".join(random.choices(letters, k=random.randrange(1, longest)))


def runs(random: Random, letters: str, length: int) -> str:
    """Long runs of one letter, so that many texts stand nowhere, or only far behind where they are looked for."""
    return "/" + "".join(random.choice(letters) * random.randrange(1, 9) for _ in range(length))[:length]


def cut(random: Random, subject: str, longest: int) -> str:
    """A piece of it, and sometimes one that differs in a letter."""
    begin = random.randrange(len(subject))
    piece = subject[begin : begin + random.randrange(1, longest)]
    if random.random() < 0.4:
        at = random.randrange(len(piece))
        piece = piece[:at] + random.choice(subject) + piece[at + 1 :]
    return piece.replace("*", "")


def written(random: Random, letters: str, subject: str) -> list[str]:
    """Patterns of every kind, with texts of every length, that match the subject or nearly do."""
    found = []
    longest = random.choice([3, 6, 12, 40, 130])
    for _ in range(random.choice([1, 10, 30, 150])):
        texts = [
            cut(random, subject, longest) if random.random() < 0.6 else text(random, letters, longest)
            for _ in range(random.choice([0, 1, 1, 2, 3, 12]))
        ]
        head = random.choice(["/", "/", "", subject[: random.randrange(longest)]]).replace("*", "")
        ending = random.choice(["", "", "$", "*", "*$", "**$", "$*"])
        found.append(head + random.choice(["", "*", "*", "**"]) + random.choice(["*", "**"]).join(texts) + ending)
    return found + random.choices(found, k=random.choice([0, 0, len(found)]))


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("length", [0, 1, 8, 60, 600, 3000])
@pytest.mark.parametrize("letters", ["a", "ab", "abc/", "abcdefgh-%", "aé\u0100", "b\ud800\udfff\U0001f600"])
def test_an_index_says_what_trying_each_says(letters: str, length: int, few: bool) -> None:
    random = Random(f"{letters!a} {length}")
    for _ in range(12):
        subject = runs(random, letters, length)
        patterns = written(random, letters, subject)
        others = [subject + "a", subject[:-1], subject[1:], ""]
        check(patterns if few else [*patterns, *STARRED, *FILLER], subject, *others)


PIECES = st.sampled_from(["a", "b", "ab", "aab", "*", "*", "aaaaaaaab", "bbbbbbbba", "é", "$", "/"])
PATTERN = st.tuples(
    st.sampled_from(["/", "/*", ""]), st.lists(PIECES, max_size=9).map("".join), st.sampled_from(["", "$", "*"])
).map("".join)


@pytest.mark.parametrize("beside", [[], STARRED + FILLER])
@settings(max_examples=300, deadline=None)
@given(patterns=st.lists(PATTERN, max_size=30), subject=st.lists(PIECES, max_size=20).map("".join))
def test_an_index_says_so_of_any_patterns(beside: list[str], patterns: list[str], subject: str) -> None:
    check(patterns + beside, "/" + subject, subject)


@settings(max_examples=200, deadline=None)
@given(
    patterns=st.lists(st.text(st.characters(), max_size=4), max_size=40),
    subject=st.text(st.characters(), max_size=12),
    chosen=st.integers(0, 39),
)
def test_an_index_says_so_of_any_text(patterns: list[str], subject: str, chosen: int) -> None:
    tail = patterns[chosen % len(patterns)] if patterns else ""
    check(patterns, subject, tail + subject, subject + tail)
    index = PrefixIndex(patterns)
    expected = [place for place, pattern in enumerate(patterns) if (tail + subject).startswith(pattern)]
    assert index.every(tail + subject) == expected
    assert index.first(tail + subject) == (expected[0] if expected else len(patterns))


@pytest.mark.parametrize("beside", [[], STARRED + FILLER])
@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("", ["", "/", "*"], []),
        ("*", ["", "/a"], []),
        ("$", [""], ["/", "$"]),
        ("*$", ["", "/a"], []),
        ("/a**", ["/a", "/ab"], ["/"]),
        ("/a$", ["/a"], ["/ab", "/a$"]),
        ("/a$*", ["/a$", "/a$b"], ["/a"]),
        ("/a*$", ["/a", "/ab"], ["/"]),
        ("/a$b*c$", ["/a$bc", "/a$bxc"], ["/abc", "/a$bcd"]),
        ("/a*a$", ["/aa", "/aba"], ["/a"]),
        ("/*aba*aba", ["/abaaba"], ["/ababa"]),
        ("/*ab*ba$", ["/abba"], ["/aba"]),
        ("/\0*\0a", ["/\0\0a"], ["/\0a", "/"]),
        ("/é*é$", ["/éé", "/é-é"], ["/é", "/\u00c3é"]),
        ("/*\ud800", ["/x\ud800"], ["/x\ud801", "/x"]),
    ],
)
def test_d2_what_stars_and_an_anchor_say(
    beside: list[str], pattern: str, matching: list[str], others: list[str]
) -> None:
    index = PatternIndex([pattern, *beside])
    assert [subject for subject in matching + others if index.first(subject) == 0] == matching
    assert all(index.every(subject)[:1] == [0] for subject in matching)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 100, 127, 128, 500, 2500])
def test_a_text_is_told_from_one_that_differs_in_one_letter(length: int) -> None:
    random = Random(length)
    subject = "/" + "".join(random.choices("ab", k=3000))
    begin = random.randrange(1, 400)
    stands = subject[begin : begin + length]
    flipped = {"a": "b", "b": "a"}
    places = range(0, length, max(1, length // 50))
    others = [stands[:at] + flipped[stands[at]] + stands[at + 1 :] for at in places]
    check([f"/*{text}" for text in (stands, *others)] + STARRED, subject)
    check([f"/*{text}$" for text in (stands, *others)] + STARRED, subject[: begin + length])


@pytest.mark.parametrize("length", [200, 5000, 60_000])
@pytest.mark.parametrize("size", [1, 2, 5, 8, 11, 16, 23, 40])
def test_a_text_is_found_behind_the_one_before_whoever_else_has_asked_for_it(size: int, length: int) -> None:
    # All patterns ask for the same few texts, from everywhere.
    random = Random(f"{size} {length}")
    subject = "".join(random.choices("abcdef", k=length))
    subject = "/" + subject.replace("f", "f" * size, 40)
    texts = ["f" * size, "f" * (size - 1) + "a", *(cut(random, subject, size + 1) for _ in range(3))]
    anywhere = [cut(random, subject, 9) for _ in range(150)]
    check([f"/*{random.choice(anywhere)}*" + "*".join(random.choices(texts, k=3)) for _ in range(200)], subject)


@pytest.mark.parametrize(("size", "count"), [(1, 3000), (2, 800), (9, 400), (40, 80)])
def test_chains_of_texts_that_lack_one(size: int, count: int) -> None:
    random = Random(size)
    subject = "/!!" + "".join(random.choices("abcdefgh", k=20_000))
    patterns = []
    for _ in range(20):
        begins = sorted(random.sample(range(3, len(subject) - size, size), count))
        texts = [subject[begin : begin + size] for begin in begins]
        patterns += ["/*" + "*".join(texts), "/*" + "*".join([*texts[:-1], "!!"])]
    check(patterns, subject, subject[:-4000])


def test_a_few_long_texts_and_a_long_subject_are_looked_up() -> None:
    # Trying these is too much work: each nearly stands everywhere.
    few = [f"/*{'a' * (60 + more)}ba" for more in range(12)]
    for beside in ([], FILLER):
        check([*few, *beside], "/" + "a" * 20_000, "/" + "a" * 20_000 + "ba", "/" + "a" * 70 + "ba")


def test_patterns_behind_one_gate_are_looked_up_when_they_are_too_many() -> None:
    random = Random(1)
    subject = "/" + "".join(random.choices("ab", k=400))
    patterns = [f"/*{text(random, 'ab', 5)}*{text(random, 'ab', 9)}*{text(random, 'ab', 12)}" for _ in range(2000)]
    check(patterns, subject)
    check([*patterns, *FILLER], subject[:100])


def test_every_tells_of_those_that_say_the_same() -> None:
    alike = ["/a", "/a*", "/a**", "/a*$", "/*b*c", "/**b*c*", "/*b*c*$", "/abc$", "/*c$", "/**c$", "*", ""]
    for count in (1, 3, 50):
        check(alike * count, "/abc", "/a", "/", "")
    assert PrefixIndex(["/a", "/a*", "/a"] * 30).every("/a*") == list(range(90))


def test_an_index_of_nothing() -> None:
    for index in (PatternIndex([]), PrefixIndex([])):
        assert (index.first("/"), index.every("/")) == (0, [])


@pytest.mark.parametrize("make", [PatternIndex, PrefixIndex])
def test_what_is_no_text_is_refused(make: Any) -> None:
    with pytest.raises(TypeError):
        make(["/", b"/"])
    with pytest.raises(TypeError):
        make(3)
    for wrong in (None, b"/", 3):
        with pytest.raises(TypeError):
            make(["/"]).first(wrong)
        with pytest.raises(TypeError):
            make(["/"]).every(wrong)


@pytest.fixture(params=[0, 1, 1 << 63])
def _colliding(request: pytest.FixtureRequest) -> Iterator[None]:
    """Hashes that tell texts apart by little, or by nothing at all."""
    before = hash_by(request.param)
    yield
    hash_by(before)


@pytest.mark.usefixtures("_colliding")
@pytest.mark.parametrize("letters", ["ab", "abcdefgh"])
def test_texts_with_the_same_hash_are_told_apart(letters: str) -> None:
    random = Random(letters)
    for length in (20, 600):
        subject = runs(random, letters, length)
        patterns = written(random, letters, subject)
        check([*patterns, *STARRED, *FILLER], subject, subject[1:])
        prefixes = [subject[:size] for size in range(20)] + [subject[:size] + "!" for size in range(20)]
        index = PrefixIndex(prefixes)
        assert index.every(subject) == list(range(20))


@pytest.mark.usefixtures("_colliding")
@pytest.mark.parametrize("width", [16, 32, 64, 256])
def test_long_texts_whose_grams_have_the_same_hash_are_told_apart(width: int) -> None:
    # By 0, what is of two halves has the hash of what is of the same the other way round.
    random = Random(width)
    left, right = ("".join(random.choices("abc", k=width // 2)) for _ in range(2))
    one, other = left + right + "d", right + left + "d"
    filler = "".join(random.choices("abc", k=600))
    patterns = [f"/*{one}", f"/*{other}", f"/*{one}*{other}", f"/*{other}*{one}", f"/*{one}*{one}*{other}*!", *STARRED]
    check(patterns, *(f"/{filler}{between.join([other, one, other])}!" for between in ("", filler)))
    check(patterns, f"/{filler}{other}", f"/{filler}{one}", f"/{filler}{other * 50}{one}", f"/{one * 50}{other}")


@pytest.mark.parametrize("heads", [1, 5, 30])
def test_patterns_with_stars_are_asked_for_by_their_heads(heads: int) -> None:
    # Nested, so that a subject begins with all; the patterns of each stand between those of others.
    random = Random(heads)
    subject = "/" + "ab" * 40
    patterns = [f"{subject[: 1 + place % heads]}*{text(random, 'ab', 6)}*{'!' * (place % 3)}" for place in range(300)]
    for count in (13, 20, 300):
        for begin in range(0, 300 - count + 1, 40):
            check([*patterns[begin : begin + count], *FILLER], subject, subject + "!", subject + "!!", "/", "/b")


def asked(random: Random) -> None:
    """Everything there is to an index, once."""
    subject = runs(random, "ab", 700)
    patterns = written(random, "ab", subject)
    for index in (PatternIndex([*patterns, *STARRED]), PatternIndex(patterns[:10]), PrefixIndex(patterns)):
        index.first(subject)
        index.every(subject[:100])


def test_an_index_leaves_no_memory_behind() -> None:
    def held() -> int:
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        for seed in range(100):  # what decisions work with grows to what it needs
            asked(Random(seed))
        before = held()
        for seed in range(200):
            asked(Random(seed % 100))
        assert abs(held() - before) < 1000
        for seed in range(10_000):
            PatternIndex(["/a", "/a*b", "/a*b$", f"/{seed}*é"]).first("/axb")
        assert abs(held() - before) < 1000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("count", [15_000, 70_000])
@pytest.mark.parametrize("size", [1, 3, 5, 6, 8, 9, 17, 31, 33, 100])
def test_an_index_takes_a_bounded_number_of_octets_for_each_of_its_patterns(size: int, count: int) -> None:
    random = Random(size)
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    patterns = ["/*" + "".join(random.choices(letters, k=size)) for _ in range(min(count, 500_000 // size))]
    subject = "/" + "!" * 1000
    assert PatternIndex(patterns).first(subject) == len(patterns)  # it has what all decisions work with
    tracemalloc.start()
    try:
        index = PatternIndex(patterns)
        assert index.first(subject) == len(patterns)
        assert tracemalloc.get_traced_memory()[0] < 20 * sum(map(len, patterns)) + 40 * len(patterns)
    finally:
        tracemalloc.stop()


def test_grams_of_every_width_are_found() -> None:
    # Periods, so that each text stands at many places, and each length from 1 to thousands has one.
    period = "abcabcd"
    subject = "/" + period * 3000
    lengths = [*range(1, 70), *range(100, 5000, 333)]
    texts = ["/*" + (period * 800)[length % 5 :][:length] for length in lengths]
    check(texts + [f"{one}*{other[2:]}" for one, other in pairwise(texts)] + [f"{text}!" for text in texts], subject)


def test_more_texts_are_frequent_than_there_are_bitsets_for() -> None:
    random = Random(97)
    period = "".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=97))
    subject = "/" + period * 60
    texts = [(period * 2)[at : at + length] for at in range(97) for length in (2, 3, 4, 5, 6, 7, 8, 9, 17, 33, 65)]
    asking = [f"/*{text}*{text}*{text}*{text}*{text}*{random.choice(texts)}" for text in texts]
    check([*asking, *(f"{pattern}*!" for pattern in asking)], subject, subject[:-3000])


def test_more_offsets_are_found_than_there_is_room_for() -> None:
    # Each text is two grams of 8 that stand too seldom for bitsets, is asked for more than a few times, and hardly ever
    # stands as a whole; as many offsets as its rarer gram has might have to be kept.
    random = Random(20)
    letters = "abcdefghijklmnopqrstuvwxyz"
    grams = ["".join(random.choices(letters, k=8)) for _ in range(128)]
    subject = "/" + "".join(random.choices(grams, k=38_000))
    texts = [left + right for left in grams[::2] for right in grams[1::2]]
    random.shuffle(texts)
    check([f"/*{'*'.join([text] * 6)}*!" for text in texts] + [f"/*{text}*{text}" for text in texts[-100:]], subject)
