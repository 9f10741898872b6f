"""Spec F5, L1, L2, L3: the core agrees with the worked tables of docs/reference/robots-spec.md."""

import re
from datetime import UTC, datetime, time

import pytest

from robots_core.robots.robots_txt import RobotsTxt
from tests.clauses import PAGE
from tests.robots.judging import ask, closes, terms

_CODE = re.compile(r"`([^`]*)`")


def table(clause: str) -> list[list[str]]:
    """The rows of the first table below a clause, without its header."""
    below = PAGE.read_text(encoding="utf-8").partition(f"\n**{clause}. ")[2]
    lines = below[below.index("\n|") + 1 :].partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def interval(lines: list[str], dialect: str, at: str) -> float | None:
    """The interval in seconds that Request-rate lines give at a time of day."""
    robots = RobotsTxt("".join(["User-agent: *\n", *(f"Request-rate: {line}\n" for line in lines)]).encode())
    instant = datetime.combine(datetime(2026, 1, 1, tzinfo=UTC), time.fromisoformat(at), UTC)
    rate = terms(robots, dialect).rates.at(instant).value
    return None if rate is None else rate.interval


def seconds(cell: str) -> float | None:
    """The interval that a cell begins with; None for `-`."""
    return None if cell == "-" else float(cell.split()[0])


@pytest.mark.parametrize(("rule", "url", "rfc", "google", "draft"), table("L1"))
def test_l1_rule_against_url(rule: str, url: str, rfc: str, google: str, draft: str) -> None:
    (pattern,), path = _CODE.findall(rule), _CODE.findall(url)[0]
    for dialect, cell in (("rfc9309", rfc), ("seznam", rfc), ("google", google), ("draft1996", draft)):
        assert closes(dialect, pattern, path) is (cell == "m"), dialect


@pytest.mark.parametrize(("patterns", "matching", "others"), table("L2"))
def test_l2_version_2_globs(patterns: str, matching: str, others: str) -> None:
    for dialect in ("v2", "seznam"):
        for pattern in _CODE.findall(patterns):
            body = f"User-agent: *\nRobot-version: 2.0\nDisallow: {pattern}"
            asked = _CODE.findall(matching + others)
            assert [path for path in asked if ask(body, path, dialect).rule] == _CODE.findall(matching)


@pytest.mark.parametrize(("value", "documents", "period", "wanted"), table("F5"))
def test_f5_request_rates(value: str, documents: str, period: str, wanted: str) -> None:
    line = value.split()[0]
    assert interval([line], "rfc9309", "12:00") == seconds(wanted) == int(period) / int(documents)
    clamped = re.search(r"\(seznam: ([0-9]+) s\)", wanted)
    assert interval([line], "seznam", "12:00") == (float(clamped[1]) if clamped else seconds(wanted))


def test_l3_windows() -> None:
    lines: list[str] = []
    for row, *cells in table("L3"):
        dialect = "seznam" if row.endswith(" in seznam") else "rfc9309"
        if not row.startswith("the same"):
            lines = re.split(r" \+ |, (?=[0-9])", re.sub(r",? in \w+$", "", row))
        times = ("03:00", "08:30", "12:00", "18:30", "23:30")
        assert [interval(lines, dialect, at) for at in times] == [seconds(cell) for cell in cells], row
