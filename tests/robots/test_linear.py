"""Regular expressions of the core and of the warnings take steps linear in any text (spec B17).

tests/regex_steps.py counts the steps, so the machine does not matter. To add an expression, add it to EXPRESSIONS with
the method that uses it. The last test fails if one is missing.
"""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest

import robots_core.lint
import robots_core.robots
from robots_core.robots.dialects import DIALECTS
from tests.regex_steps import StepCounter

op: Any = importlib.import_module("re._constants")

EXPRESSIONS = {
    "robots_core.lint.agents:_LIST": "search",
    "robots_core.lint.agents:_SEPARATORS": "findall",
    "robots_core.lint.agents:_TOKEN": "findall",
    "robots_core.lint.checked_file:_AGENT": "findall",
    "robots_core.lint.checked_file:_IN_GROUPS": "findall",
    "robots_core.lint.checked_file:_RULE": "findall",
    "robots_core.lint.groups:EVERYTHING": "fullmatch",
    "robots_core.lint.groups:_AGENTS": "findall",
    "robots_core.lint.groups:_MEMBER": "findall",
    "robots_core.lint.keys:AFTER": "search",
    "robots_core.lint.keys:BEFORE": "match",
    "robots_core.lint.paths:EVERYTHING": "fullmatch",
    "robots_core.lint.paths:_ANY": "findall",
    "robots_core.lint.paths:_ENTITY": "fullmatch",
    "robots_core.lint.paths:_ESCAPED": "search",
    "robots_core.lint.paths:_FILE_TYPE": "fullmatch",
    "robots_core.lint.paths:_HOST": "fullmatch",
    "robots_core.lint.paths:_JOINED": "findall",
    "robots_core.lint.paths:_LITERAL": "findall",
    "robots_core.lint.paths:_PARTS": "findall",
    "robots_core.lint.paths:_TAG_AT_END": "search",
    "robots_core.lint.paths:_URL": "match",
    "robots_core.lint.rates:_DELAY": "fullmatch",
    "robots_core.lint.rates:_HOURS": "fullmatch",
    "robots_core.lint.rates:_WINDOW_AT_END": "fullmatch",
    "robots_core.lint.statements:_HOST_FIRST": "fullmatch",
    "robots_core.lint.statements:_SCHEME_TWICE": "fullmatch",
    "robots_core.lint.statements:_URLS": "findall",
    "robots_core.lint.written:AFTER": "search",
    "robots_core.lint.written:BEFORE": "match",
    "robots_core.lint.written:TOKEN": "fullmatch",
    "robots_core.lint.written:_ANY": "match",
    "robots_core.lint.written:_BLANK_INSIDE": "search",
    "robots_core.lint.written:_COLON_TWICE": "match",
    "robots_core.lint.written:_DIRECTIVE": "findall",
    "robots_core.lint.written:_EVERYONE": "fullmatch",
    "robots_core.lint.written:_KEY": "match",
    "robots_core.lint.written:_RULE": "match",
    "robots_core.lint.written:_RULES_AND_AGENTS": "findall",
    "robots_core.lint.written:_SECOND": "search",
    "robots_core.lint.written:_SEEN": "search",
    "robots_core.lint.written:_TAG": "fullmatch",
    "robots_core.lint.written:_UNSEEN_INSIDE": "findall",
    "robots_core.lint.written:_URL": "match",
    "robots_core.robots.groups:_AGENT": "findall",
    "robots_core.robots.groups:_MEMBER": "findall",
    "robots_core.robots.groups:_VERSION_2": "fullmatch",
    "robots_core.robots.indexing:_NUMBER": "fullmatch",
    "robots_core.robots.indexing:_SEPARATORS": "findall",
    "robots_core.robots.indexing:_TOKEN": "fullmatch",
    "robots_core.robots.patterns:_DELIMITED_QUERY": "search",
    "robots_core.robots.patterns:_FROM_STAR": "findall",
    "robots_core.robots.patterns:_TWO_FORMS": "search",
    "robots_core.robots.rates:_CRAWL_DELAY": "fullmatch",
    "robots_core.robots.rates:_REQUEST_RATE": "fullmatch",
    "robots_core.robots.rates:_WINDOW": "fullmatch",
    "robots_core.robots.robots_txt:_ABSOLUTE": "fullmatch",
    "robots_core.robots.robots_txt:_AFTER_STAR": "findall",
    "robots_core.robots.usage:_MEMBER": "match",
    "robots_core.robots.user_agent:TOKEN": "findall",
    "robots_core.robots.user_agent:_ADDRESS": "search",
    "robots_core.robots.user_agent:_BETWEEN_KNOWN": "findall",
    "robots_core.robots.user_agent:_BETWEEN_NAMES": "findall",
    "robots_core.robots.user_agent:_BETWEEN_WORDS": "findall",
    "robots_core.robots.user_agent:_COMPATIBLE": "fullmatch",
    "robots_core.robots.user_agent:_LIKE": "findall",
    "robots_core.robots.user_agent:_LISTED": "fullmatch",
    "robots_core.robots.user_agent:_PARENTHESIS": "findall",
}
ELSEWHERE = ("robots_core.robots.agents", "robots_core.robots.dialects.")
"""Modules whose expressions are those of another module, or are found through their dialect."""

