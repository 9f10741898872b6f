"""RFC 9309 2.2.3, spec D1 to D3 and K11: patterns match together as each does alone."""

import gc
import tracemalloc
from collections.abc import Sequence
from itertools import islice, pairwise, product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robots_core.robots._native.matching import Matcher, Patterns
from tests.robots.matching import AS_WRITTEN, matching_numbers, path_patterns
from tests.robots.naive_matching import matches, reachable


def check(patterns: Sequence[str], *subjects: str) -> int:
    """Check that all together match like each one alone; return how many matched."""
    together, count = path_patterns(patterns), 0
    for subject in subjects:
        expected = [place for place, pattern in enumerate(patterns) if matches(pattern, subject)]
        assert matching_numbers(together, subject) == expected
        count += len(expected)
    return count


TEXT = st.text("/ab*$", max_size=8)


@settings(max_examples=300, deadline=None)
@given(TEXT, st.text("/ab$", max_size=8))
def test_k11_a_pattern_matches_like_the_reference(pattern: str, subject: str) -> None:
    assert matches(pattern, subject) is reachable(pattern, subject)
    assert (matching_numbers(path_patterns([pattern]), subject) == [0]) is reachable(pattern, subject)


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
        ("/*a*b$*", ["/ab$", "/ab$c"], ["/ab"]),
        ("/\0*\0a", ["/\0\0a"], ["/\0a", "/"]),
        ("/é*é$", ["/éé", "/é-é"], ["/é", "/\u00c3é"]),
        ("/*\ud800", ["/x\ud800"], ["/x\ud801", "/x"]),
    ],
)
def test_d2_d3_stars_and_anchors(pattern: str, matching: list[str], others: list[str]) -> None:
    for beside in ([], [f"/*{letter}*{letter}" for letter in "abcdef"], ["/", "*", "$", "/*"]):
        patterns = path_patterns([pattern, *beside])
        assert [subject for subject in matching + others if 0 in matching_numbers(patterns, subject)] == matching


def test_e6_wildcards_are_literal_in_literal_patterns() -> None:
    patterns = path_patterns(["/a*", "/a$", "/", "/a"], literal=True)
    assert matching_numbers(patterns, "/ab") == [2, 3]
    assert matching_numbers(patterns, "/a$x") == [1, 2, 3]
    assert matching_numbers(patterns, "/a*") == [0, 2, 3]


PIECES = st.sampled_from(["a", "b", "ab", "aab", "*", "*", "aaaaaaaab", "bbbbbbbba", "é", "$", "/"])
PATTERN = st.tuples(
    st.sampled_from(["/", "/*", ""]), st.lists(PIECES, max_size=9).map("".join), st.sampled_from(["", "$", "*"])
).map("".join)


@settings(max_examples=200, deadline=None)
@given(patterns=st.lists(PATTERN, max_size=20), subject=st.lists(PIECES, max_size=20).map("".join))
def test_d2_many_patterns_match_as_each_alone(patterns: list[str], subject: str) -> None:
    check(patterns, "/" + subject, subject)


@settings(max_examples=200, deadline=None)
@given(
    patterns=st.lists(st.text(st.characters(exclude_characters="%"), max_size=4), max_size=40),
    subject=st.text(st.characters(exclude_characters="%"), max_size=12),
    chosen=st.integers(0, 39),
)
def test_any_text_is_a_valid_pattern_and_path(patterns: list[str], subject: str, chosen: int) -> None:
    tail = patterns[chosen % len(patterns)] if patterns else ""
    check(patterns, subject, tail + subject, subject + tail)
    literal = path_patterns(patterns, literal=True)
    expected = [place for place, pattern in enumerate(patterns) if (tail + subject).startswith(pattern)]
    assert matching_numbers(literal, tail + subject) == expected


def text(random: Random, letters: str, longest: int) -> str:
    return "".join(random.choices(letters, k=random.randrange(1, longest)))


def runs(random: Random, letters: str, length: int) -> str:
    """Long runs of one letter, in which many segments occur late or not at all."""
    return "/" + "".join(random.choice(letters) * random.randrange(1, 9) for _ in range(length))[:length]


def cut(random: Random, subject: str, longest: int) -> str:
    """A piece of the subject, sometimes with one letter changed."""
    begin = random.randrange(len(subject))
    piece = subject[begin : begin + random.randrange(1, longest)]
    if random.random() < 0.4:
        at = random.randrange(len(piece))
        piece = piece[:at] + random.choice(subject) + piece[at + 1 :]
    return piece.replace("*", "")


def written(random: Random, letters: str, subject: str) -> list[str]:
    """Patterns of every kind, with segments of all lengths, that match the subject or nearly do."""
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


@pytest.mark.parametrize("length", [0, 1, 8, 60, 600, 3000])
@pytest.mark.parametrize("letters", ["a", "ab", "abc/", "abcdefgh-", "aé\u0100", "b\ud800\udfff\U0001f600"])
def test_patterns_that_nearly_match_long_paths_are_distinguished(letters: str, length: int) -> None:
    random = Random(f"{letters!a} {length}")
    for _ in range(8):
        subject = runs(random, letters, length)
        patterns = written(random, letters, subject)
        check(patterns, subject, subject + "a", subject[:-1], subject[1:], "")


