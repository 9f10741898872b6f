"""Spec B14, I6, I7, G6 to G9, Q9: statements outside groups, which affect no decision."""

import pytest
from hypothesis import given

from robots_core.robots.lines import EXTENSION_KEYS, Key
from robots_core.robots.robots_txt import RobotsTxt, absolute_url
from tests.robots.bodies import ANY
from tests.robots.judging import ask


def test_b14_sitemaps_are_absolute_unique_and_in_order() -> None:
    body = (
        b"Sitemap: https://b.example/2.xml\nUser-agent: *\nSITEMAP: http://a.example/\xc3\xa9.xml\n"
        b"Sitemap: /relative.xml\nSitemap: https://b.example/2.xml\nSitemap:\nsite-map: http://c.example/\n"
        b"Sitemap: http://d.example/a \tb\nsitemap-x: http://e.example/\nSitemap: http://f.ex ample/"
    )
    assert RobotsTxt(body).sitemaps == (
        *("https://b.example/2.xml", "http://a.example/é.xml", "http://c.example/"),
        "http://d.example/a%20%09b",
    )


def test_i6_licences_are_absolute_unique_and_in_order() -> None:
    body = (
        b"License: https://b.example/2.xml\nUser-agent: *\nDisallow: /\nLICENSE: http://a.example/l\nLicense: /l\n"
        b"License: https://b.example/2.xml\nLicense: //c.example/l\nLicense: l\nLicense: https://a.example/l m%20n"
    )
    assert RobotsTxt(body).licenses == (
        "https://b.example/2.xml",
        "http://a.example/l",
        "https://a.example/l%20m%20n",
    )


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("http://h?a b", "http://h?a%20b"),
        ("http://h/a\u00a0b", "http://h/a%C2%A0b"),
        ("http://h/a%20b", "http://h/a%20b"),
        ("http:///a", "http:///a"),
        ("http://", None),
        ("http:// h/a", None),
        ("http://h i/a", None),
        ("a b http://h/", None),
    ],
)
def test_b14_only_blanks_behind_the_host_are_encoded(written: str, read: str | None) -> None:
    assert absolute_url(written) == read


@pytest.mark.parametrize("key", sorted(EXTENSION_KEYS))
def test_i7_known_statements_are_reported_as_written(key: Key) -> None:
    robots = RobotsTxt(f"{key}: a b\nUser-agent: *\nDisallow: /x\n{key.upper()}: é # c".encode())
    assert [(it.line, it.key, it.text) for it in robots.extensions] == [(1, key, "a b"), (4, key, "é")]


def test_i7_rules_rates_and_unknown_keys_are_not_extensions() -> None:
    body = b"User-agent: *\nDisallow: /\nCrawl-delay: 1\nFoo: bar\nSitemap: http://h/\nLicense: http://h/\nNoindexed: /"
    assert RobotsTxt(body).extensions == ()


@pytest.mark.parametrize("key", sorted(set(Key) - {Key.BLANK, Key.UNKNOWN, Key.USER_AGENT, Key.ALLOW, Key.DISALLOW}))
def test_g1_only_rules_change_a_verdict(key: Key) -> None:
    for dialect in ("rfc9309", "draft1996"):
        assert ask(f"User-agent: *\n{key}: /\nAllow: /a", "/b", dialect).rule is None
        assert ask(f"User-agent: *\nDisallow: /\n{key}: /", "/b", dialect).rule is not None


def texts_of(robots: RobotsTxt) -> dict[int, str]:
    texts = {number: robots.line_text(number) for number in range(-1, robots.scan.lines.count + 3)}
    return {number: text for number, text in texts.items() if text is not None}


def test_line_text_is_as_written() -> None:
    robots = RobotsTxt(b"\xef\xbb\xbfuser-AGENT:a#b\r\nwhat\r\n Foo : \xc3\xa9 \r\n\r\n#c\nDisallow /x")
    assert texts_of(robots) == {1: "user-AGENT:a", 3: "Foo : é", 4: "", 6: "Disallow /x"}
    assert RobotsTxt(b"").line_text(1) is None


@pytest.mark.parametrize(
    ("body", "html"),
    [
        (b"<!doctype html><p>hello", True),
        (b"\xef\xbb\xbf\r\n \t<html>", True),
        (b"<pre>\nUser-agent: *\nDisallow: /", False),
        (b"<p>\nlocation: there\nuser-agents-of-change: us", True),
        (b"User-agent: *", False),
        (b"", False),
        (b"hello", False),
    ],
)
def test_q9_markup_without_a_directive_is_a_page(body: bytes, html: bool) -> None:
    assert RobotsTxt(body).is_html is html


def test_a26_is_utf8_is_true_for_utf_8_only() -> None:
    assert RobotsTxt("Disallow: /é".encode()).is_utf8
    assert not RobotsTxt(b"Disallow: /\xe9").is_utf8


@given(ANY)
def test_any_bytes_are_a_valid_robots_txt(body: bytes) -> None:
    robots = RobotsTxt(body)
    texts = texts_of(robots)
    assert len(texts) == len(robots.scan.lines)
    assert all(url in " ".join(texts.values()) for url in (*robots.sitemaps, *robots.licenses))
    assert all(it.key in EXTENSION_KEYS for it in robots.extensions)
    assert robots.size >= len(body)
