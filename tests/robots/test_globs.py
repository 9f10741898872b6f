"""Spec F10, F11: a 2.0 glob says what its definition says, whether a place is compared or searched for."""

import gc
import tracemalloc
from collections.abc import Sequence
from itertools import pairwise, product
from random import Random
from string import ascii_letters, digits

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.robots.compiled.globs import GlobIndex
from tests.robots.test_matcher import glob_reference

PIECES = ["a", "b", "ab", "*", "*", "?", "??", "[ab]", "[ab][ab][ab]", "[!a]", "[bc]", "[z-a]", "[!z-a]"]
SUBJECT = st.text("abc", max_size=14)


def asked(patterns: Sequence[str], subject: str) -> list[int]:
    """What the index says, once it is known to say what trying every glob does."""
    expected = [place for place, pattern in enumerate(patterns) if glob_reference(pattern, subject)]
    index = GlobIndex(patterns)
    assert index.every(subject) == expected
    assert index.first(subject) == (expected[0] if expected else len(patterns))
    return expected


@settings(max_examples=600, deadline=None)
@given(pattern=st.lists(st.sampled_from(PIECES), max_size=8).map("".join), subject=SUBJECT)
def test_a_glob_matches_what_its_definition_says(pattern: str, subject: str) -> None:
    asked([pattern], subject)


WRITTEN = ["a", "b", "-", "]", "[", "[", "!", "^", "\\", "*", "?", "[a-]", "[]a]", "[!]a]", "[^b]", "[a-c]", "[\\]"]


@settings(max_examples=600, deadline=None)
@given(
    patterns=st.lists(st.lists(st.sampled_from(WRITTEN), max_size=8).map("".join), max_size=20),
    subject=st.text("ab-][!^\\*", max_size=8),
)
def test_sets_and_escapes_are_read_as_they_are_defined(patterns: list[str], subject: str) -> None:
    asked(patterns, subject)


ASCII = st.text(st.characters(max_codepoint=127), max_size=12)


@settings(max_examples=300, deadline=None)
@given(patterns=st.lists(ASCII, max_size=20), subject=ASCII)
def test_any_ascii_is_a_pattern_and_a_subject(patterns: list[str], subject: str) -> None:
    asked([*patterns, f"*{subject}*", "[!" + subject + "]"], subject)


@pytest.mark.parametrize("text", ["/é", "/€", "/\U0001f600", "/\udc80"])
def test_what_is_not_normalised_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not ASCII"):
        GlobIndex(["/a", text])
    with pytest.raises(ValueError, match="is not ASCII"):
        GlobIndex(["/a"]).first(text)
    with pytest.raises(ValueError, match="is not ASCII"):
        GlobIndex(["/a"]).every(text)


def test_patterns_that_say_the_same_are_all_told() -> None:
    patterns = ["/a", "/*", "/a", "/[ab]", "/*", "/[ab]", "/a", "/[b]", "*a*"] * 5
    assert len(asked(patterns, "/a")) == 40
    assert asked(patterns, "/b")[:3] == [1, 3, 4]
    assert asked([], "/a") == []
    assert asked(["", "*", ""], "") == [0, 1, 2]


@pytest.mark.parametrize("stretch", ["[ab]" * 300, "?a" * 150, "[ab][ac]" * 150, "?" * 300, "a" * 200 + "?" * 100])
def test_a_long_stretch_is_found_at_the_first_place_that_has_room_for_it(stretch: str) -> None:
    random = Random(stretch)
    for _ in range(20):
        lead, rest = ("".join(random.choices("abc", k=random.randrange(40))) for _ in range(2))
        subject = lead + "a" * random.randrange(290, 310) + rest
        asked([f"*{stretch}*", f"{stretch}*", f"*{stretch}", f"*b{stretch}*c", f"*{stretch}*?c*"], subject)


STRETCHES = ["a", "b", "c", "?", "[ab]", "[bc]", "[!a]", "[!ab]", "[z-a]", "[ab][bc]", "a[bc]", "*", "*", "*"]
GLOB = st.lists(st.sampled_from(STRETCHES), max_size=9).map("".join)


