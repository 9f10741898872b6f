"""Spec F10, F11: globs of version 2.0 match like the reference, alone and among others."""

from collections.abc import Sequence
from random import Random
from string import ascii_letters, digits

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.robots.matching import globs, matching_numbers
from tests.robots.naive_matching import FOREIGN, characters, glob_matches, spelt


def check(patterns: Sequence[str], subject: str) -> list[int]:
    """The globs that match; checks that all together match like each one alone."""
    expected = [place for place, pattern in enumerate(patterns) if glob_matches(pattern, subject)]
    assert matching_numbers(globs(patterns), subject) == expected
    return expected


PIECES = ["a", "b", "ab", "*", "*", "?", "??", "[ab]", "[ab][ab][ab]", "[!a]", "[bc]", "[z-a]", "[!z-a]"]
SUBJECT = st.text("abc", max_size=14)


@settings(max_examples=200, deadline=None)
@given(pattern=st.lists(st.sampled_from(PIECES), max_size=8).map("".join), subject=SUBJECT)
def test_f11_a_glob_matches_like_the_reference(pattern: str, subject: str) -> None:
    check([pattern], subject)


WRITTEN = ["a", "b", "-", "]", "[", "[", "!", "^", "\\", "*", "?", "[a-]", "[]a]", "[!]a]", "[^b]", "[a-c]", "[\\]"]


@settings(max_examples=150, deadline=None)
@given(
    patterns=st.lists(st.lists(st.sampled_from(WRITTEN), max_size=8).map("".join), max_size=8),
    subject=st.text("ab-][!^\\*", max_size=8),
)
def test_f11_sets_and_escapes_are_read_as_defined(patterns: list[str], subject: str) -> None:
    check(patterns, subject)


ASCII = st.text(st.characters(max_codepoint=127, exclude_characters="%"), max_size=12)


@settings(max_examples=200, deadline=None)
@given(patterns=st.lists(ASCII, max_size=15), subject=ASCII)
def test_any_ascii_text_is_a_valid_glob_and_path(patterns: list[str], subject: str) -> None:
    check([*patterns, f"*{subject}*", "[!" + subject + "]"], subject)


# Characters, cut ones, escapes that are no UTF-8, and those of reserved characters, normalised.
ESCAPED = ["%C3%A9", "%E2%82%AC", "%F0%9F%95%B7", "%C3", "%A9", "%E2%82", "%ED%A0%80", "%F4%90%80%80", "%F8", "%FF"]
ESCAPED += [
    "%C0%80",
    "%E0%80%80",
    "%C1%BF",
    "%DF%BF",
    "%E0%A0%80",
    "%ED%9F%BF",
    "%EE%80%80",
    "%F4%8F%BF%BF",
    "%2F",
    "%",
]
WITH_ESCAPES = [
    *ESCAPED,
    "a",
    "*",
    "?",
    "?",
    "[%C3%A9]",
    "[!%C3%A9]",
    "[%C3%A9-%F0%9F%95%B7]",
    "[%A9-%FF]",
    "[a-%2F]",
    "[",
]
WITH_ESCAPES += ["-", "!", "]", "\\"]


@settings(max_examples=200, deadline=None)
@given(
    patterns=st.lists(st.lists(st.sampled_from(WITH_ESCAPES), max_size=7).map("".join), max_size=6),
    subject=st.lists(st.sampled_from([*ESCAPED, "a", "/", "-"]), max_size=5).map("".join),
)
def test_f11_characters_are_compared_and_not_their_bytes(patterns: list[str], subject: str) -> None:
    check([*patterns, "?" * len(characters(subject)), f"[{subject}]" * len(characters(subject)), subject], subject)


def test_f11_every_character_is_one() -> None:
    for point in [*range(0x80, 0x900), *range(0xD700, 0xD800), *range(0xE000, 0xE100), *range(0x10FF00, 0x110000)]:
        written = spelt(chr(point).encode(), encoded=FOREIGN).decode()
        assert check(["?", "??", written, f"[{written}]", f"[!{written}]"], written) == [0, 2, 3]


def test_f11_a_byte_that_is_no_character_is_one_too() -> None:
    for byte in range(0x80, 0x100):
        written = f"%{byte:02X}"
        assert check(["?", "???", written, f"[{written}]", f"[!{written}]"], written) == [0, 2, 3]


