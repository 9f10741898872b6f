"""Every regular expression for text of callers or sites takes a number of steps linear in the text.

To add one, add it to EXPRESSIONS with the method that uses it, and hard texts for it to HARD. The last test fails if an
expression is missing.
"""

import importlib
import importlib.util
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import app
import robots_core
from tests.regex_steps import StepCounter

EXPRESSIONS = {
    "app.decision_log.chain:_LAST_MEMBERS": "search",
    "app.identity.coverage:_SENT_AS_WRITTEN": "fullmatch",
    "app.main.agents_file:_PROFILE": "fullmatch",
    "app.main.agents_file:_TOKEN": "fullmatch",
    "robots_core.meta_tags:_ATTRIBUTE": "findall",
    "robots_core.meta_tags:_COMMENT_END": "search",
    "robots_core.meta_tags:_EMPTY_COMMENT": "match",
    "robots_core.meta_tags:_MARKUP": "search",
    "robots_core.meta_tags:_SCRIPT_MARK": "findall",
    "robots_core.meta_tags:_TAG": "match",
    "robots_core.meta_tags:_TEXT_END": "findall",
    "app.api.middleware.other_sites:_HOST": "fullmatch",
    "app.api.routes.history:_ID": "fullmatch",
    "app.api.middleware.access_log:_REQUEST_ID_PATTERN": "fullmatch",
    "app.api.middleware.access_log:_TRACEPARENT_PATTERN": "fullmatch",
    "app.api.routes.permits:_BAD_IN_CALLER": "findall",
    "app.auth.quotas:_DEBT": "fullmatch",
    "robots_core.times:_INSTANT": "fullmatch",
    "app.cache.freshness:_DIRECTIVE": "findall",
    "app.cache.recheck_file:_POOL_NAME": "fullmatch",
    "app.cache.visits:_VALUE": "fullmatch",
    "robots_decisions.bundle_rows:_BASE": "match",
    "robots_decisions.bundle_rows:_ORIGIN": "fullmatch",
    "robots_decisions.bundle_rows:_OUTCOME": "fullmatch",
    "robots_decisions.bundle_rows:_PROFILE": "fullmatch",
    "robots_decisions.bundle_rows:_VERSION": "fullmatch",
    "robots_decisions.question:_AUTHORITY": "match",
    "robots_decisions.question:_INSTANT": "fullmatch",
    "robots_decisions.parsing:_VERSION": "fullmatch",
    "robots_decisions.permits:_CALLER": "fullmatch",
    "robots_decisions.permits:_KEY": "fullmatch",
    "robots_decisions.permits:_PERMIT": "fullmatch",
    "robots_decisions.parsing:_REASON": "fullmatch",
    "robots_decisions.permits:_SECONDS": "fullmatch",
    "robots_decisions.signatures:_VALUE": "fullmatch",
    "robots_decisions.cli.combined_log:_ESCAPE": "findall",
    "robots_decisions.cli.combined_log:_LINE": "fullmatch",
    "robots_decisions.cli.instants:_INSTANT": "fullmatch",
    "robots_decisions.cli.origins:_BARE": "match",
    "robots_decisions.cli.origins:_ORIGIN": "match",
    "robots_decisions.cli.sinks:_PART": "fullmatch",
    "app.cli.bare_host:_BARE": "fullmatch",
    "app.cli.settings:_PASSWORD": "findall",
    "robots_core.times:_WRITTEN": "fullmatch",
    "robots_core.diff.effect:_KEPT": "findall",
    "app.history.redis_changes:_ID": "fullmatch",
    "robots_core.diff.witness:_GLOB": "findall",
    "robots_core.diff.witness:_STARS": "findall",
    "app.history.archive.places:_CREDENTIALS": "search",
    "app.store.replies:_HEADER": "match",
    "app.store.replies:_MANY": "search",
    "robots_core.tag_notes:_RULE": "findall",
    "robots_core.tag_notes:_USE": "findall",
    "app.auth.keys:_DIGEST": "fullmatch",
    "app.auth.keys:_ID": "fullmatch",
    "app.auth.keys:_PROFILE": "fullmatch",
    "robots_core.origin:_LABEL": "fullmatch",
    "robots_core.origin:_NUMBER": "fullmatch",
    "robots_core.origin:_PORT": "fullmatch",
    "robots_core.origin:_PROFILE": "fullmatch",
    "robots_core.origin:_SCHEME": "match",
    "app.overrides.redis_overrides:_WRITTEN_VERSION": "fullmatch",
    "app.overrides.override_json:_ID": "fullmatch",
    "app.store.url:_HOST_NAME": "match",
    "app.store.url:_SCHEME": "match",
    "app.main.setting_names:_LINK": "search",
    "app.files.validation:_BETWEEN_WORDS": "findall",
}

