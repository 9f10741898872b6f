"""Spec D, E3, F11 and the worked tables L1 and L2: one spelling for both sides, and matching that never goes back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.robots.access import Successful
from app.robots.compiled.globs import GlobIndex
from app.robots.compiled.patterns import PatternIndex
from app.robots.dialect import Decision
from app.robots.paths import (
    draft_pattern,
    draft_subject,
    glob_pattern,
    glob_subject,
    google_pattern,
    google_subject,
    rfc_pattern,
    rfc_subject,
)
from tests.robots.test_verdicts import ask


def closed(dialect: str, rule: str, path: str) -> bool:
    body = f"User-agent: *\nDisallow: {rule}\n".encode()
    return ask(Successful(200, body), path, dialect).decision is Decision.DISALLOW


@pytest.mark.parametrize(
    ("rule", "path", "rfc", "google", "draft"),
    [
        ("/%7Ejoe", "/~joe", True, False, True),
        ("/~joe", "/%7ejoe", True, False, True),
        ("/a%2fb", "/a%2Fb", True, True, True),
        ("/a%2fb", "/a/b", False, False, False),
        ("/a%3cd", "/a%3Cd", True, True, True),
        ("/foo/%62%61%7A", "/foo/baz", True, False, True),
        ("/é", "/%C3%A9", True, True, True),
        ("/%C3%A9", "/é", True, True, True),
        ("/f-%2A", "/f-*", True, False, True),
        ("/f-%24", "/f-$", True, False, True),
        ("/a$b", "/a$b", True, True, True),
        ("/x?u=http://h", "/x?u=http%3A%2F%2Fh", True, False, False),
        ("/x y", "/x%20y", False, False, True),
    ],
)
def test_l1_rule_against_url(rule: str, path: str, rfc: bool, google: bool, draft: bool) -> None:
    assert closed("rfc9309", rule, path) is rfc
    assert closed("seznam", rule, path) is rfc
    assert closed("google", rule, path) is google
    assert closed("draft1996", rule, path) is draft


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("/helpme", ["/helpme"], ["/helpme/", "/helpme2", "/helpme?x=1"]),
        ("/helpme*", ["/helpme", "/helpme/sub/x"], ["/helpm"]),
        ("/file?", ["/files", "/file?"], ["/file", "/filesx"]),
        ("/file\\?", ["/file?"], ["/files"]),
        ("/a\\*b", ["/a*b"], ["/axb"]),
        ("/img[0-9].gif", ["/img5.gif"], ["/imgx.gif", "/img55.gif"]),
        ("/[!abc]/x", ["/d/x"], ["/b/x"]),
        ("/[^abc]/x", ["/d/x"], ["/b/x"]),
        ("/a[]x]b", ["/a]b", "/axb"], ["/ayb"]),
        ("/a[b", ["/a[b"], ["/ab"]),
        ("/a\\", ["/a\\"], ["/a"]),
        ("/[z-a]x", [], ["/zx", "/ax", "/-x"]),
        ("/[a-]x", ["/ax", "/-x"], ["/bx"]),
        ("/*?[0-9]*z", ["/ab1z", "/-77-z"], ["/1z", "/ab1"]),
        ("*.pdf", ["/x/y.pdf"], ["/x/y.pdf?a"]),
        ("/*", ["/", "/x?y"], []),
        ("*", ["/", "/x?y"], []),
        ("/a$", ["/a$"], ["/a"]),
        ("/", ["/"], ["/x"]),
    ],
)
def test_l2_version_2_globs(pattern: str, matching: list[str], others: list[str]) -> None:
    index = GlobIndex([glob_pattern(pattern)])
    assert [path for path in matching + others if index.every(glob_subject(path))] == matching


@pytest.mark.parametrize("text", ["/%zz", "/%", "/%4", "/a%"])
def test_d4f_a_malformed_escape_stays(text: str) -> None:
    for normalise in (rfc_subject, rfc_pattern, google_subject, google_pattern, draft_subject, draft_pattern):
        assert normalise(text) == text


def test_d3_only_a_final_dollar_is_an_anchor() -> None:
    assert rfc_pattern("/a$b$") == "/a%24b$"
    assert matches("/a*b$", "/aXb")
    assert not matches("/a*b$", "/aXbX")


def test_e3_a_decoded_percent_makes_no_escape() -> None:
    assert not closed("draft1996", "/a%252Fb", "/a%2Fb")


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
    ],
)
def test_x5_delimiters_of_a_query_match_in_either_form(rule: str, path: str, expected: bool) -> None:
    assert closed("rfc9309", rule, path) is expected


def matches(pattern: str, subject: str) -> bool:
    return PatternIndex([pattern]).first(subject) == 0


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("/*a*a*a*a*a*a*b", False),
        ("/*a*a*a*a*a*a*a", True),
        ("/" + "*a" * 8000 + "*b", False),
        ("/" + "*a" * 8000, True),
    ],
)
def test_b17_no_pattern_makes_it_go_back(pattern: str, expected: bool) -> None:
    # Trying every way in which the stars can be filled would not end.
    assert matches(pattern, "/" + "a" * 16_000) is expected


TEXT = st.text("/ab*$", max_size=8)


def reference(pattern: str, subject: str) -> bool:
    """The positions reachable after each octet of the pattern, as spec K11 says it."""
    positions = {0}
    for at, octet in enumerate(pattern):
        if octet == "$" and at == len(pattern) - 1:
            return len(subject) in positions
        if octet == "*":
            positions = set(range(min(positions), len(subject) + 1))
        else:
            positions = {place + 1 for place in positions if subject[place : place + 1] == octet}
        if not positions:
            return False
    return True


@given(TEXT, st.text("/ab$", max_size=8))
def test_k11_a_wildcard_matches_what_following_all_positions_does(pattern: str, subject: str) -> None:
    assert matches(pattern, subject) is reference(pattern, subject)
