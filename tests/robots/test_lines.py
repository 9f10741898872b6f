"""The compiled reader of lines, groups and agents, beside one that is written to be read (naive.py)."""

import gc
import tracemalloc
from collections.abc import Iterable, Sequence
from typing import Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.robots import google, rfc9309
from app.robots.access import BODY_LIMIT
from app.robots.agents import STAR, Agent
from app.robots.compiled.lines import Cut, FirstRecord, Group, Groups, MergedGroups, Scan, group_of, scan
from app.robots.dialect import RobotsTxt
from app.robots.dialects import DIALECTS
from app.robots.document import Document, Grammar
from app.robots.selection import Selector
from app.robots.syntax import LINE_LIMIT, MEMBER_KEYS, PREFIXES, Key
from tests.corpus import real_files
from tests.robots.naive import NAMED, ToldGroup, read_groups, read_lines, read_token, told, told_groups

GRAMMARS = [
    Grammar(tolerant=tolerant, members_end_run=ending, blank_ends_record=blank)
    for tolerant in (True, False)
    for ending in (True, False)
    for blank in (True, False)
]
ALPHABETS = {"A-Za-z0-9_-": rfc9309.cut, "A-Za-z_-": google.cut}

NAMES = sorted({*NAMED, *(prefix for prefix, _ in PREFIXES), "foo", "user-agen", "dis allow", ""})
COMMON = ["user-agent", "user-agent", "user-agent", "robot-version", "disallow", "crawl-delay", "disalow"]
KEYS = (st.sampled_from(COMMON) | st.sampled_from(COMMON) | st.sampled_from(NAMES)).flatmap(
    lambda name: st.sampled_from([name, name, name.title(), name.upper(), name + "s"])
)
NUMBERS = ["2", "2.0", "2.0.1", "2.0.", "2.0.1234567890", "2.1", "1.0", "20"]
TOKENS = ["", "*", "a", "A", "foo", "Foo", "Foo Bar", "foo/1.0", "1a", "* x", "*x", "*\vx", "_-"]
PATTERNS = ["/", "/x y", "é\xff", "a:b", ":", "x" * LINE_LIMIT]
VALUES = st.sampled_from([*NUMBERS, *TOKENS, *PATTERNS])
COLONS = st.sampled_from([":", ": ", ": ", ": ", " : ", ":\t", " ", "\t ", "\v:\f", "  :", ""])
COMMENTS = st.sampled_from(["", "", "", "", "", "", "#", " # c: d", "\0", "\0#", "#\0", " "])
LINES = st.tuples(st.sampled_from(["", "", " ", "\t\v"]), KEYS, COLONS, VALUES, COMMENTS).map("".join)
OTHER_LINES = st.sampled_from(["", "", " ", "#", "word", "two words", "three words here", "a\vb c", "x y z: 1", "\0"])
ENDINGS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", "\n\r", "\n\n"])
STARTS = st.sampled_from(
    [b"", b"", b"\xef\xbb\xbf", b"\xef\xbb", b"\xef", b"\0", b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff"]
)


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    lines = draw(st.lists(st.tuples(st.one_of(LINES, LINES, LINES, OTHER_LINES), ENDINGS).map("".join), max_size=25))
    return draw(STARTS) + ("".join(lines) + draw(st.sampled_from(["", "Disallow: /last"]))).encode("latin-1")


UNITS = st.sampled_from([0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xE000, 0xFFFF, 0x10FFFF, 0x110000, 0x80, 0x7FF, 0x800])
BORDERS = st.lists(UNITS | st.sampled_from(list(map(ord, "Allow:/\r\n#"))) | st.integers(0, 0xFFFFFFFF), max_size=20)

ORDERS: st.SearchStrategy[Literal["little", "big"]] = st.sampled_from(["little", "big"])


@st.composite
def wide_bodies(draw: st.DrawFn) -> bytes:
    """UTF-16 and UTF-32 with all that neither allows."""
    width, order = draw(st.sampled_from([2, 4])), draw(ORDERS)
    units = [0xFEFF, *draw(BORDERS)]
    body = b"".join((unit % (1 << 8 * width)).to_bytes(width, order) for unit in units)
    return body + draw(st.binary(max_size=3))


ANY = bodies() | wide_bodies() | st.binary(max_size=400) | st.text("aA:#* \t\v\f\r\n\0-/", max_size=80).map(str.encode)


@given(ANY, st.booleans())
@example(b"\xff\xfe\0\0" + "User-agent: a\nDisallow: /é\n\0x".encode("utf-32-le"), False)
@example(b"\xff\xfe" + "User-agent: a\r\nDisallow: /\ud800".encode("utf-16-le", "surrogatepass"), True)
@example(b"Allow: " + b"a" * LINE_LIMIT, False)
@example(b"Allow:" + b"a" * (LINE_LIMIT - 6), False)
@example(b"Allow:" + b"a" * (LINE_LIMIT - 6) + b"#", False)
@example(b"Allow" + b" " * LINE_LIMIT + b":/x", False)
def test_any_octets_are_read_as_the_clauses_say(body: bytes, truncated: bool) -> None:
    read = scan(body, truncated=truncated)
    assert told(read) == read_lines(body, truncated=truncated)
    assert len(read) == len(read.directives)
    for keys in (MEMBER_KEYS, {Key.USER_AGENT}, {Key.BLANK}, frozenset(Key), ()):
        assert read.with_keys(keys) == tuple(it for it in read.directives if it[1] in keys)
        assert read.count(keys) == len(read.with_keys(keys))


@given(ANY)
def test_any_octets_make_the_groups_that_the_clauses_say(body: bytes) -> None:
    read, lines = scan(body), read_lines(body)
    for grammar in GRAMMARS:
        groups = Groups(read, *grammar)
        assert told_groups(groups) == read_groups(lines, grammar)
        assert len(groups) == len(groups.groups)
        assert [group.rules_count for group in groups.groups] == [len(group.rules) for group in groups.groups]


@given(st.lists(st.one_of(LINES, OTHER_LINES), max_size=12))
def test_b1_every_line_ending_reads_the_same(lines: list[str]) -> None:
    read = [told(scan(ending.join(lines).encode("latin-1"))) for ending in ("\n", "\r\n", "\r")]
    assert read[0] == read[1] == read[2]


@given(VALUES | st.text(st.characters(max_codepoint=0xFF), max_size=20) | st.text(max_size=20))
def test_c2_c3_a_value_is_cut_at_the_first_character_that_no_token_has(value: str) -> None:
    for alphabet, cut in ALPHABETS.items():
        assert cut(value) == read_token(value, alphabet)


def asking(*names: str, obeys_star: bool = True) -> Agent:
    return Agent(names[0] if names else STAR, names or (STAR,), names, obeys_star=obeys_star)


def below(group: ToldGroup, first: int | None) -> list[tuple[int, Key, str]]:
    """A group's members that stand below one of its agents."""
    return [(line, key, value) for line, key, value, listed in group.members if first is not None and listed > first]


def assert_says(
    table: Selector, token: str, expected: Sequence[tuple[int, Key, str]], members: Iterable[tuple[int, Key, str, int]]
) -> None:
    """That of the groups' members these are said to the token, and stand in its stretches, and no others."""
    for wanted in MEMBER_KEYS:
        assert table.said(token, wanted) == [value for _, key, value in expected if key is wanted]
    lines = {line for first, last in table.stretches(token) for line in range(first, last)}
    assert [line for line, *_ in members if line in lines] == [line for line, *_ in expected]


def assert_has_lines(table: Selector, plain: tuple[Sequence[ToldGroup], Sequence[tuple[int, Key, str]]]) -> None:
    """That all member lines of groups, and those that no group owns, are told by their keys."""
    groups, orphans = plain
    members = sorted([(line, key, value) for group in groups for line, key, value, _ in group.members] + [*orphans])
    for wanted in MEMBER_KEYS:
        found = [(line, value) for line, key, value in members if key is wanted]
        assert table.lines(wanted) == ([line for line, _ in found], [value for _, value in found])


AGENTS = [asking(), asking("foo"), asking("a", "foo"), asking("1a", "zz", obeys_star=False), asking("_-"), asking("é")]


@given(ANY)
def test_every_agent_finds_the_groups_that_name_it(body: bytes) -> None:
    read, lines = scan(body), read_lines(body)
    for grammar in GRAMMARS[:2]:
        groups = Groups(read, *grammar)
        made, plain = groups.groups, read_groups(lines, grammar)[0]
        for (alphabet, cut), newest in zip(ALPHABETS.items(), (False, True), strict=True):
            table = MergedGroups(groups, cut, prefer_version_2=newest)
            assert_has_lines(table, read_groups(lines, grammar))
            tokens = [[read_token(value, alphabet) for value in group.agents] for group in plain]
            for agent in AGENTS:
                chain = [*agent.chain, *([STAR] if agent.obeys_star else [])]
                token = next((token for token in chain if any(token in named for named in tokens)), None)
                assert table.token(agent) == token
                if token is None:
                    continue
                places = [at for at, named in enumerate(tokens) if token in named]
                if newest:
                    places = [at for at in places if plain[at].version_2] or places
                assert table.groups(token) == tuple(made[at] for at in places)
                expected = [it for at in places for it in below(plain[at], tokens[at].index(token))]
                assert_says(table, token, expected, [it for at in places for it in plain[at].members])
            assert table.groups("nobody") == ()
            assert table.stretches("nobody") == ()
            assert table.said("nobody", Key.COMMENT) == []


@given(ANY)
def test_e2_the_first_record_that_holds_a_name_speaks_for_it(body: bytes) -> None:
    read, lines = scan(body), read_lines(body)
    for grammar in GRAMMARS[-2:]:
        groups = Groups(read, *grammar)
        made, plain = groups.groups, read_groups(lines, grammar)[0]
        records = FirstRecord(groups)
        assert_has_lines(records, read_groups(lines, grammar))
        values = [[value.lower() for value in group.agents] for group in plain]
        starred = next((at for at, record in enumerate(values) if STAR in record), None)
        for agent in AGENTS:
            holding = {
                name: next((at for at, record in enumerate(values) if any(name in value for value in record)), None)
                for name in agent.names
                if name.isascii() and name != STAR
            }
            token = next((name for name, at in holding.items() if at is not None), None if starred is None else STAR)
            if not all(map(str.isascii, agent.names)):
                continue
            assert records.token(agent) == token
            at = starred if token == STAR else holding.get(token or "")
            if token is None or at is None:
                continue
            assert records.groups(token) == (made[at],)
            first = next(place for place, value in enumerate(values[at]) if token in value)
            assert_says(records, token, below(plain[at], first), plain[at].members)
        if starred is None:
            assert records.groups(STAR) == ()


def test_real_files_are_read_as_the_clauses_say() -> None:
    for body in real_files().values():
        read, lines = scan(body), read_lines(body)
        assert told(read) == lines
        for grammar in {dialect.grammar for dialect in DIALECTS.values()}:
            assert told_groups(Groups(read, *grammar)) == read_groups(lines, grammar)


_WORDS = [b"%x" % number for number in range(40_000)]
LARGE = {
    "line feeds": b"\n" * (BODY_LIMIT + 10),
    "carriage returns": b"\r" * BODY_LIMIT,
    "line ends of both kinds": b"\n\r" * (BODY_LIMIT // 2),
    "directives by turns with empty lines": b"Allow:\n\n" * (BODY_LIMIT // 8),
    "unknown keys": b":\n" * (BODY_LIMIT // 2),
    "groups of one agent": b"User-agent:*\nAllow:/\n" * 25_000,
    "agents": b"".join(b"User-agent:%b\n" % word for word in _WORDS),
    "groups": b"".join(b"User-agent:%b\nAllow:/\n" % word for word in _WORDS),
    "one line": b"User-agent:" + b"a" * BODY_LIMIT,
    "UTF-16": b"\xff\xfe" + "User-agent: ﷽\nDisallow: /﷽\n".encode("utf-16-le") * 20_000,
    "no UTF-32": b"\0\0\xfe\xff" + b"\xff" * BODY_LIMIT,
    "no UTF-16": b"\xff\xfe" + b"\0\xd8" * (BODY_LIMIT // 2),
    "all octets": bytes(range(256)) * (BODY_LIMIT // 256),
}


@pytest.mark.parametrize("name", LARGE)
def test_files_at_the_limit_are_read_as_the_clauses_say(name: str) -> None:
    read, lines = scan(LARGE[name]), read_lines(LARGE[name])
    assert told(read) == lines
    for grammar in (Grammar(), Grammar(tolerant=False, blank_ends_record=True)):
        groups = Groups(read, *grammar)
        plain = read_groups(lines, grammar)
        assert told_groups(groups) == plain
        table = MergedGroups(groups, rfc9309.cut)
        named: dict[str, list[int]] = {}
        for group in plain[0]:
            for token in {read_token(value, "A-Za-z0-9_-") for value in group.agents}:
                named.setdefault(token, []).append(group.line)
        named.pop("", None)
        for token, expected in [*named.items()][:: 1 + len(named) // 500]:
            assert table.token(asking(token)) == token
            assert [group.line for group in table.groups(token)] == expected


def test_a_group_is_the_same_object_for_whoever_finds_it() -> None:
    document = Document(b"User-agent: a\nUser-agent: b\nUser-agent: A/1\nDisallow: /x\nUser-agent: A\nDisallow: /y")
    groups = document.groups(Grammar())
    assert document.groups(Grammar()) is groups
    table = MergedGroups(groups, rfc9309.cut)
    first, second = groups.groups
    assert table.groups("b") == (first,)
    assert table.groups("a") == (first, second)
    assert first != second
    assert len({first, second, *groups.groups}) == 2


def test_a_group_that_no_file_has_says_what_it_was_given() -> None:
    rules = [(0, Key.ALLOW, "/é"), (7, Key.DISALLOW, ""), (9, Key.ALLOW, "/" + "x" * (LINE_LIMIT - 1))]
    group = group_of(rules, version_2=True)
    assert (group.rules, group.rules_count, group.version_2) == (tuple(rules), 3, True)
    assert (group.agents, group.members) == ((), ())
    empty = group_of([])
    assert (empty.rules, empty.version_2) == ((), False)
    with pytest.raises(OverflowError):
        group_of([(1, Key.ALLOW, "x" * (LINE_LIMIT + 1))])


@pytest.mark.parametrize("kind", [Scan, Group])
def test_what_has_no_octets_cannot_be_made(kind: type) -> None:
    with pytest.raises(TypeError, match="is made by"):
        kind()


def test_an_alphabet_of_other_than_ascii_is_refused() -> None:
    with pytest.raises(ValueError, match="ASCII"):
        Cut(b"a-z\xe9")


def test_reading_again_and_again_takes_no_more_memory() -> None:
    body = b"User-agent: *\nDisallow: /x\nCrawl-delay: 5\n\nUser-agent: foo\nDisalow: /y\nfoo: bar\n# c\nAllow /z"
    agent = asking("foo")

    def read_all() -> None:
        robots = RobotsTxt(body)
        told(robots.document.scan)
        for dialect in DIALECTS.values():
            told_groups(robots.document.groups(dialect.grammar))
            selection = robots.reading(dialect).select(agent)
            assert selection is not None
            assert robots.reading(dialect).terms(selection, agent).crawl_delay is None

    read_all()
    gc.collect()
    tracemalloc.start()
    try:
        before = 0
        for turn in range(2000):
            read_all()
            if turn == 100:
                before = tracemalloc.get_traced_memory()[0]
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 2000
    finally:
        tracemalloc.stop()
