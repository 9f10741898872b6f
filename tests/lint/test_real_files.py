"""Real files: no warning is more frequent than plausible, and replacements fix the lines."""

from robots_core.lint.linter import CHECKS, lint
from robots_core.robots.robots_txt import RobotsTxt
from tests.lint.counts import counts, real_advice

USUAL = 0.06
"""The largest plausible share of files with a fault, unless listed below; `python -m tests.lint.counts` prints it."""

MORE = {"shadowed-rule": 0.25, "agent-cut-short": 0.12, "duplicate-rule": 0.12, "deprecated": 0.1}
"""Faults that are more frequent: long lists of paths and of old robots, and Noindex lines."""


def test_j5_no_warning_is_more_frequent_than_plausible() -> None:
    found = counts()
    assert found.files > 3000
    too_many = {code: n for code, n in found.with_code.items() if n / found.files > MORE.get(code, USUAL)}
    assert too_many == {}
    # Most codes occur, and most files have no warning.
    assert len(found.with_code) > 25
    assert sum(1 for _, advised in real_advice().values() if not advised) > found.files / 2
    assert found.with_code.keys() <= CHECKS.keys()


def test_j5_replacements_fix_lines_of_real_files() -> None:
    wrong: list[str] = []
    for host, (body, found) in real_advice().items():
        for code in {advice.code for advice in found if advice.instead is not None}:
            advice = next(advice for advice in found if advice.code == code and advice.instead is not None)
            lines = body.decode("utf-8-sig", "replace").splitlines()
            if len(body) > 20_000 or len(lines) != RobotsTxt(body).scan.lines.count:
                continue
            lines[advice.line - 1] = advice.instead or ""
            again = lint(RobotsTxt("\n".join(lines).encode()), site=f"https://{host}")
            if any((it.code, it.line) == (code, advice.line) for it in again):
                wrong.append(f"{host}:{advice.line}: {code}: {advice.instead!r}")
    assert wrong == []