PUMPS = ["a", "A", "0", "U", "D", "M", "V", "B", ".", "*", "?", "$", " ", "\t", "/", ":", "=", ",", "-", "\r", "\r\n"]
PUMPS += ["\n", "é", "UA", "UB", "a=a,", "a=", "0/", "?a", "? ", "0 ", "* ", "1/1 ", "2.0.", "\t ", "://"]
HARD = [
    (head, pump, tail) for head in ("", "a", "1/", "1/1", "a=", "?", "a://") for pump in PUMPS for tail in ("", "!")
]
LENGTHS = (16, 32)
MOST = 2.4
"""The largest ratio of steps for twice the text: a little over 2. Quadratic expressions have 4."""


class Counter(StepCounter):
    """Also supports the nodes that only expressions of the core have."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        super().__init__(pattern)
        self._lines = bool(pattern.flags & re.MULTILINE)

    def _node_ends(self, node: Any, text: str, start: int) -> Iterator[int]:
        code, argument = node
        if code is op.ASSERT and argument[0] > 0:
            if any(True for _ in self._ends(argument[1], text, start)):
                yield start
        elif code is op.AT and self._lines and argument in {op.AT_BEGINNING, op.AT_END}:
            neighbour = text[start - 1 : start] if argument is op.AT_BEGINNING else text[start : start + 1]
            if neighbour in ("", "\n"):
                yield start
        else:
            yield from super()._node_ends(node, text, start)

    def _is_in(self, node: Any, character: str) -> bool:
        code, argument = node
        if code is op.IN and argument == ((op.CATEGORY, op.CATEGORY_NOT_SPACE),):
            return not character.isspace()
        return super()._is_in(node, character)


def expressions() -> Iterator[tuple[str, re.Pattern[Any]]]:
    """All expressions of the core and of the warnings, except the grammars and token patterns of dialects."""
    modules = [
        module
        for package in (robots_core.lint, robots_core.robots)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    for module in modules:
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
def test_b17_steps_are_linear_in_the_text(name: str) -> None:
    assert worst_growth(*USED[name]) <= MOST


@pytest.mark.parametrize("name", USED)
def test_the_counter_agrees_with_re(name: str) -> None:
    pattern, method = USED[name]
    for head, pump, tail in HARD:
        if "\n" in pump and pattern.flags & re.DOTALL:
            continue
        text = head + pump * 9 + tail
        ends = getattr(Counter(pattern), method)(text)
        subject = text if isinstance(pattern.pattern, str) else text.encode("latin-1")
        found = getattr(pattern, "finditer" if method == "findall" else method)(subject)
        matches = list(found) if method == "findall" else [] if found is None else [found]
        assert set(ends) >= {match.end() for match in matches}
        assert bool(ends) is bool(matches)


@pytest.mark.parametrize(
    ("source", "pump"),
    [(r"[^\r\n]{200}[^\r\n]++", "a"), (r"U[^AD]*[AD]", "U"), (r"[ \t]*:", " "), (r"(?:a,?)*!", "a")],
)
def test_the_counter_detects_an_expression_that_is_not_linear(source: str, pump: str) -> None:
    before, after = (steps(re.compile(source), "findall", pump * length) for length in LENGTHS)
    assert after / before > 3


def test_every_expression_of_the_core_is_checked() -> None:
    assert set(NAMED) == set(EXPRESSIONS)
