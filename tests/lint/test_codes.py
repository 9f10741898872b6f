"""Spec J5: each warning comes once and alone, and its replacement fixes the line."""

import pytest

from robots_core.lint.advice import Advice
from robots_core.lint.linter import CHECKS, lint
from robots_core.robots.lines import MEMBER_KEYS, Key
from robots_core.robots.robots_txt import RobotsTxt
from tests.lint.fixtures import CLEAN, FAULTS, TOGETHER, Fault
from tests.robots.naive import NAMED


def advised(fault: Fault) -> list[Advice]:
    return lint(RobotsTxt(fault.body), fault.content_type, fault.site)


def warned(body: bytes) -> list[tuple[str, int]]:
    return [(advice.code, advice.line) for advice in lint(RobotsTxt(body))]


def test_a_good_file_gives_no_warning() -> None:
    assert lint(RobotsTxt(CLEAN), "text/plain; charset=utf-8", "https://h") == []
    assert warned(b"") == []


@pytest.mark.parametrize("fault", FAULTS, ids=[f"{fault.code}-{at}" for at, fault in enumerate(FAULTS)])
def test_j5_a_fault_is_reported_once_and_alone_by_a_sentence(fault: Fault) -> None:
    [advice] = advised(fault)
    assert (advice.code, advice.line) == (fault.code, fault.line)
    assert fault.says in advice.message
    assert advice.instead == fault.instead
    assert advice.message[0].isupper() or advice.message[0] in "'\""
    assert advice.message.endswith((".", "?", fault.instead or "."))
    assert len(advice.message) < 300
    assert "remove" not in advice.message.lower()  # spec I7


def mended(fault: Fault) -> bytes:
    lines = fault.body.decode().split("\n")
    lines[fault.line - 1] = fault.instead or ""
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    "fault", [fault for fault in (*FAULTS, TOGETHER) if fault.instead is not None], ids=lambda fault: fault.code
)
def test_j5_the_replacement_fixes_the_line(fault: Fault) -> None:
    left = {advice.code for advice in lint(RobotsTxt(mended(fault)), fault.content_type, fault.site)}
    # The repaired line may cause another warning, such as that the site is closed; the fault itself is gone.
    assert left <= ({"deprecated"} if fault is TOGETHER else {"whole-site-closed"})
    assert fault.code not in left


def test_j5_every_warning_has_a_file_that_fires_it() -> None:
    assert {fault.code for fault in FAULTS} | {TOGETHER.code} == set(CHECKS)


def test_q1_a_root_of_version_2_is_reported_with_its_version() -> None:
    assert [(it.code, it.line, it.instead) for it in advised(TOGETHER)] == [
        ("deprecated", 2, None),
        (TOGETHER.code, TOGETHER.line, TOGETHER.instead),
    ]


@pytest.mark.parametrize("name", NAMED)
def test_i7_a_known_key_is_never_reported_as_unknown(name: str) -> None:
    assert "unknown-key" not in [code for code, _ in warned(f"User-agent: *\n{name}: x".encode())]


@pytest.mark.parametrize("key", sorted(MEMBER_KEYS - {Key.COMMENT, Key.NOINDEX}))
def test_i8_every_member_above_the_first_agent_is_reported(key: Key) -> None:
    assert ("member-before-agent", 1) in warned(f"{key}: x\nUser-agent: *".encode())


@pytest.mark.parametrize("key", ["disallowaitraining", "allowaitraining"])
def test_i5_a_training_line_between_agents_is_not_a_fault(key: str) -> None:
    assert "rate-between-agents" not in dict(warned(f"User-agent: a\n{key}: /\nUser-agent: b\nAllow: /".encode()))


def test_i5_a_path_of_training_without_a_slash_is_reported() -> None:
    found = lint(RobotsTxt(b"User-agent: *\nDisallowAITraining: x\nAllowAITraining: $"))
    assert [(it.line, it.instead) for it in found if it.code == "rule-no-slash"] == [(2, "DisallowAITraining: /x")]


def test_f12_a_valid_version_is_only_reported_as_deprecated() -> None:
    assert warned(b"User-agent: a\nUser-agent: b\nRobot-version: 2.0\nDisallow: /x") == [("deprecated", 3)]
