"""Spec D4, D10, E3, F11, K8, K9, X5: a spelling is what reading the text token by token gives, whatever the text."""

from collections.abc import Callable, Iterator
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.robots.compiled.spelling import Speller
from app.robots.paths import (
    draft_pattern,
    draft_subject,
    glob_pattern,
    glob_subject,
    google_pattern,
    google_subject,
    query_escaped,
    rfc_pattern,
    rfc_subject,
)
from tests.robots.memory import left_behind

HEX = "0123456789abcdefABCDEF"
UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"


def tokens(text: str) -> Iterator[tuple[bool, int]]:
    """Whether it is an escape, and the octet it stands for; a `%` without two digits behind it is an octet."""
    at = 0
    while at < len(text):
        digits = text[at + 1 : at + 3]
        escaped = text[at] == "%" and len(digits) == 2 and digits[0] in HEX and digits[1] in HEX
        yield escaped, int(digits, 16) if escaped else ord(text[at])
        at += 3 if escaped else 1


def read(text: str, encoded: Callable[[str], bool], escape: Callable[[int], str]) -> str:
    """Octets are written as escapes where they are `encoded`, escapes as `escape` says."""
    return "".join(
        escape(octet) if escaped else f"%{octet:02X}" if encoded(chr(octet)) else chr(octet)
        for escaped, octet in tokens(text)
    )


def upper(octet: int) -> str:
    return f"%{octet:02X}"


def unreserved_decoded(octet: int) -> str:
    return chr(octet) if chr(octet) in UNRESERVED else upper(octet)


def octets_of(text: str) -> str:
    return "".join(map(chr, text.encode("utf-8", "surrogatepass")))


def blank_or_foreign(character: str) -> bool:
    return character <= " " or character >= "\x80"


def rfc_1(value: str) -> str:
    stem = value.removesuffix("$")
    return read(stem, lambda it: it >= "\x80" or it == "$", unreserved_decoded) + value[len(stem) :]


def draft(text: str) -> str:
    return read(text, lambda it: False, lambda it: "\u0100" if it == 0x2F else chr(it))


def query(text: str) -> str:
    path, mark, rest = text.partition("?")
    return path + mark + "".join(upper(ord(it)) if it in ":/?#[]@" else it for it in rest)


SUBJECTS: dict[str, tuple[Speller, Callable[[str], str]]] = {
    "rfc": (
        rfc_subject,
        lambda it: read(octets_of(it), lambda it: blank_or_foreign(it) or it in "*$", unreserved_decoded),
    ),
    "google": (google_subject, lambda it: read(octets_of(it), blank_or_foreign, upper)),
    "glob": (glob_subject, lambda it: read(octets_of(it), blank_or_foreign, unreserved_decoded)),
    "draft": (draft_subject, lambda it: draft(octets_of(it))),
}
PATTERNS: dict[str, tuple[Speller, Callable[[str], str]]] = {
    "rfc": (rfc_pattern, rfc_1),
    "google": (google_pattern, lambda it: read(it, lambda it: it >= "\x80", upper)),
    "glob": (glob_pattern, lambda it: read(it, lambda it: it >= "\x80", unreserved_decoded)),
    "draft": (draft_pattern, draft),
    "query": (query_escaped, query),
}
ALL = {f"{name} subject": it for name, it in SUBJECTS.items()} | {f"{name} value": it for name, it in PATTERNS.items()}

ESCAPES = st.integers(0, 255).flatmap(lambda it: st.sampled_from([f"%{it:02X}", f"%{it:02x}"])) | st.sampled_from(
    ["%aF", "%2F", "%2f", "%7E", "%7e", "%25", "%2a", "%24", "%C3%A9"]
)
STUMPS = st.sampled_from(["%", "%%", "%4", "%g1", "%1g", "%é", "%", "%%34%31", "%2%41"])
PLAIN = st.sampled_from(["/", "a", "index.htm", "?", ":", "[", "@", "#", "*", "$", " ", "\t", "\0", "~", "\x7f", "&="])
OCTETS = st.characters(max_codepoint=0xFF)
ANY = st.characters() | st.sampled_from(["\ud800", "\udfff", "\U0010ffff", "Ā", "€"])