NOT_YET = ("robots_core.lint.", "robots_core.robots.")
"""Modules whose expressions are not checked, except those listed above."""

APART = ("robots_core.arrow", "robots_decisions.cli.bundle", "robots_decisions.cli.bundle_file")
"""Modules that need a library which this environment lacks; they have no expressions."""

HARD = [
    *((head, pump, tail) for head in ("", " ") for pump in "aA0 -_./=:;,\"'\\%&é\t" for tail in ("", "!", "\n")),
    ("", "a ", ""),
    ("<a ", "a = b ", ""),
    ("<a ", "a='b'", "'"),
    ("<a ", 'a="', ""),
    ("<a ", "/ ", ""),
    ("", "<", ""),
    ("", "<a ", ""),
    ("", "<!-- ", ""),
    ("", "<script ", ""),
    ("", "</title", ""),
    ("", "-", "!"),
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
    ("[", "a", ""),
    ('[] "', "\\a", ""),
    ('[] "', '\\"', '" 1 1'),
    ('[] "" 1 1 "" "', "\\a", "\n"),
    ("\\x", "\\x", "0"),
]
LENGTHS = (64, 128)
MOST = 2.4
"""The largest ratio of steps for twice the text: a little over 2. Quadratic expressions have 4."""


def expression(name: str) -> re.Pattern[Any]:
    module, _, attribute = name.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    assert isinstance(found, re.Pattern)
    return found


def steps(pattern: re.Pattern[Any], method: str, text: str) -> int:
    counter = StepCounter(pattern)
    ends = getattr(counter, method)(text)
    subject = text if isinstance(pattern.pattern, str) else text.encode("latin-1")
    found = getattr(pattern, "finditer" if method == "findall" else method)(subject)
    matches = list(found) if method == "findall" else [] if found is None else [found]
    assert ends == [match.end() for match in matches]  # the counter agrees with `re`
    return counter.steps


def worst_growth(pattern: re.Pattern[Any], method: str) -> float:
    growths = []
    for head, pump, tail in HARD:
        before, after = (steps(pattern, method, head + pump * length + tail) for length in LENGTHS)
        growths.append(after / before)
    return max(growths)


@pytest.mark.parametrize(("name", "method"), EXPRESSIONS.items(), ids=EXPRESSIONS)
def test_steps_are_linear_in_the_text(name: str, method: str) -> None:
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
def test_counter_detects_quadratic_expressions(source: str, method: str) -> None:
    growths = []
    for pump in ("a", " "):
        counts = [steps(re.compile(source), method, pump * length) for length in (8, 16)]
        growths.append(counts[1] / counts[0])
    assert max(growths) > 3


def expressions_of_the_service() -> Iterator[str]:
    packages = app, robots_core, importlib.import_module("robots_decisions")
    modules = [
        found for package in packages for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    for module in modules:
        if module.name.endswith("__main__") or module.name in APART:
            continue
        for attribute, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, re.Pattern):
                yield f"{module.name}:{attribute}"


@pytest.mark.parametrize("name", APART)
def test_modules_apart_have_no_expressions(name: str) -> None:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    assert "import re\n" not in Path(spec.origin).read_text("utf-8")


def test_every_expression_of_the_service_is_checked() -> None:
    assert set(EXPRESSIONS) == {
        name for name in expressions_of_the_service() if name in EXPRESSIONS or not name.startswith(NOT_YET)
    }
