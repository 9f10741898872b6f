"""Spec J5: each warning with its line, and a sentence that says what to write instead."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.robots.access import BODY_LIMIT
from app.robots.lines import LINE_LIMIT, MEMBER_KEYS, Key
from app.robots.lint import _CHECKS, WARNINGS_PER_CODE, lint
from app.robots.robots_txt import RobotsTxt
from tests.robots.bodies import ANY
from tests.robots.naive import NAMED


def warned(body: bytes, content_type: str | None = None) -> list[tuple[str, int]]:
    return [(advice.code, advice.line) for advice in lint(RobotsTxt(body), content_type)]


CLEAN = (
    b"User-agent: *\nAllow: /a\nDisallow: /\nCrawl-delay: 5\nContent-Signal: search=yes, ai-train=no, use=full\n"
    b"Content-Usage: /x train-ai=n, search=y\nDisallowAITraining: /\nAllowAITraining: $\n"
    b"\n\n# a comment\nSitemap: http://h/s.xml\nLicense: https://h/l.xml\nClean-param: a /b\nLLM-policy: /x\n"
)

FAULTS = [
    (b"\xef\xbb\xbfUser-agent: *", "bom", 1, "without one"),
    (b"User-agent: *\nDisallow /x", "no-colon", 2, "write 'Disallow: /x'"),
    (b"User-agent: *\nDissalow: /x", "typo-key", 2, "'Disallow: /x'"),
    (b"User-agents: *", "typo-key", 1, "'User-agent: *'"),
    (b"User-agent: *\nDissalow: /\xc3\xa9\xff", "typo-key", 2, "'Disallow: /é\ufffd'"),
    (b"User-agent: *\nDisallow /\xff", "no-colon", 2, "'Disallow: /\ufffd'"),
    (b"User-agent: *\nContent-Signals: search=no", "typo-key", 2, "'Content-signal: search=no'"),
    (b"User-agent: *\nDisallow-all: /", "key-read-by-prefix", 2, "Google reads 'Disallow-all: /' as Disallow"),
    (b"User-agent: *\nAllowAITraining: /", "key-read-by-prefix", 2, "as Allow"),
    (b"User-agent-x: *", "key-read-by-prefix", 1, "as User-agent"),
    (b"User-agent: *\nFoo: bar", "unknown-key", 2, "No robot that we know reads 'Foo'"),
    (b"User-agent: *\nsite map : /x", "unknown-key", 2, "'site map'"),
    (b"User-agent: *\nDisallow-all: /", "unknown-key", 2, "No robot that we know but Google's reads 'Disallow-all'"),
    (b"Disallow: /x\nUser-agent: *", "rule-before-agent", 1, "put 'User-agent: *' above it"),
    (b"Crawl-delay: 5\nUser-agent: *", "member-before-agent", 1, "move it below one"),
    (b"Content-Usage: train-ai=n\n\nUser-agent: *", "member-before-agent", 1, "binds no robot"),
    (b"User-agent: *\nDisallow: x", "rule-no-slash", 2, "write '/x'"),
    (b"User-agent: *\nDisallowAITraining: x", "rule-no-slash", 2, "write '/x'"),
    (b"User-agent: *\nDisallow: $", "rule-no-slash", 2, "never matches"),
    (b"User-agent: *\nDisallow: /" + b"a" * LINE_LIMIT, "line-truncated", 2, str(LINE_LIMIT)),
    (b"#\r\r\n" + b"a" * (LINE_LIMIT + 1) + b"\rAllow: /", "line-truncated", 3, str(LINE_LIMIT)),
    (b"User-agent: *\n" + b"#\n" * BODY_LIMIT, "file-truncated", BODY_LIMIT // 2 - 6, str(BODY_LIMIT)),
    (b"User-agent: *bot", "empty-agent-token", 1, "names no robot"),
    (b"User-agent:", "empty-agent-token", 1, "names no robot"),
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
    (b"Sitemap: /s.xml", "sitemap-not-absolute", 1, "with its scheme"),
    (b"License: l.xml", "license-not-absolute", 1, "with its scheme"),
    (b"User-agent: *\nContent-Signal: search=maybe", "usage-malformed", 2, "search, ai-input and ai-train"),
    (b"User-agent: *\nContent-Signal: ai-traain=no", "usage-malformed", 2, "yes or no"),
    (b"User-agent: *\nContent-Usage: /x train-ai=no", "usage-malformed", 2, "y or n"),
    (b"User-agent: *\nContent-Usage: train-ai=n,,", "usage-malformed", 2, "train-ai and search"),
]


def test_a_good_file_gives_no_warning() -> None:
    assert [it for it in warned(CLEAN, "text/plain; charset=utf-8") if it[0] != "key-read-by-prefix"] == []
    assert warned(b"") == []


@pytest.mark.parametrize(("body", "code", "line", "says"), FAULTS)
def test_j5_a_fault_is_reported_with_its_line_and_its_fix(body: bytes, code: str, line: int, says: str) -> None:
    [advice] = [advice for advice in lint(RobotsTxt(body)) if advice.code == code]
    assert advice.line == line
    assert says in advice.message


def test_j5_every_warning_has_a_test() -> None:
    assert {code for _, code, _, _ in FAULTS} | {"not-text-plain"} == set(_CHECKS)


def test_j5_the_content_type_of_a_fetched_file_is_reported() -> None:
    assert ("not-text-plain", 1) in warned(CLEAN, "text/html")
    assert ("not-text-plain", 1) not in warned(CLEAN)


@pytest.mark.parametrize("name", NAMED)
def test_i7_a_known_key_is_never_reported_as_unknown(name: str) -> None:
    assert "unknown-key" not in [code for code, _ in warned(f"User-agent: *\n{name}: x".encode())]


@pytest.mark.parametrize("key", sorted(MEMBER_KEYS - {Key.COMMENT, Key.NOINDEX}))
def test_i8_every_member_above_the_first_agent_is_reported(key: Key) -> None:
    assert ("member-before-agent", 1) in warned(f"{key}: x\nUser-agent: *".encode())


@pytest.mark.parametrize("key", ["disallowaitraining", "allowaitraining"])
def test_i5_a_training_line_between_agents_is_not_a_fault(key: str) -> None:
    assert "rate-between-agents" not in dict(warned(f"User-agent: a\n{key}: /\nUser-agent: b\nAllow: /".encode()))


def test_f12_a_version_in_its_place_is_deprecated_and_no_more() -> None:
    assert warned(b"User-agent: a\nUser-agent: b\nRobot-version: 2.0\nDisallow: /x") == [("deprecated", 3)]


def test_a_repeated_fault_is_reported_a_bounded_number_of_times() -> None:
    told = [advice for advice in lint(RobotsTxt(b"Foo: bar\n" * 5000)) if advice.code == "unknown-key"]
    assert len(told) == WARNINGS_PER_CODE + 1
    assert told[-1].line == WARNINGS_PER_CODE + 1
    assert "more lines" in told[-1].message


def test_i7_no_warning_asks_to_remove_a_line() -> None:
    for body, _, _, _ in FAULTS:
        assert all("remove" not in advice.message.lower() for advice in lint(RobotsTxt(body)))


@given(ANY, st.none() | st.text(max_size=20))
def test_any_bytes_can_be_checked(body: bytes, content_type: str | None) -> None:
    robots = RobotsTxt(body)
    found = lint(robots, content_type)
    assert [advice.line for advice in found] == sorted(advice.line for advice in found)
    # An empty file has a first line, too.
    assert all(1 <= advice.line <= max(1, robots.scan.lines.count) for advice in found)
    assert all(len(advice.message) < 500 for advice in found)
