"""Every regular expression that meets a caller's or a site's text takes steps in proportion to the text.

To add one: name it in EXPRESSIONS, with the method it is used by. Texts that are hard for expressions like it go to
HARD. An expression that is missing here fails the last test.
"""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest

import app
from tests.regex_steps import StepCounter

EXPRESSIONS = {
    "app.api.middleware.auth:_HOST": "fullmatch",
    "app.api.routes.history:_ID": "fullmatch",
    "app.api.middleware.access_log:_REQUEST_ID_PATTERN": "fullmatch",
    "app.api.routes.permits:_BAD_IN_CALLER": "findall",
    "app.auth.quotas:_DEBT": "fullmatch",
    "app.api.params:_INSTANT": "fullmatch",
    "app.cache.freshness:_DIRECTIVE": "findall",
    "app.cache.redis_visits:_VALUE": "fullmatch",
    "app.clients.permits:_AUTHORITY": "match",
    "app.clients.permits:_CALLER": "fullmatch",
    "app.clients.permits:_KEY": "fullmatch",
    "app.clients.permits:_PERMIT": "fullmatch",
    "app.clients.permits:_REASON": "fullmatch",
    "app.clients.permits:_SECONDS": "fullmatch",
    "app.cli.client:_KEY": "fullmatch",
    "app.durations:_WRITTEN": "fullmatch",
    "app.history.diff:_GLOB": "findall",
    "app.auth.keys:_DIGEST": "fullmatch",
    "app.auth.keys:_ID": "fullmatch",
    "app.origin:_LABEL": "fullmatch",
    "app.origin:_NUMBER": "fullmatch",
    "app.origin:_PORT": "fullmatch",
    "app.origin:_SCHEME": "match",
    "app.overrides.redis_overrides:_WRITTEN_VERSION": "fullmatch",
    "app.overrides.table:_ID": "fullmatch",
    "app.robots.agents:_PRODUCT": "findall",
    "app.robots.agents:_TOKEN": "findall",
    "app.redis.url:_HOST_NAME": "match",
    "app.redis.url:_SCHEME": "match",
}

NOT_YET = ("app.robots.",)
"""Whose expressions are not looked at, but for those that are named above."""

HARD = [
    *((head, pump, tail) for head in ("", " ") for pump in "aA0 -_./=:;,\"'\\%&é\t" for tail in ("", "!", "\n")),
    ("", "a ", ""),
    ("a ", "b", ""),
    ("", "a/", " "),
    ("", "a=", '"'),
    ("", 'a="', ""),
    ('a="', "b", ""),
    ("a", " ", "b"),
    ("a=", " ", ";"),
    ("", "a,=\t", ""),
    ("", "a-", "."),
    ("", '"recheck_at":"', ""),
    ('"recheck_at":"', "0", '"'),
    ("", '"recheck_at":"","age":', ""),
    ("2026-11-21T18:30:00.", "0", ""),
    ("0:", "0", ":"),
]
LENGTHS = (64, 128)
MOST = 2.4
"""What twice the text may cost: twice the steps, and a little. Quadratic expressions take four times as many."""


def expression(name: str) -> re.Pattern[Any]:
    module, _, attribute = name.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    assert isinstance(found, re.Pattern)
    return found


def steps(pattern: re.Pattern[Any], method: str, text: str) -> int:
    counter = StepCounter(pattern)
    ends = getattr(counter, method)(text)
    said = text if isinstance(pattern.pattern, str) else text.encode("latin-1")
    found = getattr(pattern, "finditer" if method == "findall" else method)(said)
    matches = list(found) if method == "findall" else [] if found is None else [found]
    assert ends == [match.end() for match in matches]  # it is the same expression that was counted
    return counter.steps


def worst_growth(pattern: re.Pattern[Any], method: str) -> float:
    growths = []
    for head, pump, tail in HARD:
        before, after = (steps(pattern, method, head + pump * length + tail) for length in LENGTHS)
        growths.append(after / before)
    return max(growths)


@pytest.mark.parametrize(("name", "method"), EXPRESSIONS.items(), ids=EXPRESSIONS)
def test_steps_grow_with_the_text_and_no_faster(name: str, method: str) -> None:
    assert worst_growth(expression(name), method) <= MOST


@pytest.mark.parametrize(
    ("source", "method"),
    [
        (r"([A-Za-z0-9_-]+)/", "findall"),
        (r"(a+)+b", "match"),
        (r"\s*=\s*;", "findall"),
        (r"a*a*!", "fullmatch"),
    ],
)
def test_the_counter_knows_a_quadratic_expression(source: str, method: str) -> None:
    growths = []
    for pump in ("a", " "):
        counts = [steps(re.compile(source), method, pump * length) for length in (8, 16)]
        growths.append(counts[1] / counts[0])
    assert max(growths) > 3


def expressions_of_the_service() -> Iterator[str]:
    for module in pkgutil.walk_packages(app.__path__, "app."):
        if module.name.endswith("__main__"):
            continue
        for attribute, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, re.Pattern):
                yield f"{module.name}:{attribute}"


def test_no_expression_of_the_service_is_left_out() -> None:
    assert set(EXPRESSIONS) == {
        name for name in expressions_of_the_service() if name in EXPRESSIONS or not name.startswith(NOT_YET)
    }
