"""Spec D4, E3, F11, K8, K9, X5, RFC 3986 6.2.2: normalisation, compared with the reference."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robots_core.robots import patterns
from robots_core.robots._native.matching import Spelling
from tests.robots import naive_matching as naive

SPELT: Final[dict[str, tuple[Spelling, Callable[[bytes], bytes]]]] = {
    "rfc subject": (patterns.rfc_subject, naive.rfc_subject),
    "rfc pattern": (patterns.rfc_pattern, naive.rfc_pattern),
    "google subject": (patterns.google_subject, naive.google_subject),
    "google pattern": (patterns.google_pattern, naive.google_pattern),
    "glob subject": (patterns.glob_subject, naive.glob_subject),
    "glob pattern": (patterns.glob_pattern, naive.glob_pattern),
    "query": (patterns.query_form, lambda text: naive.spelt(text, encoded=b":/?#[]@")),
}
EVERY = pytest.mark.parametrize("name", SPELT)

ESCAPES = st.integers(0, 255).flatmap(lambda it: st.sampled_from([b"%%%02X" % it, b"%%%02x" % it])) | st.sampled_from(
    [b"%aF", b"%2F", b"%2f", b"%7E", b"%7e", b"%25", b"%2a", b"%24", b"%C3%A9"]
)
STUMPS = st.sampled_from([b"%", b"%%", b"%4", b"%g1", b"%1g", b"%\xe9", b"%%34%31", b"%2%41"])
PLAIN = st.sampled_from([b"/", b"a", b"index.htm", b"?", b":", b"[", b"@", b"#", b"*", b"$", b" ", b"\0", b"~", b"&="])
PIECES = st.lists(ESCAPES | STUMPS | PLAIN | st.binary(min_size=1, max_size=1), max_size=24).map(b"".join)
# Cut anywhere, often within an escape.
TEXTS = st.tuples(PIECES, st.integers(0, 3)).map(lambda it: it[0][: len(it[0]) - it[1]])


@EVERY
@given(text=TEXTS)
def test_k8_k9_any_text_is_normalised_as_by_the_reference(name: str, text: bytes) -> None:
    spell, read = SPELT[name]
    assert spell(text) == read(text)


@EVERY
@settings(max_examples=30)
@given(texts=st.lists(TEXTS, max_size=4))
def test_several_texts_are_normalised_as_each_alone(name: str, texts: list[bytes]) -> None:
    spell, read = SPELT[name]
    assert spell.each(texts) == list(map(read, texts))


def bytes_and_escapes() -> Iterator[bytes]:
    around = [b"", b"/?", b"/12345678", b"%"], [b"", b"$", b"4", b"/1"]
    for byte, before, after in product(range(0x100), *around):
        yield before + bytes([byte]) + after
    for high, low, before, after in product(naive.HEX, naive.HEX, [b"", b"%", b"%2"], [b"", b"1", b"%", b"$"]):
        yield before + b"%" + bytes([high, low]) + after


def stumps() -> Iterator[bytes]:
    written = [b"%", b"%4", b"%f", b"%g", b"%4g", b"%g4", b"%%", b"%%4", b"%/1", b"%1/", b"%4:", b"%@1", b"%`1"]
    for stump, after in product(written, [b"", b"x", b"1", b"%41", b"$", b"\xc3\xa9"]):
        yield b"/a?" + stump + after


def lengths() -> Iterator[bytes]:
    written = [b"%7e", b"%2f", b"%2F", b" ", b"\xe9", b"*", b"?/", b"$"]
    for length, odd in product([0, 1, 7, 8, 9, 16, 17, 80, 16_384], written):
        yield from (b"a" * length + odd, odd + b"a" * length, odd * (length // len(odd)))


@EVERY
@pytest.mark.parametrize("written", [bytes_and_escapes, stumps, lengths])
def test_d4f_every_byte_and_escape_at_every_position(name: str, written: Callable[[], Iterator[bytes]]) -> None:
    spell, read = SPELT[name]
    texts = list(written())
    assert spell.each(texts) == list(map(read, texts))


@pytest.mark.parametrize("text", [b"/%zz", b"/%", b"/%4", b"/a%"])
def test_d4f_a_malformed_escape_is_kept(text: bytes) -> None:
    for spell, _ in SPELT.values():
        assert spell(text) == (text.replace(b"/", b"%2F") if spell is patterns.query_form else text)


def test_d3_only_a_final_dollar_of_a_pattern_is_an_anchor() -> None:
    assert patterns.rfc_pattern(b"/a$b$") == b"/a%24b$"
    assert patterns.rfc_subject(b"/a$b$") == b"/a%24b%24"
    assert patterns.google_pattern(b"/a$b$") == b"/a$b$"


@EVERY
@given(text=PIECES.map(lambda it: it.replace(b"%", b"/")))
def test_normalising_twice_changes_nothing(name: str, text: bytes) -> None:
    spell, _ = SPELT[name]
    assert spell(spell(text)) == spell(text)


@given(one=TEXTS, other=TEXTS)
def test_e3_texts_are_equal_as_in_the_draft(one: bytes, other: bytes) -> None:
    """The draft decodes all escapes except `%2F`; the core may choose any normal form."""
    spell, read = patterns.draft_text, naive.draft_text
    for text in (other, one + other):
        starts = read(text)[: len(read(one))] == read(one)
        assert spell(text).startswith(spell(one)) is starts


def test_an_unchanged_text_is_the_same_object() -> None:
    texts = [b"/plain", b"/a%2Fb", b""]
    assert all(spelt is text for spelt, text in zip(patterns.rfc_pattern.each(texts), texts, strict=True))