@pytest.mark.parametrize("repeated", [1, 40])
@settings(max_examples=200, deadline=None)
@given(written=st.lists(GLOB, min_size=1, max_size=30), subject=SUBJECT)
def test_many_globs_are_decided_as_one_by_one(repeated: int, written: list[str], subject: str) -> None:
    asked([f"{glob}[ab]*" for glob in written], subject * repeated)


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
        ("/*[ab]*[cd]?*", "/ac"),
        ("/??", "/a"),
        ("/a*a", "/a"),
    ],
)
def test_order_and_room_are_asked_for(pattern: str, subject: str) -> None:
    assert asked([pattern], subject) == []
    assert asked([pattern] + [f"{pattern}{number}" for number in range(20)], subject) == []


@pytest.mark.parametrize("length", [30, 300, 3000])
def test_thousands_of_globs_with_the_same_outline_are_decided_as_one_by_one(length: int) -> None:
    random = Random(length)
    letters = "abcdefghij"

    def some() -> str:
        return "[" + "".join(random.sample(letters, random.randrange(1, 4))) + "]"

    written = list(dict.fromkeys(f"/*{some()}1*1{some()}*{some()}{random.choice(['', '*'])}" for _ in range(1500)))
    subject = "/" + "".join(random.choices(letters + "1", k=length))
    expected = asked(written, subject)
    whole = GlobIndex([*written[:700], subject, *written[700:]])
    assert whole.first(subject) == min([*(place for place in expected if place < 700), 700])


