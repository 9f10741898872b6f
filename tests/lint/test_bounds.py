"""Any bytes can be checked: warnings and checked lines are bounded, and warnings name lines that exist."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robots_core.lint.advice import INSTEAD_LIMIT
from robots_core.lint.checked_file import LINES_CHECKED, CheckedFile
from robots_core.lint.linter import WARNINGS_PER_CODE, lint
from robots_core.robots.lines import LINE_LIMIT
from robots_core.robots.robots_txt import RobotsTxt
from tests.robots.bodies import ANY

MANY = {
    "unknown-key": b"Foo: bar\n",
    "duplicate-rule": b"Disallow: /a\n",
    "rule-no-slash": b"Disallow: a\n",
    "agent-in-two-groups": b"User-agent: a\nDisallow: /a\n",
    "crawl-delay-large": b"User-agent: *\nDisallow: /a\nCrawl-delay: 99\n",
}


@pytest.mark.parametrize("code", MANY)
def test_repeated_faults_are_reported_up_to_a_limit(code: str) -> None:
    found = [advice for advice in lint(RobotsTxt(b"User-agent: *\n" + MANY[code] * 3000)) if advice.code == code]
    assert len(found) == WARNINGS_PER_CODE + 1
    assert "more lines" in found[-1].message
    assert found[-1].instead is None


@pytest.mark.parametrize(
    "line", [b"Disallow: /%d\n", b"User-agent: a%d\n", b"User-agent: b%d\nAllow: /\n", b"Allow:%d\n"]
)
def test_a_limited_number_of_lines_is_checked(line: bytes) -> None:
    body = b"User-agent: *\n" + b"".join(line % number for number in range(LINES_CHECKED + 2000))
    file = CheckedFile(RobotsTxt(body))
    assert max(len(file.rules), len(file.agents)) == LINES_CHECKED
    assert len(file.paths) <= LINES_CHECKED


def test_a_partly_checked_site_is_not_reported_as_closed() -> None:
    body = b"User-agent: *\nDisallow: /\n" + b"Disallow: /x\n" * LINES_CHECKED + b"Allow: /\n"
    assert "whole-site-closed" not in {advice.code for advice in lint(RobotsTxt(body))}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"Disallow: " + b"a" * INSTEAD_LIMIT, "rule-no-slash"),
        (b"Disallow: " + b"/a " * (INSTEAD_LIMIT // 10), "several-paths-in-one-line"),
        (b"Disallow " + b"/a " * (INSTEAD_LIMIT // 10), "unknown-key"),
        (b"Sitemap: " + b"http://h/ " * (INSTEAD_LIMIT // 10), "sitemap-not-absolute"),
    ],
)
def test_a_long_replacement_is_left_out_and_never_cut(line: bytes, code: str) -> None:
    [advice] = lint(RobotsTxt(b"User-agent: *\n" + line))
    assert (advice.code, advice.instead) == (code, None)


def test_replacements_have_no_invalid_utf8() -> None:
    for line in (b"Dissalow: /\xff", b"Disallow /\xff", b"Disallow: \xff", b"Alow: /\xff", b"Disallow: /a /\xff"):
        found = lint(RobotsTxt(b"User-agent: *\n" + line))
        assert [advice.instead for advice in found] == [None, None]


@given(ANY, st.none() | st.text(max_size=20), st.sampled_from([None, "https://h", "http://h:8080"]))
def test_any_bytes_can_be_checked(body: bytes, content_type: str | None, site: str | None) -> None:
    robots = RobotsTxt(body)
    found = lint(robots, content_type, site)
    assert [advice.line for advice in found] == sorted(advice.line for advice in found)
    # An empty file has a first line, too.
    assert all(1 <= advice.line <= max(1, robots.scan.lines.count) for advice in found)
    assert all(len(advice.message) < 500 for advice in found)
    assert all(advice.instead is None or advice.instead.isprintable() or "\n" in advice.instead for advice in found)
    # One warning per line and code, except for the last one, which says that there are more.
    assert all(count == 1 for count in Counter((advice.code, advice.line) for advice in found).values())


@pytest.mark.parametrize("before", [0, 1, LINE_LIMIT // 2 - 1, LINE_LIMIT - 5, 3 * LINE_LIMIT])
@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_b7_a_long_line_is_reported_at_any_offset(before: int, end: bytes) -> None:
    head = b"#" * min(before, 100) + end + b"#\n" * (before // 2)
    for length, long in ((LINE_LIMIT, False), (LINE_LIMIT + 1, True)):
        found = lint(RobotsTxt(head + b"#" * length + end + b"#"))
        assert ("line-truncated" in {advice.code for advice in found}) is long
