"""RFC 9309 2.2, spec B and K1 to K2: scanning lines, compared with the reference (naive.py)."""

import gc
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from robots_core.robots.access import BODY_LIMIT, readable_part
from robots_core.robots.lines import LINE_LIMIT, Form, Key, Scan, codes_of, key_of, readable, scan
from robots_core.robots.robots_txt import RobotsTxt
from tests.robots.bodies import ANY, LINES
from tests.robots.naive import MISSPELT, NAMED, PREFIXES, File, read_lines, scanned


def recognised(body: bytes) -> list[tuple[int, Key, bytes]]:
    """The lines that all parsers but Google's recognise."""
    read = scan(body)
    directives = read.directives(range(len(read.lines)))
    return [(it.line, it.key, it.value) for it in directives if it.key not in (Key.BLANK, Key.UNKNOWN)]


def forms(body: bytes) -> list[tuple[Key, Form]]:
    return [key_of(code) for code in scan(body).lines.codes]


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
def test_b1_every_line_ending_counts_one_line(ending: bytes) -> None:
    body = ending.join([b"User-agent: a", b"", b"Disallow: /x"])
    assert recognised(body) == [(1, Key.USER_AGENT, b"a"), (3, Key.DISALLOW, b"/x")]


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"])
def test_b2_a_whole_or_partial_mark_at_the_start_is_skipped(mark: bytes) -> None:
    assert recognised(mark + b"User-agent: a") == [(1, Key.USER_AGENT, b"a")]
    assert scan(mark + b"User-agent: a").bom
    assert not scan(b"User-agent: a").bom


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"])
def test_b2_the_mark_is_not_part_of_the_first_line(mark: bytes) -> None:
    assert scan(mark + b" Disalow: /x # why").text(0) == "Disalow: /x"


def test_b2_a_mark_elsewhere_is_part_of_the_key() -> None:
    assert recognised(b"User-agent: a\n\xef\xbb\xbfDisallow: /") == [(1, Key.USER_AGENT, b"a")]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
def test_a26_utf_16_and_32_are_recognised_by_their_mark(encoding: str) -> None:
    mark = "" if encoding in {"utf-16", "utf-32"} else "\ufeff"
    body = (mark + "User-agent: a\nDisallow: /é").encode(encoding)
    assert [readable(value) for _, _, value in recognised(body)] == ["a", "/é"]


def test_b3_a_comment_may_start_anywhere() -> None:
    assert recognised(b"# top\nDisallow: /foo#bar\n  # more") == [(2, Key.DISALLOW, b"/foo")]


def test_b5_two_words_without_a_colon_are_a_directive() -> None:
    body = b"Disallow /x\nDisallow /x y\nDisallow\n\tDisallow\t /z "
    assert recognised(body) == [(1, Key.DISALLOW, b"/x"), (4, Key.DISALLOW, b"/z")]
    assert forms(body) == [(Key.DISALLOW, Form.TOLERATED)] * 2


@pytest.mark.parametrize("line", [b"Disallow \v /x", b"Disallow\t\f\t/x", b"Disallow /x \v /y"])
def test_b5_only_space_and_tab_separate_words(line: bytes) -> None:
    assert recognised(line) == []


@pytest.mark.parametrize("name", NAMED)
def test_b6_every_proper_name_is_read_in_any_case(name: str) -> None:
    for written in (name, name.upper(), name.title(), f" {name}\t"):
        assert forms(f"{written}: v".encode()) == [(NAMED[name], Form.PROPER)]


@pytest.mark.parametrize(("key", "names"), MISSPELT.items())
def test_b6_listed_misspellings_are_recognised(key: Key, names: list[str]) -> None:
    for name in names:
        assert forms(f"{name.title()}: v".encode()) == [(key, Form.TOLERATED)]
        assert recognised(f"{name}: v".encode()) == [(1, key, b"v")]