def texts(character: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pieces = st.lists(ESCAPES | STUMPS | PLAIN | character, max_size=24).map("".join)
    # Cut anywhere, so that it ends within an escape as often as not.
    return st.tuples(pieces, st.integers(0, 3)).map(lambda it: it[0][: len(it[0]) - it[1]])


def agrees(spell: Speller, expected: str, text: str) -> None:
    spelt = spell(text)
    assert spelt == expected
    assert (spelt is text) is (spelt == text)
    assert spelt.encode("utf-8", "surrogatepass").decode("utf-8", "surrogatepass") == spelt


@pytest.mark.parametrize("name", SUBJECTS)
@given(text=texts(ANY))
def test_k8_any_text_is_spelt_as_it_reads(name: str, text: str) -> None:
    spell, reader = SUBJECTS[name]
    agrees(spell, reader(text), text)


@pytest.mark.parametrize("name", PATTERNS)
@given(text=texts(OCTETS))
def test_k9_any_value_is_spelt_as_it_reads(name: str, text: str) -> None:
    spell, reader = PATTERNS[name]
    agrees(spell, reader(text), text)


def octets_and_escapes() -> Iterator[str]:
    for octet, before, after in product(range(0x100), ["", "/?", "/12345678", "%"], ["", "$", "4", "/12345678"]):
        yield before + chr(octet) + after
    for high, low, before, after in product(HEX, HEX, ["", "/?", "/1234567", "%", "%2", "é"], ["", "1", "%", "$"]):
        yield f"{before}%{high}{low}{after}"


def stumps() -> Iterator[str]:
    written = ["%", "%4", "%f", "%g", "%4g", "%g4", "%%", "%%4", "%/1", "%1/", "%4:", "%@1", "%`1"]
    for stump, after in product(written, ["", "x", "1", "%41", "$", "é"]):
        yield "/a?" + stump + after


def lengths() -> Iterator[str]:
    written = ["%7e", "%2f", "%2F", " ", "é", "*", "?/", "$"]
    for length, odd in product([0, 1, 7, 8, 9, 16, 17, 80, 16_384], written):
        yield from ("a" * length + odd, odd + "a" * length, odd * (length // len(odd)))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("written", [octets_and_escapes, stumps, lengths])
def test_d4f_every_octet_escape_and_stump_in_every_place(name: str, written: Callable[[], Iterator[str]]) -> None:
    spell, reader = ALL[name]
    for text in written():
        agrees(spell, reader(text), text)


WELL_FORMED = st.lists(ESCAPES | PLAIN | OCTETS.filter(lambda it: it != "%"), max_size=24).map("".join)


@pytest.mark.parametrize("name", ["rfc subject", "rfc value", "glob subject", "glob value", "query value"])
@given(text=WELL_FORMED)
def test_a_spelling_of_whole_escapes_is_its_own(name: str, text: str) -> None:
    spell, _ = ALL[name]
    assert spell(spell(text)) == spell(text)


@pytest.mark.parametrize("name", ["google subject", "google value"])
@given(text=texts(OCTETS))
def test_d4c_what_google_spells_is_its_own_spelling(name: str, text: str) -> None:
    spell, _ = ALL[name]
    assert spell(spell(text)) == spell(text)


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("text", ["/\u0100?", "/?\ud800", "\U0010ffff"])
def test_a_value_is_one_character_per_octet(name: str, text: str) -> None:
    spell, _ = PATTERNS[name]
    with pytest.raises(ValueError, match="one character per octet"):
        spell(text)


@pytest.mark.parametrize(
    ("octets", "escapes"),
    [({256: "a"}, {}), ({-1: "a"}, {}), ({}, {256: "a"}), ({1: ""}, {}), ({}, {1: "abcd"}), ({1: "\U00010000"}, {})],
)
def test_a_table_that_cannot_be_kept_is_refused(octets: dict[int, str], escapes: dict[int, str]) -> None:
    with pytest.raises(ValueError):
        Speller(octets, escapes)


def work() -> None:
    """All there is here, its errors too."""
    for spell, _ in ALL.values():
        for text in ("/plain", "/a?b:c%7e%2f %C3%A9", "é" * 50):
            spell(text)
    for broken in (lambda: rfc_pattern("\u0100"), lambda: Speller({1: ""}, {})):
        with pytest.raises(ValueError):
            broken()


def test_nothing_is_left_behind() -> None:
    assert left_behind(work) < 2000