@settings(max_examples=200, deadline=None)
@given(subject=st.binary(min_size=1, max_size=8))
def test_f11_a_path_has_as_many_characters_as_its_utf8_or_bytes(subject: bytes) -> None:
    written = "".join(f"%{byte:02X}" for byte in subject)
    length = len(subject.decode("utf-8", "surrogateescape"))
    assert check(["?" * each for each in range(10)], written) == [length]


def test_f11_a_large_set_is_sorted_and_merged() -> None:
    random = Random(11)
    points = random.sample(range(0x4E00, 0x9FFF), 3000)
    pattern = "[" + "".join(spelt(chr(point).encode(), encoded=FOREIGN).decode() for point in points) + "]"
    inside = set(points)
    for point in random.sample(range(0x4E00, 0x9FFF), 300):
        written = spelt(chr(point).encode(), encoded=FOREIGN).decode()
        assert matching_numbers(globs([pattern]), written) == [0] * (point in inside)


def test_b16_equivalent_globs_are_all_listed() -> None:
    patterns = ["/a", "/*", "/a", "/[ab]", "/*", "/[ab]", "/a", "/[b]", "*a*"] * 5
    assert len(check(patterns, "/a")) == 40
    assert check(patterns, "/b")[:3] == [1, 3, 4]
    assert check([], "/a") == []
    assert check(["", "*", ""], "") == [0, 1, 2]


@pytest.mark.parametrize("stretch", ["[ab]" * 300, "?a" * 150, "[ab][ac]" * 150, "?" * 300, "a" * 200 + "?" * 100])
def test_f11_a_long_segment_is_found(stretch: str) -> None:
    random = Random(stretch)
    for _ in range(10):
        lead, rest = ("".join(random.choices("abc", k=random.randrange(40))) for _ in range(2))
        subject = lead + "a" * random.randrange(290, 310) + rest
        check([f"*{stretch}*", f"{stretch}*", f"*{stretch}", f"*b{stretch}*c", f"*{stretch}*?c*"], subject)


@pytest.mark.parametrize(
    ("pattern", "subject"),
    [
        ("/*[ab]1*1[cd]*", "/1c-a1"),  # in another order
        ("/*[ab]1*1[cd]*", "/a1c"),  # they overlap
        ("/[ab]*", "/c"),
        ("/*[ab]", "/abc"),
        ("/*[ab]c[!x]*", "/xxxx"),
        ("/*[ab][ab][ab][ab]*", "/aba"),
        ("/*[ab]1*[cd]2*[ef]3*", "/c2-a1-e3-d2"),  # the second is before the first
        ("/*[ab]*[cd]?*", "/ac"),
        ("/??", "/a"),
        ("/a*a", "/a"),
    ],
)
def test_f10_segments_must_be_in_order_and_not_overlap(pattern: str, subject: str) -> None:
    assert check([pattern] + [f"{pattern}{number}" for number in range(20)], subject) == []


ALPHABETS = {
    "two letters": "ab",
    "letters and digits": ascii_letters + digits,
    "all there is": "".join(map(chr, range(0x80))).replace("%", ""),
}


def made_for(subject: str, alphabet: str, random: Random) -> str:
    """A glob of successive pieces of the subject, some with a wrong letter."""
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
        stretches.append("".join(written))
        at += length
    return random.choice(["*", "*", ""]) + "*".join(stretches) + random.choice(["*", "*", ""])


def element(character: str, alphabet: str, random: Random) -> str:
    """A token that matches a character: itself, a set, a negated set, or `?`."""
    members = "".join(set(random.choices(alphabet, k=random.choice([1, 2, 6]))) - set("]-!^") - {character})
    way = random.choice(["text", "text", "text", "any", "set", "set", "negated"])
    if way == "any" or character in "]-!^" or not members:
        return "?"
    if way == "text":
        return f"\\{character}" if character in "*?[\\" else character
    return f"[{character}{members}]" if way == "set" else f"[!{members}]"


@pytest.mark.parametrize("alphabet", ALPHABETS)
@pytest.mark.parametrize("length", [0, 1, 60, 511, 2000])
@pytest.mark.parametrize("period", [None, 3, 64])
def test_f10_globs_that_nearly_match_long_paths_are_distinguished(
    alphabet: str, length: int, period: int | None
) -> None:
    random = Random(f"{alphabet} {length} {period}")
    letters = ALPHABETS[alphabet]
    characters = random.choices(letters, k=period or length)
    subject = "".join(characters * (length // max(len(characters), 1) + 1))[:length]
    check([made_for(subject, letters, random) for _ in range(30)], subject)