@pytest.mark.parametrize(("key", "names"), PREFIXES.items())
def test_b6_only_google_accepts_keys_by_prefix(key: Key, names: tuple[str, ...]) -> None:
    for name in names:
        assert forms(f"{name}-All: v".encode()) == [(key, Form.BY_PREFIX)]
        assert recognised(f"{name}-All: v".encode()) == []


def test_i5_training_statements_have_their_own_keys() -> None:
    body = b"DisallowAITraining: /\nallowaitraining: /a\nDisallowAITrainings: /"
    assert recognised(body) == [(1, Key.DISALLOW_AI_TRAINING, b"/"), (2, Key.ALLOW_AI_TRAINING, b"/a")]
    assert forms(body)[2] == (Key.DISALLOW, Form.BY_PREFIX)


@pytest.mark.parametrize("written", ["Alow", "site map", "Foo", "", "user-agen", "x" * 300, "\xff"])
def test_b6_other_keys_are_unknown(written: str) -> None:
    assert forms(f"{written}: v".encode("latin-1")) == [(Key.UNKNOWN, Form.PROPER)]


def test_b7_a_line_is_cut_at_its_limit_and_still_counts() -> None:
    body = b"Disallow: /" + b"a" * 20_000 + b"\nAllow: /b"
    kept = b"/" + b"a" * (LINE_LIMIT - len("Disallow: /"))
    assert recognised(body) == [(1, Key.DISALLOW, kept), (2, Key.ALLOW, b"/b")]


def test_b13_nul_ends_a_line_and_other_bytes_are_kept() -> None:
    assert recognised(b"Disallow: /x\0y\nAllow: /\xff") == [(1, Key.DISALLOW, b"/x"), (2, Key.ALLOW, b"/\xff")]
    assert readable(b"/\xc3\xa9\xff") == "/é\ufffd"


