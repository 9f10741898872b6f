"""Notes about words in headers and meta tags that are meant for crawlers and have no effect (spec H2); pure."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Final

from robots_core.notes import Note
from robots_core.robots.indexing import EFFECTS, FIELD_NAME, META_ATTRIBUTES, IndexingSource
from robots_core.robots.misspelt import dropped, slips

TAG_UNKNOWN: Final = "tag-unknown"
"""A word in a header or meta tag for crawlers has no effect."""

WORDS_NOTED, WORD_SHOWN = 20, 100
"""Words that are noted, and characters of each that are shown."""

_SHORTEST: Final = 5
"""Letters of the shortest rule whose slips are looked for."""

_RULE: Final = re.compile("|".join(sorted(EFFECTS, key=len, reverse=True)))
_PURPOSES: Final[Mapping[str, Mapping[str, str]]] = {
    "content-signal": {"train-ai": "ai-train"},
    "content-usage": {"ai-train": "train-ai"},
    "tdm-reservation": {},
}
_USE: Final = re.compile(r"(search|ai-input|ai-train|train-ai)[^a-z]+(yes|no|y|n|allow|disallow)(?![a-z])")
_EXAMPLES: Final[Mapping[str, str]] = {
    "max-snippet": "max-snippet:50",
    "max-image-preview": "max-image-preview:large",
    "max-video-preview": "max-video-preview:10",
    "unavailable_after": "unavailable_after: 2030-01-31",
}


def tag_notes(unknown: Sequence[IndexingSource], agents: Collection[str]) -> Iterator[Note]:
    """A note for each of the first words without an effect, with what to write; `agents` are the agent's names."""
    first = {it.rule: it.where for it in reversed(unknown)}  # a word is noted once, where it comes first
    for written, where in islice(reversed(first.items()), WORDS_NOTED):
        shown = written if len(written) <= WORD_SHOWN else written[:WORD_SHOWN] + "…"
        instead = _instead(written, agents)
        advice = "" if instead is None else f" Write {instead}."
        yield Note(TAG_UNKNOWN, f"No crawler reads {shown!r} ({where}), so it has no effect.{advice}")


def _instead(written: str, agents: Collection[str]) -> str | None:
    name, _, value = written.partition(": ")
    if name in _PURPOSES:
        return _uses(name, value)
    if written.startswith((*META_ATTRIBUTES, 'name="')):
        several = "" if written.startswith(META_ATTRIBUTES) else " for all crawlers, or a tag for each"
        return f'name="robots"{several}'
    if written == f"{FIELD_NAME}:":
        return "the rules alone: the value does not repeat the name of the field"
    if written in agents:
        return f"'{written}: noindex', if the rule is for that crawler"
    meant = meant_rules(written)
    return None if meant is None else repr(meant)


def _uses(name: str, value: str) -> str | None:
    """The value of a header about purposes in its own words, None if they are not clear."""
    if name == "tdm-reservation":
        return "'1' to reserve rights, or '0'"
    stated = []
    for purpose, use in _USE.findall(value.lower()):
        word = "yes" if use in ("yes", "y", "allow") else "no"
        stated.append(f"{_PURPOSES[name].get(purpose, purpose)}={word if name == 'content-signal' else word[0]}")
    return repr(", ".join(stated)) if stated else None


def meant_rules(written: str) -> str | None:
    """The rules that a word in lower case may be meant as, in their right form; None if there are none."""
    rule = written.partition(":")[0].strip()
    if rule in EFFECTS:
        return rule
    letters = re.sub("[^a-z]", "", written)
    rules = _RULE.findall(letters)
    if rules and "".join(rules) == letters:
        return ", ".join(rules)
    for name, example in _EXAMPLES.items():
        if letters.startswith(re.sub("[^a-z]", "", name)):
            number = written.replace("=", ":").replace(" ", ":").rpartition(":")[2]
            is_count = name in ("max-snippet", "max-video-preview") and number.isdigit()
            return f"{name}:{number}" if is_count else example
    return _misspellings().get(letters)


@cache
def _misspellings() -> Mapping[str, str]:
    rules = [name for name in EFFECTS if len(name) >= _SHORTEST]
    return {slip: name for name in rules for slip in (*slips(name), *dropped(name))} | {name: name for name in EFFECTS}
