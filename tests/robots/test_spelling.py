"""Spec D4, D10, E3, F11, K8, K9, X5: a spelling is what reading the text token by token gives, whatever the text."""

import gc
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.robots.compiled.lines import group_of
from app.robots.compiled.spelling import Decider, Speller, by_length, spelled
from app.robots.dialects import DIALECTS
from app.robots.document import Group
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
from app.robots.syntax import Directive, Key

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


VALUES = (
    texts(OCTETS)
    | st.sampled_from(["", "/", "/index.html", "/a/index.htm?", "index.htm", "/index.htm/", "/%69ndex.htm"])
    | st.integers(0, 700).map(lambda length: "/" * length)
)
RULES = st.lists(st.tuples(st.sampled_from([Key.ALLOW, Key.DISALLOW]), VALUES), max_size=30)


def numbered(rules: Sequence[tuple[Key, str]]) -> list[Directive]:
    return [(line, key, value) for line, (key, value) in enumerate(rules, 1)]


def group(rules: Sequence[Directive], *, version_2: bool = False) -> Group:
    return group_of(rules, version_2=version_2)


def in_order(dialect: str, rules: Sequence[Directive]) -> list[tuple[Directive, str]]:
    """Rules and patterns as the dialect's clauses order them: an empty rule is none."""
    read_value = PATTERNS[
        {"rfc9309": "rfc", "seznam": "rfc", "draft1996": "draft", "v2": "glob"}.get(dialect, dialect)
    ][1]
    found: list[tuple[Directive, str]] = []
    for rule in rules:
        if rule[2]:
            pattern = read_value(rule[2])
            found.append((rule, pattern))
            path, slash, page = pattern.rpartition("/")
            if dialect == "google" and rule[1] is Key.ALLOW and slash and page.startswith("index.htm"):
                found.append((rule, path + "/$"))
    if dialect == "draft1996":
        return found
    return sorted(found, key=lambda it: (-len(it[1]), it[0][1] is not Key.ALLOW))


@pytest.mark.parametrize("dialect", DIALECTS)
@given(first=RULES, second=RULES)
def test_rfc9309_2_2_2_rules_stand_in_their_order_of_precedence(
    dialect: str, first: list[tuple[Key, str]], second: list[tuple[Key, str]]
) -> None:
    rules = numbered(first + second)
    groups = [group(part, version_2=dialect == "v2") for part in (rules[: len(first)], rules[len(first) :])]
    compiled = DIALECTS[dialect].compile(groups).entries
    entries = [compiled[place] for place in range(len(compiled))]
    expected = in_order(dialect, rules)
    assert [(entry.directive, entry.pattern) for entry in entries] == expected
    assert all(entry.allows is (entry.directive[1] is Key.ALLOW) for entry in entries)
    assert all(entry.directive == rule for entry, (rule, _) in zip(entries, expected, strict=True))


@pytest.mark.parametrize("longest", [1, 200, 20_000])
def test_many_rules_of_any_length_keep_file_order_where_they_are_equal(longest: int) -> None:
    rules = numbered([(Key.DISALLOW if at % 3 else Key.ALLOW, "x" * (at * 7919 % longest + 1)) for at in range(2000)])
    found, patterns = by_length(rules, [value for _, _, value in rules], Key.ALLOW)
    assert found == sorted(rules, key=lambda rule: (-len(rule[2]), rule[1] is not Key.ALLOW, rule[0]))
    assert patterns == [value for _, _, value in found]


def test_rules_and_patterns_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(ValueError, match="2 rules have 1 patterns"):
        by_length(numbered([(Key.ALLOW, "/a"), (Key.ALLOW, "/b")]), ["/a"], Key.ALLOW)


def test_what_a_rule_is_matched_by_beside_its_pattern_stands_behind_it() -> None:
    rules = numbered([(Key.ALLOW, "/%7e"), (Key.ALLOW, ""), (Key.DISALLOW, "/b")])
    found = spelled([rules], rfc_pattern, lambda rule, pattern: pattern + "$" if rule[1] is Key.ALLOW else None)
    assert found == ([rules[0], rules[0], rules[2]], ["/~", "/~$", "/b"])


class Naive:
    """Prefixes, tried one by one; every index that is made is noted, and so is what each is asked."""

    made: list["Naive"]
    weight = 0

    def __init__(self, patterns: Sequence[str]) -> None:
        self.patterns = list(patterns)
        self.asked: list[str] = []
        Naive.made.append(self)

    def every(self, subject: str) -> list[int]:
        self.asked.append(subject)
        return [place for place, pattern in enumerate(self.patterns) if subject.startswith(pattern)]

    def first(self, subject: str) -> int:
        return min(self.every(subject), default=len(self.patterns))


QUERIES = st.lists(st.sampled_from(["/a", "?", ":", "%3A", "%3a", "@", "b", "/"]), max_size=5).map("".join)


@given(patterns=st.lists(QUERIES, max_size=8), paths=st.lists(QUERIES, min_size=1, max_size=4))
def test_x5_a_pattern_matches_where_it_does_as_written_or_with_both_queries_escaped(
    patterns: list[str], paths: list[str]
) -> None:
    Naive.made = []
    decider = Decider(patterns, rfc_subject, Naive, query_escaped)
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
    Naive.made = []
    decider = Decider(["/?a:", "/?b=", "/"], rfc_subject, Naive, query_escaped)
    asking, plain = Naive.made
    assert (asking.patterns, plain.patterns) == (["/?a:"], ["/?b=", "/"])
    assert decider.first("/x") == 2
    assert decider.first("/?b=") == 1
    assert len(Naive.made) == 3
    formed = Naive.made[2]
    assert formed.patterns == ["/?a%3A"]
    assert (plain.asked, asking.asked, formed.asked) == (["/x", "/?b="], ["/?b="], ["/?b="])
    assert decider.first("/?a%3a") == 0
    assert decider.first("/?b=:") == 1
    assert plain.asked[-2:] == ["/?b=:", "/?b=%3A"]


def test_a_decider_without_a_form_matches_as_written() -> None:
    Naive.made = []
    decider = Decider(["/?a:", "/"], google_subject, Naive)
    assert [decider.first(path) for path in ("/?a:", "/?a%3A", "x")] == [0, 1, 2]
    assert decider.places("/?a:b") == [0, 1]


def test_any_function_can_spell_a_path() -> None:
    Naive.made = []
    assert Decider(["/a"], str.lower, Naive).first("/A") == 0


def work() -> None:
    """All there is here, its errors too."""
    for spell, _ in ALL.values():
        for text in ("/plain", "/a?b:c%7e%2f %C3%A9", "é" * 50):
            spell(text)
    rules = numbered([(Key.ALLOW, "/a/index.html"), (Key.DISALLOW, "/%7e?a:"), (Key.DISALLOW, "")])
    for dialect in DIALECTS.values():
        compiled = dialect.compile([group(rules)])
        assert [entry.directive[0] for entry in compiled.every("/%7e?a:b")] == [2]
    for broken in (
        lambda: rfc_pattern("\u0100"),
        lambda: by_length(rules, [], Key.ALLOW),
        lambda: Speller({1: ""}, {}),
    ):
        with pytest.raises(ValueError):
            broken()


def test_nothing_is_left_behind() -> None:
    for _ in range(20):
        work()
    gc.collect()
    tracemalloc.start()
    try:
        work()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(200):
            work()
        gc.collect()
        # The smallest object there is, lost in each round, would be 3,200 octets; the interpreter itself keeps some.
        assert tracemalloc.get_traced_memory()[0] - before < 2000
    finally:
        tracemalloc.stop()