@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 31, 32, 33, 100, 128, 500, 2500])
def test_a_segment_differs_from_one_with_another_byte(length: int) -> None:
    random = Random(length)
    subject = "/" + "".join(random.choices("ab", k=3000))
    begin = random.randrange(1, 400)
    stands = subject[begin : begin + length]
    flipped = {"a": "b", "b": "a"}
    places = range(0, length, max(1, length // 50))
    others = [stands[:at] + flipped[stands[at]] + stands[at + 1 :] for at in places]
    check([f"/*{text}" for text in (stands, *others)], subject)
    check([f"/*{text}$" for text in (stands, *others)], subject[: begin + length])


@pytest.mark.parametrize("decoys", range(4))
def test_each_of_many_segments_is_found(decoys: int) -> None:
    grams = ["".join(letters) for letters in islice(product("abcdefgh", repeat=3), 300)]
    stretch = [f"{gram}!" * decoys + f"{gram}x" for gram in grams]
    subject = "/" + "".join(stretch)
    ahead = [f"/*{gram}x*{following}" for gram, following in pairwise(grams)]
    touching = [f"/*{one}*{other}" for one, other in pairwise(stretch)]
    single = [f"/*{gram}x" for gram in grams]
    for patterns in (ahead, touching, single):
        assert matching_numbers(path_patterns(patterns), subject) == list(range(len(patterns)))
    behind = [f"/*{following}x*{gram}" for gram, following in pairwise(grams)]
    assert matching_numbers(path_patterns(behind), subject) == []


@pytest.mark.parametrize(("size", "count"), [(1, 3000), (2, 800), (9, 400), (40, 80)])
def test_segments_without_the_last_do_not_match(size: int, count: int) -> None:
    random = Random(size)
    subject = "/!!" + "".join(random.choices("abcdefgh", k=20_000))
    patterns = []
    for _ in range(10):
        begins = sorted(random.sample(range(3, len(subject) - size, size), count))
        texts = [subject[begin : begin + size] for begin in begins]
        patterns += ["/*" + "*".join(texts), "/*" + "*".join([*texts[:-1], "!!"])]
    check(patterns, subject, subject[:-4000])


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("/*a*a*a*a*a*a*b", False),
        ("/*a*a*a*a*a*a*a", True),
        ("/" + "*a" * 8000 + "*b", False),
        ("/" + "*a" * 8000, True),
    ],
)
def test_b17_no_pattern_causes_backtracking(pattern: str, expected: bool) -> None:
    # Trying every assignment of the stars would take for ever.
    assert (matching_numbers(path_patterns([pattern]), "/" + "a" * 16_000) == [0]) is expected


def test_b17_thousands_of_stars_cause_no_recursion() -> None:
    deep = ["/" + "*a" * depth + f"*b{depth}" for depth in range(100, 3100, 100)]
    assert matching_numbers(path_patterns(deep), "/" + "a" * 1000 + "b500") == [4]
    assert matching_numbers(path_patterns(deep), "/" + "a" * 4000) == []


def test_b16_equivalent_patterns_are_all_listed() -> None:
    alike = ["/a", "/a*", "/a**", "/a*$", "/*b*c", "/**b*c*", "/*b*c*$", "/abc$", "/*c$", "/**c$", "*", ""]
    for count in (1, 3, 50):
        check(alike * count, "/abc", "/a", "/", "")
    assert matching_numbers(path_patterns(["/a", "/a*", "/a"] * 30, literal=True), "/a*") == list(range(90))


@pytest.mark.parametrize("heads", [1, 5, 30])
def test_patterns_under_nested_prefixes_are_all_tried(heads: int) -> None:
    # A subject begins with all heads; patterns with different heads alternate.
    random = Random(heads)
    subject = "/" + "ab" * 40
    patterns = [f"{subject[: 1 + place % heads]}*{text(random, 'ab', 6)}*{'!' * (place % 3)}" for place in range(300)]
    for begin in range(0, 280, 40):
        check(patterns[begin:], subject, subject + "!", subject + "!!", "/", "/b")


@pytest.mark.parametrize("length", [1000, 1023, 1024, 1025, 1400, 4096])
def test_long_paths_give_the_same_answer(length: int) -> None:
    random = Random(length)
    subject = "/" + "".join(random.choices("abc", k=length - 1))
    assert check([*(f"/*{cut(random, subject, 30)}*c" for _ in range(50)), subject, subject + "$"], subject) > 2


def test_first_returns_the_first_pattern_in_order() -> None:
    random = Random(1)
    subject = runs(random, "ab", 400)
    patterns = written(random, "ab", subject) * 3
    for _ in range(30):
        random.shuffle(patterns)
        check(patterns, subject)


def test_without_patterns_nothing_matches() -> None:
    assert matching_numbers(path_patterns([]), "/") == []
    assert matching_numbers(path_patterns([], literal=True), "/") == []


def test_a_second_form_needs_as_many_patterns_as_the_first() -> None:
    with pytest.raises(ValueError, match="as many patterns"):
        Matcher(AS_WRITTEN, path_patterns(["/"]), AS_WRITTEN, path_patterns(["/", "/a"]))
    with pytest.raises(ValueError, match="as many patterns"):
        Matcher(AS_WRITTEN, path_patterns(["/"]), AS_WRITTEN)


def test_other_types_are_refused() -> None:
    with pytest.raises(TypeError):
        Patterns(["/"], steps=1)  # type: ignore[list-item]
    with pytest.raises(TypeError):
        Patterns(3, steps=1)  # type: ignore[arg-type]
    for wrong in (None, b"/", 3):
        with pytest.raises(TypeError):
            Matcher(AS_WRITTEN, path_patterns(["/"])).first(wrong)  # type: ignore[arg-type]


def test_repeated_matching_leaks_no_memory() -> None:
    random = Random(1)
    subject = runs(random, "ab", 2000)
    patterns = written(random, "ab", subject)

    def work() -> None:
        matching_numbers(path_patterns(patterns), subject)

    for _ in range(20):
        work()
    gc.collect()
    tracemalloc.start()
    try:
        work()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(200):
            work()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 2000
    finally:
        tracemalloc.stop()
