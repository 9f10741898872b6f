"""Spec D, E3, F11, X5: the paths that a rule disallows in each dialect; worked tables: test_spec_tables.py."""

import pytest

from tests.robots.judging import ask, closes


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("/a\\", ["/a\\"], ["/a"]),
        ("/[z-a]x", [], ["/zx", "/ax", "/-x"]),
        ("/[a-]x", ["/ax", "/-x"], ["/bx"]),
        ("/*?[0-9]*z", ["/ab1z", "/-77-z"], ["/1z", "/ab1"]),
        (
            "/caf?",
            ["/caf\u00e9", "/caf%C3%A9", "/caf%c3%a9", "/cafe", "/caf%FF", "/caf%2F", "/caf "],
            ["/caf%C3%A9e", "/caf"],
        ),
        ("/caf??", ["/caf%C3%28"], ["/caf\u00e9"]),
        ("/[\u00e9]", ["/\u00e9", "/%C3%A9"], ["/C", "/3", "/A", "/%C3", "/%A9", "/%"]),
        ("/[!\u00e9]", ["/e", "/C", "/%C3", "/%2F", "/\U0001f577"], ["/\u00e9", "/%c3%a9", "/%C3%28"]),
        ("/[%C3%A9]", ["/\u00e9"], ["/C"]),
        ("/[\u0430-\u044f]?", ["/\u0436\u00e9", "/%D0%B6x"], ["/ax", "/\u0416x"]),
        ("/[a-\U0001f577]", ["/a", "/\u00e9", "/\U0001f577"], ["/A", "/\U0001f578", "/%FF", "/%2F"]),
        ("/\\\u00e9", ["/\u00e9"], ["/\\\u00e9"]),
        ("/%FF?", ["/%FFx", "/%ff%FE"], ["/%FF", "/\u00ff"]),
        ("/[%E9-%FF]", ["/%F0", "/%E9"], ["/\u00e9", "/%E8"]),
        ("/%C3*%A9", ["/%C3/%A9", "/%C3x%A9"], ["/\u00e9", "/%C3%A9%A9"]),
        ("/a%2F?", ["/a%2fb"], ["/a/b", "/a%2F"]),
        ("/%ED%A0%80", ["/%ed%a0%80"], []),
        ("/?", ["/%C0", "/\u20ac", "/\U0001f577"], ["/%C0%80", "/%E0%80%80", "/%ED%A0%80", "/%F4%90%80%80", "/%E2%82"]),
        ("/????", ["/%F5%80%80%80", "/%F4%90%80%80", "/%E2%82%AC\u20acab", "/%E2%82ab"], ["/\U0001f577"]),
        ("/*", ["/", "/x?y"], []),
        ("*", ["/", "/x?y"], []),
        ("/a$", ["/a$"], ["/a"]),
        ("/%61", ["/a", "/%61"], ["/b"]),
        ("/", ["/"], ["/x"]),
    ],
)
def test_f11_more_globs_than_in_the_table(pattern: str, matching: list[str], others: list[str]) -> None:
    for dialect in ("v2", "seznam"):
        body = f"User-agent: *\nRobot-version: 2.0\nDisallow: {pattern}"
        assert [path for path in matching + others if ask(body, path, dialect).rule] == matching


@pytest.mark.parametrize("dialect", ["rfc9309", "google", "draft1996"])
def test_f12_other_dialects_read_version_2_as_version_1(dialect: str) -> None:
    assert ask("User-agent: *\nRobot-version: 2.0\nDisallow: /helpme", "/helpme2", dialect).rule is not None


def test_e3_a_decoded_percent_makes_no_escape() -> None:
    assert not closes("draft1996", "/a%252Fb", "/a%2Fb")
    assert closes("draft1996", "/a%252Fb", "/a%252Fbc")
    assert closes("draft1996", "/a%", "/a%25")


@pytest.mark.parametrize(
    ("rule", "path", "expected"),
    [
        ("/p?u=a:b", "/p?u=a:b", True),
        ("/p?u=a:b", "/p?u=a%3ab", True),
        ("/p?u=a%3Ab", "/p?u=a:b", True),
        ("/p?u=a/", "/p?u=a%2Fc", True),
        ("/p/a%2Fb", "/p/a/b", False),
        ("/*:b", "/p?u=a%3Ab", False),
        ("/*%3Ab", "/p?u=a:b", True),
        ("/p?u=[x]$", "/p?u=%5Bx%5D", True),
        ("/p?u=?x", "/p?u=%3Fx", True),
        ("/p*?*u=a:b", "/p?u=a%3Ab", True),
    ],
)
def test_x5_delimiters_of_a_query_match_in_either_form(rule: str, path: str, expected: bool) -> None:
    assert closes("rfc9309", rule, path) is expected


@pytest.mark.parametrize("allowed", ["/a/index.htm", "/a/index.html", "/a/index.htmx?b", "/*/index.htm"])
def test_d10_an_allow_of_an_index_page_opens_its_directory(allowed: str) -> None:
    body = f"User-agent: *\nDisallow: /a/\nDisallow: /b/\nAllow: {allowed}"
    found = ask(body, "/a/", "google").rule
    assert found is not None
    assert (found.directive.line, found.pattern) == (4, allowed.rpartition("/")[0] + "/$")
    assert ask(body, "/a/", "rfc9309").rule != found


def test_d10_a_disallow_of_an_index_page_closes_it_alone() -> None:
    assert ask("User-agent: *\nDisallow: /a/index.html", "/a/", "google").rule is None
