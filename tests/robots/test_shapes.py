"""The index says what trying every rule would, also of files and paths that are made to be slow."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random

import pytest

from app.robots.dialect import RobotsTxt
from app.robots.dialects import DIALECTS
from app.robots.paths import draft_subject, glob_subject, google_subject, query_escaped, rfc_subject
from tests.bench.shapes import Shape, drawn, made, mutated
from tests.robots.test_matcher import AGENT, members

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


def glob_matches(pattern: str, subject: str, rows: dict[str, int]) -> bool:
    """By its definition: bit n of `reached` says whether what was read of the pattern may end behind n characters.

    `rows` are the characters of `subject`, each with the places where it stands.
    """
    all_places = (1 << len(subject)) - 1
    reached, at = 1, 0
    while at < len(pattern) and reached:
        character, at = pattern[at], at + 1
        if character == "*":
            lowest = (reached & -reached).bit_length() - 1
            reached = (1 << (len(subject) + 1)) - (1 << lowest)
            continue
        takes, wanted = {character}, True
        if character == "?":
            takes, wanted = set(), False
        elif character == "[":
            negated = pattern[at : at + 1] in ("!", "^")
            end = pattern.find("]", at + negated + 1)
            if end >= 0:
                takes, wanted = members(pattern[at + negated : end]), not negated
                at = end + 1
        elif character == "\\" and at < len(pattern):
            takes, at = {pattern[at]}, at + 1
        row = 0
        for member in takes:
            row |= rows.get(member, 0)
        reached = (reached & (row if wanted else all_places & ~row)) << 1
    return bool(reached >> len(subject) & 1)


def rows_of(subject: str) -> dict[str, int]:
    """For each character the places where it stands, bit by bit."""
    return {
        character: int("".join("1" if it == character else "0" for it in reversed(subject)), 2)
        for character in set(subject)
    }


SUBJECTS = {"rfc9309": rfc_subject, "google": google_subject, "draft1996": draft_subject, "v2": glob_subject}


def matcher(dialect: str, subject: str) -> Matches:
    """Whether a normalised pattern matches the normalised subject."""
    if dialect == "v2":
        return partial(glob_matches, rows=rows_of(subject))
    return {"rfc9309": either_matches, "google": pattern_matches, "draft1996": lambda a, b: b.startswith(a)}[dialect]


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
        matches = matcher(it.dialect, subject)
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