def test_more_sets_than_are_told_one_by_one_stand_where_they_stand() -> None:
    random = Random(1)
    letters = "".join(map(chr, range(0x3A, 0x5B))) + ascii_letters
    sets = ["[" + "".join(random.sample(letters, random.randrange(2, 30))) + "]" for _ in range(900)]
    subject = "/" + "".join(random.choice(letters[k // 9 :][:9]) for k in range(500))
    patterns = [f"/*{one}*{other}" + "*" * (random.random() < 0.7) for one, other in pairwise(sets)]
    assert 0 < len(asked(patterns, subject)) < len(patterns)


ALPHABETS = {
    "two letters": "ab",
    "ten letters": "abcdefghij",
    "letters and digits": ascii_letters + digits,
    "escapes": "%0123456789ABCDEF",
    "all there is": "".join(map(chr, range(0x80))),
}


def made_for(subject: str, alphabet: str, random: Random) -> str:
    """A glob of which each stretch is cut from the subject, behind the one before; now and then not quite."""
    stretches, at = [], 0
    for _ in range(random.choice([1, 2, 3, 9])):
        length = random.choice([1, 1, 2, 3, 8, 40, 200, 1000])
        room = len(subject) - length - at
        if room < 0:
            break
        at += random.randrange(min(room, len(subject) // 5) + 1)
        written = [element(character, alphabet, random) for character in subject[at : at + length]]
        if random.random() < 0.3:
            written[random.randrange(length)] = element(random.choice(alphabet), alphabet, random)
        if random.random() < 0.2:
            written = [written[0]] * length
        stretches.append("".join(written))
        at += length
    return random.choice(["*", "*", ""]) + "*".join(stretches) + random.choice(["*", "*", ""])


def element(character: str, alphabet: str, random: Random) -> str:
    """One of the ways to ask for a character: by itself, in a set, not in a set, or as any."""
    members = "".join(set(random.choices(alphabet, k=random.choice([1, 2, 6]))) - set("]-!^") - {character})
    way = random.choice(["text", "text", "text", "any", "set", "set", "negated"])
    if way == "any" or character in "]-!^" or not members:
        return "?"
    if way == "text":
        return f"\\{character}" if character in "*?[\\" else character
    return f"[{character}{members}]" if way == "set" else f"[!{members}]"


@pytest.mark.parametrize("alphabet", ALPHABETS)
@pytest.mark.parametrize("length", [0, 1, 60, 511, 2000, 60_000])
@pytest.mark.parametrize("period", [None, 3, 64, 255])
def test_globs_that_nearly_fit_long_subjects_are_decided_as_one_by_one(
    alphabet: str, length: int, period: int | None
) -> None:
    random = Random(f"{alphabet} {length} {period}")
    letters = ALPHABETS[alphabet]
    common = random.choice([1, 1, 50 * len(letters)])  # one letter more often than all others
    characters = random.choices(letters, [common] + [1] * (len(letters) - 1), k=period or length)
    subject = "".join(characters * (length // max(len(characters), 1) + 1))[:length]
    for _ in range(4 if subject else 0):
        at = random.randrange(length)
        subject = subject[:at] + random.choice(letters) + subject[at + 1 :]
    asked([made_for(subject, letters, random) for _ in range(3 if length > 2000 else 30)], subject)


@pytest.mark.parametrize("length", [0, 63, 64, 65, 503, 504, 505, 2039, 2040, 2041, 4096, 5000])
@pytest.mark.parametrize("common", [1, 30, 2000])
def test_stretches_that_are_looked_for_again_and_again_stand_where_they_stand(length: int, common: int) -> None:
    """Of so few that each is noted, whether it stands often, seldom or never, as a text, in sets, or both."""
    random = Random(f"{length} {common}")
    letters = "abcdefghijkl"
    subject = "/" + "".join(random.choices(letters, [common] + [1] * (len(letters) - 1), k=length))
    sets = ["[" + "".join(random.sample(letters, 3)) + "]" for _ in range(6)]
    cut = [subject[at : at + size] for size in (1, 2, 3, 9, 40) for at in random.choices(range(length + 1), k=2)]
    few = [*cut, *sets, "[!a]?b", f"{sets[0]}{sets[1]}", f"{sets[2]}?{sets[3]}a", f"{cut[2]}[!b]", "z", "[z]a", "ll"]
    patterns = ["/*" + "*".join(random.choices(few, k=random.choice([2, 4, 9]))) + "*" for _ in range(60)]
    asked([*patterns, *(f"{pattern}{random.choice(few)}" for pattern in patterns)], subject)


@pytest.mark.parametrize("length", [700, 5000])
@pytest.mark.parametrize("count", [1, 40])
def test_starts_that_live_long_are_tried_to_their_end(length: int, count: int) -> None:
    """Of every so many starts one fits but for a single place."""
    random = Random(f"{length} {count}")
    letters = "abcdefghijklmnopqrst"
    pairs = [random.sample(letters, 2) for _ in range(63)]
    patterns = []
    for _ in range(count):
        sets = ["[" + "".join(pairs[place % 63]) + "]" for place in range(length)]
        sets[random.randrange(length)] = random.choice(["[!" + random.choice(letters) + "]", "[uv]", "?", "[ab]"])
        patterns.append(f"/*{''.join(sets)}*")
    subject = "/." + "".join(random.choice(pairs[place % 63]) for place in range(3 * length)) + "uv"
    asked(patterns, subject)


def test_a_run_that_is_broken_again_and_again_is_found_where_it_is_not() -> None:
    for gap in (31, 32, 33, 500, 511, 512, 513):
        for written in ("a", "[ab]", "[!c]"):
            subject = "/" + ("a" * gap + "c") * 6 + "a" * (gap + 1) + "c" + "b" * gap
            patterns = [
                f"/*{written * (gap + more)}{last}*" for more, last in product((0, 1, 2), ("", "c", "?", "[bc]"))
            ]
            asked(patterns, subject)


def test_a_character_that_the_subject_lacks_is_missed_wherever_it_is_asked_for() -> None:
    subject = "/" + "ab" * 5000
    for more in (1, 30, 31, 32, 40, 300):
        text = "ab" * more
        patterns = [f"*{text}x*", f"*x{text}*", f"*{text}x{text}*", f"*{text}[xy]{text}*", f"*{text}[a-z]?{text}*"]
        assert asked(patterns, subject) == [4]


def test_a_subject_longer_than_any_url_is_decided_too() -> None:
    subject = "/" + "ab" * 140_000 + "c"
    assert asked(["/*[ab]c", "*aa*", "*b[a-c]c", "*" + "[ab]" * 50 + "c*"], subject) == [0, 3]


def test_an_index_keeps_nothing_when_it_is_gone() -> None:
    patterns = ["/a", "/*[ab]x*", "/*text?*", "/[z-a]", "/a", *(f"/*{number}[!a]*" for number in range(20))]
    subject = "/" + "abx1" * 300

    def use() -> None:
        for _ in range(5000):
            index = GlobIndex(patterns)
            index.every(subject)
            with pytest.raises(ValueError):
                GlobIndex([*patterns, "é"])

    use()
    gc.collect()
    tracemalloc.start()
    try:
        use()
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        use()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 20_000
