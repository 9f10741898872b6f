"""Every regular expression of the core takes steps in proportion to the text, whatever the text (spec B17).

Steps are counted by tests/regex_steps.py, so that nothing depends on the machine. To add an expression: name it in
EXPRESSIONS, with the method it is used by. One that is missing here fails the last test.
"""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest

import app.robots
from app.robots.dialects import DIALECTS
from tests.regex_steps import StepCounter

op: Any = importlib.import_module("re._constants")

EXPRESSIONS = {
    "app.robots.groups:_AGENT": "findall",
    "app.robots.groups:_MEMBER": "findall",
    "app.robots.groups:_VERSION_2": "fullmatch",
    "app.robots.indexing:_NUMBER": "fullmatch",
    "app.robots.indexing:_TOKEN": "fullmatch",
    "app.robots.lint:_LINE_END": "findall",
    "app.robots.lint:_LONG_LINE": "findall",
    "app.robots.patterns:_DELIMITED_QUERY": "search",
    "app.robots.rates:_CRAWL_DELAY": "fullmatch",
    "app.robots.rates:_REQUEST_RATE": "fullmatch",
    "app.robots.rates:_WINDOW": "fullmatch",
    "app.robots.robots_txt:_ABSOLUTE": "fullmatch",
    "app.robots.robots_txt:_AFTER_STAR": "findall",
    "app.robots.usage:_MEMBER": "match",
}
ELSEWHERE = ("app.robots.agents", "app.robots.dialects.")
"""Whose expressions tests/test_regex_steps.py counts, and those that are found by their dialect."""

PUMPS = ["a", "A", "0", "U", "D", "M", "V", "B", ".", "*", "?", "$", " ", "\t", "/", ":", "=", ",", "-", "\r", "\r\n"]
PUMPS += ["\n", "é", "UA", "UB", "a=a,", "a=", "0/", "?a", "? ", "0 ", "* ", "1/1 ", "2.0.", "\t ", "://"]
HARD = [
    (head, pump, tail) for head in ("", "a", "1/", "1/1", "a=", "?", "a://") for pump in PUMPS for tail in ("", "!")
]
LENGTHS = (64, 128)
MOST = 2.4
"""What twice the text may cost: twice the steps, and a little. Quadratic expressions take four times as many."""


class Counter(StepCounter):
    """Also counts what the expressions of the core are made of, and those before them are not."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        super().__init__(pattern)
        self._lines = bool(pattern.flags & re.MULTILINE)

    def _node_ends(self, node: Any, text: str, start: int) -> Iterator[int]:
        code, argument = node
        if code is op.ASSERT and argument[0] > 0:
            if any(True for _ in self._ends(list(argument[1]), text, start)):
                yield start
        elif code is op.AT and self._lines and argument in {op.AT_BEGINNING, op.AT_END}:
            neighbour = text[start - 1 : start] if argument is op.AT_BEGINNING else text[start : start + 1]
            if neighbour in ("", "\n"):
                yield start
        else:
            yield from super()._node_ends(node, text, start)

    def _is_in(self, node: Any, character: str) -> bool:
        code, argument = node
        if code is op.IN and argument == [(op.CATEGORY, op.CATEGORY_NOT_SPACE)]:
            return not character.isspace()
        return super()._is_in(node, character)


def expressions() -> Iterator[tuple[str, re.Pattern[Any]]]:
    """All expressions of the core's modules, and those that the dialects read with."""
    for module in pkgutil.walk_packages(app.robots.__path__, "app.robots."):
        for attribute, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, re.Pattern) and not module.name.startswith(ELSEWHERE):
                yield f"{module.name}:{attribute}", value


NAMED = dict(expressions())
USED = {name: (NAMED[name], method) for name, method in EXPRESSIONS.items()}
USED |= {f"{name} groups": (dialect.grammar.group, "findall") for name, dialect in DIALECTS.items()}
USED |= {f"{name} tokens": (dialect.token, "findall") for name, dialect in DIALECTS.items()}


def steps(pattern: re.Pattern[Any], method: str, text: str) -> int:
    counter = Counter(pattern)
    getattr(counter, method)(text)
    return counter.steps


def worst_growth(pattern: re.Pattern[Any], method: str) -> float:
    return max(
        steps(pattern, method, head + pump * LENGTHS[1] + tail)
        / steps(pattern, method, head + pump * LENGTHS[0] + tail)
        for head, pump, tail in HARD
    )


@pytest.mark.parametrize("name", USED)
def test_b17_steps_grow_with_the_text_and_no_faster(name: str) -> None:
    assert worst_growth(*USED[name]) <= MOST


@pytest.mark.parametrize("name", USED)
def test_the_expression_that_is_counted_is_the_one_that_is_used(name: str) -> None:
    pattern, method = USED[name]
    for head, pump, tail in HARD:
        if "\n" in pump and pattern.flags & re.DOTALL:
            continue
        text = head + pump * 9 + tail
        ends = getattr(Counter(pattern), method)(text)
        said = text if isinstance(pattern.pattern, str) else text.encode("latin-1")
        found = getattr(pattern, "finditer" if method == "findall" else method)(said)
        matches = list(found) if method == "findall" else [] if found is None else [found]
        assert set(ends) >= {match.end() for match in matches}
        assert bool(ends) is bool(matches)


@pytest.mark.parametrize(
    ("source", "pump"),
    [(r"[^\r\n]{200}[^\r\n]++", "a"), (r"U[^AD]*[AD]", "U"), (r"[ \t]*:", " "), (r"(?:a,?)*!", "a")],
)
def test_the_counter_knows_an_expression_that_is_not_linear(source: str, pump: str) -> None:
    before, after = (steps(re.compile(source), "findall", pump * length) for length in LENGTHS)
    assert after / before > 3


def test_no_expression_of_the_core_is_left_out() -> None:
    assert set(NAMED) == set(EXPRESSIONS)
