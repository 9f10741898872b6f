"""Spec B and K1 to K4: from bytes to directives and groups."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.robots.access import BODY_LIMIT
from app.robots.compiled.lines import Group, scan
from app.robots.document import Document, Grammar
from app.robots.syntax import LINE_LIMIT, Key, Oddity, readable


def directives(body: bytes) -> list[tuple[int, Key, str]]:
    return [it for it in scan(body).directives if it[1] is not Key.BLANK]


def groups(body: bytes, grammar: Grammar) -> tuple[Group, ...]:
    return Document(body).groups(grammar).groups


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
def test_b1_every_line_ending_counts_one_line(ending: bytes) -> None:
    body = ending.join([b"User-agent: a", b"", b"Disallow: /x"])
    assert directives(body) == [(1, Key.USER_AGENT, "a"), (3, Key.DISALLOW, "/x")]


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"])
def test_b2_a_mark_at_the_start_also_a_partial_one_is_skipped(mark: bytes) -> None:
    assert directives(mark + b"User-agent: a") == [(1, Key.USER_AGENT, "a")]
    assert scan(mark + b"User-agent: a").bom


def test_b2_a_mark_anywhere_else_spoils_its_key() -> None:
    assert directives(b"User-agent: a\n\xef\xbb\xbfDisallow: /") == [(1, Key.USER_AGENT, "a")]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
def test_a26_wide_encodings_are_read_where_their_mark_stands(encoding: str) -> None:
    mark = "" if encoding in {"utf-16", "utf-32"} else "\ufeff"
    body = (mark + "User-agent: a\nDisallow: /é").encode(encoding)
    assert [readable(value) for _, _, value in directives(body)] == ["a", "/é"]


def test_b3_a_comment_starts_anywhere() -> None:
    assert directives(b"# top\nDisallow: /foo#bar\n  # more") == [(2, Key.DISALLOW, "/foo")]


def test_b5_two_words_without_a_colon_are_a_directive_and_three_are_none() -> None:
    found = scan(b"Disallow /x\nDisallow /x y\nDisallow\n\tDisallow\t /z ")
    assert found.directives == ((1, Key.DISALLOW, "/x"), (4, Key.DISALLOW, "/z"))
    assert found.oddities == {1: Oddity.NO_COLON, 4: Oddity.NO_COLON}


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("User-agents", Key.USER_AGENT),
        ("useragent", Key.USER_AGENT),
        ("user agent", Key.USER_AGENT),
        ("Allowed", Key.ALLOW),
        ("dissallow", Key.DISALLOW),
        ("dissalow", Key.DISALLOW),
        ("disalow", Key.DISALLOW),
        ("diasllow", Key.DISALLOW),
        ("disallaw", Key.DISALLOW),
        ("Disallow-all", Key.DISALLOW),
        ("site-map", Key.SITEMAP),
        ("Sitemaps", Key.SITEMAP),
    ],
)
def test_b6_the_misspellings_that_google_takes_are_taken_and_noted(written: str, key: Key) -> None:
    found = scan(f"{written}: v".encode())
    assert found.directives == ((1, key, "v"),)
    assert found.oddities == {1: Oddity.TYPO_KEY}


@pytest.mark.parametrize("written", ["Alow", "site map", "Foo", ""])
def test_b6_other_keys_are_unknown(written: str) -> None:
    assert scan(f"{written}: v".encode()).directives == ()


@pytest.mark.parametrize("body", [b"Dissallow /x", b"Dissallow: /x", b"Disallow /x"])
def test_b5_b6_the_draft_takes_no_oddity(body: bytes) -> None:
    [group] = groups(b"User-agent: *\n" + body, Grammar(tolerant=False))
    assert not group.rules


def test_b7_a_line_is_cut_at_its_limit_and_what_is_left_still_counts() -> None:
    found = scan(b"Disallow: /" + b"a" * 20_000 + b"\nAllow: /b")
    assert found.directives[0] == (1, Key.DISALLOW, "/" + "a" * (LINE_LIMIT - len("Disallow: /")))
    assert found.directives[1] == (2, Key.ALLOW, "/b")
    assert list(found.long_lines) == [1]


def test_b13_nul_ends_a_line_and_other_octets_survive() -> None:
    assert directives(b"Disallow: /x\0y\nAllow: /\xff") == [(1, Key.DISALLOW, "/x"), (2, Key.ALLOW, "/\xff")]
    assert readable("/\xc3\xa9\xff") == "/é\ufffd"


def test_a24_the_file_is_read_to_its_limit_and_the_cut_line_is_dropped() -> None:
    line = b"Disallow: /0123456\n"
    body = line * (BODY_LIMIT // len(line) + 10)
    found = scan(body)
    assert found.truncated
    assert len(found.directives) == BODY_LIMIT // len(line)
    assert not scan(line).truncated


def test_a24_a_body_that_was_cut_before_loses_its_last_line() -> None:
    assert scan(b"User-agent: a\nDisallow: /abc", truncated=True).directives == ((1, Key.USER_AGENT, "a"),)


def test_g11_a_member_line_is_kept_with_the_agents_above_it() -> None:
    [group] = groups(b"User-agent: a\nCrawl-delay: 5\nUser-agent: b\nDisallow: /", Grammar())
    assert list(group.agents) == ["a", "b"]
    assert list(group.members) == [(2, Key.CRAWL_DELAY, "5", 1)]


@pytest.mark.parametrize(
    ("body", "version_2"),
    [
        (b"User-agent: a\nRobot-version: 2.0\nDisallow: /", True),
        (b"User-agent: a\n# c\n\nRobot-version: 2\nDisallow: /", True),
        (b"User-agent: a\nRobot-version: 2.0.1", True),
        (b"User-agent: a\nRobot-version: 2.0.123456789", True),
        (b"User-agent: a\nRobot-version: 2.0.1234567890", False),
        (b"User-agent: a\nRobot-version: 2.0.", False),
        (b"User-agent: a\nRobot-version: 1.0\nRobot-version: 2.0", False),
        (b"User-agent: a\nRobot-version: 2.1", False),
        (b"User-agent: a\nDisallow: /\nRobot-version: 2.0", False),
        (b"User-agent: a\nCrawl-delay: 1\nRobot-version: 2.0", False),
    ],
)
def test_f12_a_version_counts_right_below_the_agents(body: bytes, version_2: bool) -> None:
    [group] = groups(body, Grammar(members_end_run=True))
    assert group.version_2 is version_2


def test_b14_sitemaps_are_absolute_in_file_order_and_each_once() -> None:
    body = (
        b"Sitemap: https://b.example/2.xml\nUser-agent: *\nSITEMAP: http://a.example/\xc3\xa9.xml\n"
        b"Sitemap: /relative.xml\nSitemap: https://b.example/2.xml\nSitemap:"
    )
    assert Document(body).sitemaps == ("https://b.example/2.xml", "http://a.example/é.xml")


def test_a_line_is_shown_without_comment_and_outer_blanks() -> None:
    document = Document(b"\n \tDisallow : /\xc3\xa9 \t# why")
    assert document.line_texts([2]) == {2: "Disallow : /é"}
    assert document.line_texts([1, 3]) == {1: ""}


@given(st.binary(max_size=300))
def test_any_bytes_are_a_robots_txt(body: bytes) -> None:
    document = Document(body)
    for grammar in (Grammar(), Grammar(members_end_run=True), Grammar(tolerant=False, blank_ends_record=True)):
        document.groups(grammar)
    assert isinstance(document.sitemaps, tuple)


LINES = st.lists(st.sampled_from(["User-agent: a", "Disallow: /x", "", "# c", "Allow /y", "Sitemap: http://h/s"]))


@given(LINES)
def test_b1_crlf_reads_as_lf(lines: list[str]) -> None:
    assert scan("\r\n".join(lines).encode()).directives == scan("\n".join(lines).encode()).directives
