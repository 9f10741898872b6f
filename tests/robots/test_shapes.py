"""The index says what trying every rule would, also of files and paths that are made to be slow."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from app.robots.dialect import RobotsTxt
from app.robots.dialects import DIALECTS
from app.robots.paths import draft_subject, glob_subject, google_subject, query_escaped, rfc_subject
from tests.bench.shapes import Shape, drawn, made, mutated
from tests.robots.test_matcher import AGENT, glob_reference

Matches = Callable[[str, str], bool]


def pattern_matches(pattern: str, subject: str) -> bool:
    """Each text at its first place behind the one before, which leaves the most for the rest."""
    anchored = pattern.endswith("$")
    head, *texts = pattern.removesuffix("$").split("*")
    if not texts:
        return subject == head if anchored else subject.startswith(head)
    last = texts.pop()
    at = len(head) if subject.startswith(head) else -1
    for text in texts:
        if at < 0:
            return False
        found = subject.find(text, at)
        at = found + len(text) if found >= 0 else -1
    if at < 0:
        return False
    return subject.endswith(last) and len(subject) - len(last) >= at if anchored else subject.find(last, at) >= 0


def either_matches(pattern: str, subject: str) -> bool:
    """As written, or with both queries' delimiters escaped (spec X5)."""
    return pattern_matches(pattern, subject) or pattern_matches(query_escaped(pattern), query_escaped(subject))


SUBJECTS = {"rfc9309": rfc_subject, "google": google_subject, "draft1996": draft_subject, "v2": glob_subject}


MATCHERS: dict[str, Matches] = {
    "rfc9309": either_matches,
    "google": pattern_matches,
    "draft1996": lambda pattern, subject: subject.startswith(pattern),
    "v2": glob_reference,
}
"""Whether a normalised pattern matches a normalised subject."""


def check(shape: Shape, paths: int = 4) -> int:
    """The rules that match the shape's path, and parts of it, are those that match alone; how many there were."""
    it = made(shape)
    reading = RobotsTxt(it.body).reading(DIALECTS[it.dialect])
    selection = reading.select(AGENT)
    assert selection is not None
    rules = reading.rules(selection)
    random = Random(repr(shape))
    parts = [it.path[: random.randrange(1, len(it.path) + 1)] + random.choice(["", "/", "a"]) for _ in range(paths - 1)]
    total = 0
    for path in [it.path, *parts]:
        subject = SUBJECTS[it.dialect](path)
        matches = MATCHERS[it.dialect]
        entries = [rules.entry(place) for place in range(len(rules))]
        places = [place for place, entry in enumerate(entries) if matches(entry.pattern, subject)]
        alone = [entries[place] for place in places]
        assert rules.first(path) == (places or [len(rules)])[0]
        assert rules.matches(path, len(rules)) == (alone, len(alone))
        total += len(alone)
    return total


@pytest.mark.parametrize("seed", range(12))
def test_the_index_says_of_hostile_shapes_what_trying_every_rule_does(seed: int) -> None:
    random = Random(seed)
    for _ in range(10):
        shape = mutated(drawn(random), random)
        check(replace(shape, octets=3000, length=min(shape.length, random.choice((80, 400, 3000)))))
