"""The library: files and outcomes, what they decide, and what importing it costs."""

import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import robots_core
from robots_core.outcomes import outcome_of, read_outcome
from robots_core.purposes.policy import PURPOSES
from robots_core.robots.access import Successful
from robots_core.robots.dialects import DIALECTS
from tests.core.alike import assert_word_decides_alike
from tests.robots.cases import rows

ROOT = Path(__file__).parents[2]
CASES = rows("verdict-cases.jsonl")
WORDS = (
    *map(str, range(400, 600)),
    *("timeout", "dns", "tls", "connection", "proxy", "bad_response", "challenge", "server_error"),
    "too_many_requests",
    *("redirect_loop", "cookie_loop", "refused_redirect", "unreachable_redirect", "blocked_address"),
)
NOT_NEEDED = {
    *("asyncio", "hashlib", "http", "http_sf", "idna", "importlib.resources", "json", "logging", "socket", "ssl"),
    *("tomllib", "typing_extensions", "urllib.parse", "robots_core.lint", "robots_core.agents", "pyarrow"),
}
"""What takes longer to import than the core, and few calls need."""


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_case_of_the_specification_is_decided(dialect: str) -> None:
    for case in CASES:
        if case["dialect"] == dialect:
            file = robots_core.read(case["robots"].encode())
            decision = file.decide(case["url"], case["agent"], dialect=dialect)
            assert decision.allowed == case["allowed"], case["id"]
            rule = None if decision.line is None or file.robots is None else file.robots.line_text(decision.line)
            assert rule == case["rule"], case["id"]


@pytest.mark.parametrize("case", rows("rate-cases.jsonl"), ids=lambda case: f"{case['id']}-{case['clause']}")
def test_the_rate_of_each_case_of_the_specification(case: dict[str, Any]) -> None:
    file = robots_core.read(case["robots"].encode())
    at = datetime.fromisoformat(f"2026-11-21T{case['at_utc']}:00+00:00")
    rate = file.rate(case["agent"], dialect=case["dialect"], at=at)
    stated = (None, None, None) if rate is None else (rate.documents, rate.seconds, rate.interval)
    assert stated == (case["documents"], case["seconds"], case["interval_s"])
    assert file.decide("/", case["agent"], dialect=case["dialect"], at=at).rate == rate


@pytest.mark.parametrize("case", rows("purpose-cases.jsonl"), ids=lambda case: case["id"])
def test_a_refused_purpose_disallows(case: dict[str, Any]) -> None:
    file = robots_core.read(case["robots"].encode())
    for purpose in PURPOSES:
        decision = file.decide(case["url"], case["agent"], dialect=case["dialect"], purpose=purpose)
        assert decision.allowed == (case["expect"][purpose][0] != "no"), purpose


@pytest.mark.parametrize("word", WORDS)
def test_each_word_is_one_outcome(word: str) -> None:
    access = read_outcome(word)
    assert outcome_of(access) == word
    assert_word_decides_alike(access)


def test_the_words_for_failures_are_those_that_the_message_names() -> None:
    with pytest.raises(robots_core.BadOutcome) as refused:
        read_outcome("lost")
    assert set(str(refused.value).partition("or one of ")[2].rstrip(".").split(", ")) == set(WORDS[200:])


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ((304,), "a copy is still current"),
        ((300, 301, 302, 303, *range(305, 400)), "Give the outcome of what it leads to"),
        ((206,), "a part of the file"),
        ((200, 204, 226, 299), r"read\(\) the body"),
    ],
)
def test_a_status_that_says_nothing_of_a_file_is_refused_with_advice(words: Sequence[int], advice: str) -> None:
    for word in words:
        for written in word, str(word):
            with pytest.raises(robots_core.BadOutcome, match=f"^'{word}' is not the outcome of a fetch .*{advice}"):
                robots_core.outcome(written)


@pytest.mark.parametrize(
    "word", [0, 99, 200, 204, 600, -503, "", "503 ", "５０３", "html_page", "Timeout", "a" * 1000, True]
)
def test_what_is_no_outcome_is_refused(word: Any) -> None:
    with pytest.raises(robots_core.BadOutcome, match="is not the outcome of a fetch") as refused:
        robots_core.outcome(word)
    assert len(str(refused.value)) < 500


def test_outcome_of_a_file_is_its_status() -> None:
    assert outcome_of(Successful(203, b"")) == "203"


def test_a_decision_is_neither_true_nor_false() -> None:
    for decision in robots_core.read(b"").decide("/", "A"), robots_core.outcome(503).decide("/", "A"):
        with pytest.raises(TypeError, match="neither true nor false"):
            bool(decision)
    assert not decision.allowed
    assert decision.verdict == "defer"


def test_a_file_is_read_up_to_its_limit() -> None:
    body = b"User-agent: *\nDisallow: /a\n" + b"#" * 512_000 + b"\nDisallow: /b\n"
    file = robots_core.read(body)
    assert not file.decide("/a", "A").allowed
    assert file.decide("/b", "A").allowed
    assert "file-truncated" in [advice.code for advice in file.lint()]


def test_bad_arguments_name_themselves() -> None:
    wrong: Any = "User-agent: *"
    with pytest.raises(TypeError, match="the bytes of a file, not str"):
        robots_core.read(wrong)
    file = robots_core.read(b"")
    for error, arguments, options in [
        (robots_core.BadUrl, ("ftp://a.example/", "A"), {}),
        (robots_core.BadAgent, ("/", "()"), {}),
        (robots_core.UnknownDialect, ("/", "A"), {"dialect": "latin"}),
        (ValueError, ("/", "A"), {"purpose": "fun"}),
    ]:
        with pytest.raises(error):
            file.decide(*arguments, **options)  # type: ignore[arg-type]


def test_explanation_has_the_rules_and_an_outcome_none() -> None:
    file = robots_core.read(b"User-agent: *\nDisallow: /a\nDisallow: /a/b\nSitemap: https://a.example/s.xml\n")
    explained = file.explain("https://a.example/a/b", "ExampleBot")
    assert explained is not None
    assert [rule.pattern for rule in explained.rules] == ["/a/b", "/a"]
    assert file.sitemaps == ("https://a.example/s.xml",)
    gone = robots_core.outcome(404)
    assert (gone.explain("/", "A"), gone.sitemaps, gone.lint(), gone.rate("A")) == (None, (), [], None)


def test_the_version_is_that_of_the_bytes_or_of_the_outcome() -> None:
    body = b"User-agent: *\n"
    assert robots_core.read(body).version == sha256(body).hexdigest()[:16]
    assert robots_core.read(body, truncated=True).version != robots_core.read(body).version
    assert robots_core.outcome(404).version == robots_core.outcome(404).version != robots_core.outcome(410).version
    assert robots_core.outcome(503).version is None


def test_import_loads_only_what_each_use_needs() -> None:
    script = "import sys; before = set(sys.modules); import robots_core; print(*(set(sys.modules) - before))"
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT / 'core')!r}); {script}"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = set(ended.stdout.split())
    assert "robots_core.file" in loaded
    assert loaded & NOT_NEEDED == set()