def test_a24_a_long_file_is_truncated_to_whole_lines() -> None:
    line = b"Disallow: /0123456\n"
    found = scan(line * (BODY_LIMIT // len(line) + 10))
    assert found.truncated
    assert len(found.lines) == found.lines.count == BODY_LIMIT // len(line)
    assert not scan(line).truncated


RULE = b"Disallow: /abc"
AT_THE_LIMIT = b"User-agent: a\n" + b"#" * (BODY_LIMIT - len(b"User-agent: a\n\n" + RULE)) + b"\n" + RULE


@pytest.mark.parametrize(
    ("beyond", "whole"),
    [(b"\n", True), (b"\r\nx", True), (b"#", True), (b"\0x", True), (b"d", False), (b" ", False), (b" # x\n", False)],
)
def test_a24_a_rule_that_ends_at_the_limit_counts(beyond: bytes, whole: bool) -> None:
    assert len(AT_THE_LIMIT) == BODY_LIMIT
    found = scan(AT_THE_LIMIT + beyond)
    assert found.truncated
    assert (found.directive(len(found.lines) - 1).value == b"/abc") is whole
    assert scanned(found) == read_lines(AT_THE_LIMIT + beyond)
    # It is the same where the fetch has cut the file.
    assert scanned(scan(readable_part(AT_THE_LIMIT + beyond), truncated=True)) == scanned(found)


def test_a24_a_rule_with_its_comment_cut_counts() -> None:
    for end in (b" # wh", b"\0x"):
        read = scan(b"User-agent: a\nDisallow: /abc" + end, truncated=True)
        assert read.directives(range(len(read.lines)))[1:] == ((2, Key.DISALLOW, b"/abc"),)


def test_a24_a_truncated_body_loses_its_last_line() -> None:
    read = scan(b"User-agent: a\nDisallow: /abc", truncated=True)
    assert read.directives(range(len(read.lines))) == ((1, Key.USER_AGENT, b"a"),)


def test_a_line_is_shown_without_comment_and_outer_blanks() -> None:
    assert scan(b"\n \tDisallow : /\xc3\xa9 \t# why").text(1) == "Disallow : /é"


def test_an_invalid_position_is_refused() -> None:
    lines = scan(b"Allow: /\nDisallow: /").lines
    for ask in (lines.number, lines.value, lines.start):
        with pytest.raises(IndexError, match="2 lines"):
            ask(2)
    with pytest.raises(IndexError):
        lines.values([7])


@given(ANY, st.booleans())
@example(b"\xff\xfe\0\0" + "User-agent: a\nDisallow: /é\n\0x".encode("utf-32-le"), False)
@example(b"\xff\xfe" + "User-agent: a\r\nDisallow: /\ud800".encode("utf-16-le", "surrogatepass"), True)
@example(b"Allow: " + b"a" * LINE_LIMIT, False)
@example(b"Allow:" + b"a" * (LINE_LIMIT - 6), False)
@example(b"Allow:" + b"a" * (LINE_LIMIT - 6) + b"#", False)
@example(b"Allow" + b" " * LINE_LIMIT + b":/x", False)
@example(b"Disallow\t\v/x\nDisallow \v /x", False)
def test_any_bytes_are_scanned_as_by_the_reference(body: bytes, truncated: bool) -> None:
    assert scanned(scan(body, truncated=truncated)) == read_lines(body, truncated=truncated)


@given(ANY)
def test_positions_are_found_by_code(body: bytes) -> None:
    robots = RobotsTxt(body)
    codes = robots.scan.lines.codes
    for keys in ({Key.USER_AGENT}, {Key.BLANK, Key.UNKNOWN}, set(Key)):
        assert robots.positions(codes_of(keys, Form)) == [
            at for at, code in enumerate(codes) if key_of(code)[0] in keys
        ]


@given(st.lists(LINES, max_size=12))
def test_b1_every_line_ending_reads_the_same(lines: list[str]) -> None:
    read = [scanned(scan(ending.join(lines).encode("latin-1"))) for ending in ("\n", "\r\n", "\r")]
    assert read[0] == read[1] == read[2]


def rewritten(read: Scan) -> bytes:
    """The file with proper keys on the same lines; lines without a key become comments."""
    lines = [b"#"] * read.lines.count
    for line, key, value in read.directives(range(len(read.lines))):
        lines[line - 1] = b"" if key is Key.BLANK else b"%s:%s" % (str(key).encode(), value)
    return b"\n".join([*lines, b""])


@given(ANY)
def test_scanned_lines_scan_the_same_when_written(body: bytes) -> None:
    once = scanned(scan(rewritten(scan(body))))
    assert scanned(scan(rewritten(scan(rewritten(scan(body)))))) == once


LARGE = {
    "line feeds": b"\n" * (BODY_LIMIT + 10),
    "line ends of both kinds": b"\n\r" * (BODY_LIMIT // 2),
    "unknown keys": b":\n" * 20_000 + b"#" * BODY_LIMIT,
    "one line": b"User-agent:" + b"a" * BODY_LIMIT,
    "UTF-16": b"\xff\xfe" + "User-agent: ﷽\nDisallow: /﷽\n".encode("utf-16-le") * 20_000,
    "not UTF-32": b"\0\0\xfe\xff" + b"\xff" * BODY_LIMIT,
    "not UTF-16": b"\xff\xfe" + b"\0\xd8" * (BODY_LIMIT // 2),
    "all bytes": bytes(range(256)) * (BODY_LIMIT // 256),
}


@pytest.mark.parametrize("name", LARGE)
def test_files_at_the_limit_are_scanned_as_by_the_reference(name: str) -> None:
    read: File = scanned(scan(LARGE[name]))
    assert read == read_lines(LARGE[name])


def test_repeated_scanning_leaks_no_memory() -> None:
    body = b"User-agent: *\nDisallow: /x\nCrawl-delay: 5\n\nfoo: bar\n# c\nAllow /z"
    for _ in range(20):
        scanned(scan(body))
    gc.collect()
    tracemalloc.start()
    try:
        scanned(scan(body))
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(500):
            scanned(scan(body))
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 2000
    finally:
        tracemalloc.stop()
