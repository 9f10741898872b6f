"""Spec J5: each warning with its line, and a sentence that says what to write instead."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.robots.access import BODY_LIMIT
from app.robots.advice import LINES_PER_CODE, advise
from app.robots.document import Document
from app.robots.syntax import LINE_LIMIT


def warned(body: bytes, content_type: str | None = None) -> list[tuple[str, int]]:
    return [(advice.code, advice.line) for advice in advise(Document(body), content_type)]


CLEAN = b"User-agent: *\nAllow: /a\nDisallow: /\nCrawl-delay: 5\nSitemap: http://h/s.xml\n"


def test_a_good_file_gives_no_warning() -> None:
    assert warned(CLEAN, "text/plain; charset=utf-8") == []
    assert warned(b"") == []


@pytest.mark.parametrize(
    ("body", "code", "line", "says"),
    [
        (b"\xef\xbb\xbfUser-agent: *", "bom", 1, "without one"),
        (b"User-agent: *\nDisallow /x", "no-colon", 2, "write 'Disallow: /x'"),
        (b"User-agent: *\nDissalow: /x", "typo-key", 2, "'Disallow: /x'"),
        (b"User-agents: *", "typo-key", 1, "'User-agent: *'"),
        (b"User-agent: *\nDissalow: /\xc3\xa9\xff", "typo-key", 2, "'Disallow: /é\ufffd'"),
        (b"User-agent: *\nDisallow /\xff", "no-colon", 2, "'Disallow: /\ufffd'"),
        (b"User-agent: *\nFoo: bar", "unknown-key", 2, "'Foo'"),
        (b"Disallow: /x\nUser-agent: *", "rule-before-agent", 1, "put 'User-agent: *' above it"),
        (b"User-agent: *\nDisallow: x", "rule-no-slash", 2, "write '/x'"),
        (b"User-agent: *\nDisallow: /" + b"a" * LINE_LIMIT, "line-truncated", 2, str(LINE_LIMIT)),
        (b"User-agent: *\n" + b"#\n" * BODY_LIMIT, "file-truncated", BODY_LIMIT // 2 - 6, str(BODY_LIMIT)),
        (b"User-agent: *bot", "empty-agent-token", 1, "names nobody"),
        (b"User-agent:", "empty-agent-token", 1, "names nobody"),
        (b"User-agent: 360Spider", "empty-agent-token", 1, "Google"),
        (b"User-agent: *\nRequest-rate: 5", "rate-malformed", 2, "'5'"),
        (b"User-agent: *\nCrawl-delay: 5s", "rate-malformed", 2, "'5s'"),
        (b"User-agent: *\nRequest-rate: 1/5s 18-19", "rate-window", 2, "HHMM-HHMM"),
        (b"User-agent: *\nVisit-time: always", "rate-window", 2, "HHMM-HHMM"),
        (b"User-agent: *\nRequest-rate: 1/60s", "rate-clamped", 2, "10 s"),
        (b"User-agent: a\nCrawl-delay: 5\nUser-agent: b\nDisallow: /", "rate-between-agents", 2, "of its own"),
        (b"User-agent: *\nDisallow: /x\nRobot-version: 2.0", "version-misplaced", 3, "right below"),
        (b"Robot-version: 2.0\nUser-agent: *", "version-misplaced", 1, "right below"),
        (b"User-agent: *\nRobot-version: 2.0\nDisallow: /", "v2-root-only", 3, "write '/*'"),
        (b"User-agent: *\nRobot-version: 2.0", "deprecated", 2, "version 1.0"),
        (b"User-agent: *\nNoindex: /x", "deprecated", 2, "X-Robots-Tag"),
        (b"Host: example.com", "deprecated", 1, "redirect"),
        (b"<!doctype html><p>hello", "html-body", 1, "404"),
        (b"User-agent: *\nDisallow: /\xff", "non-utf8", 1, "UTF-8"),
    ],
)
def test_j5_a_fault_is_told_with_its_line_and_its_mend(body: bytes, code: str, line: int, says: str) -> None:
    [advice] = [advice for advice in advise(Document(body)) if advice.code == code]
    assert advice.line == line
    assert says in advice.message


def test_j5_the_type_is_told_where_the_file_was_fetched() -> None:
    assert warned(CLEAN, "text/html") == [("not-text-plain", 1)]
    assert warned(CLEAN) == []


def test_a_version_in_its_place_is_deprecated_and_no_more() -> None:
    assert warned(b"User-agent: a\nUser-agent: b\nRobot-version: 2.0\nDisallow: /x") == [("deprecated", 3)]


def test_a_fault_that_repeats_is_told_so_often_and_then_counted() -> None:
    told = [advice for advice in advise(Document(b"Foo: bar\n" * 5000)) if advice.code == "unknown-key"]
    assert len(told) == LINES_PER_CODE + 1
    assert told[-1].line == LINES_PER_CODE + 1
    assert "4900 more" in told[-1].message


LINES = st.lists(
    st.sampled_from([b"Disalow: /", b"Allow /", b"User-agent: ", b"Host ", b"X\xff: ", b"\xc3\xa9", b"\n"])
)


@given(st.binary(max_size=300) | LINES.map(b"".join), st.none() | st.text(max_size=20))
def test_any_bytes_can_be_advised_on(body: bytes, content_type: str | None) -> None:
    lines = [advice.line for advice in advise(Document(body), content_type)]
    assert lines == sorted(lines)
    assert all(line >= 1 for line in lines)
