"""Statements about the use of fetched pages: Content-Usage, Content-Signal and AI training (spec I).

None of them changes a verdict. Content-Usage and Content-Signal are still drafts, so values are reported as written.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from robots_core.robots._native.matching import Matcher, Patterns
from robots_core.robots.lines import AI_TRAINING_KEYS, BLANKS, Directive, Key, readable
from robots_core.robots.patterns import STEPS, rfc_pattern, rfc_subject

USAGE_KEYS: Final = AI_TRAINING_KEYS | {Key.CONTENT_USAGE, Key.CONTENT_SIGNAL}
"""The member keys about usage."""

STRUCTURED_LIMIT: Final = 64 * 1024
"""Bytes of an agent's Content-Usage values that are parsed as full structured fields; values beyond it are ignored.

Plain values such as `train-ai=n, search=y` do not count: only parameters, lists and the like are costly to parse.
"""

USAGES_KEPT: Final = 50
"""How many Usage objects are cached for each agent."""

_KEY: Final = rb"[a-z*][a-z0-9_.*-]*+"
_TOKEN: Final = rb"[A-Za-z*][A-Za-z0-9!#$%&'*+.^_`|~:/-]*+"
_MEMBER: Final = re.compile(rb"[ \t]*+(" + _KEY + rb")=(" + _TOKEN + rb")[ \t]*+")
_USES: Final = ("y", "n")
_ANYWHERE: Final = b"*"


class Preference(NamedTuple):
    """The value that a line states, as written."""

    value: str
    line: int


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage statements for one URL.

    `content_usage` maps a category to "y" or "n", and `content_signal` a purpose to a value in lower case.
    `ai_training` is the AllowAITraining or DisallowAITraining line that decides, None if none matches (spec I5). URLs
    with the same statements for an agent have the same `number`.
    """

    content_usage: Mapping[str, Preference]
    content_signal: Mapping[str, Preference]
    ai_training: Directive | None = None
    number: int = field(default=0, compare=False)


class PathUsage(NamedTuple):
    """The Content-Usage for paths that match `pattern`; `*` matches every path."""

    pattern: str
    stated: Mapping[str, Preference]


class UsageTerms:
    """The usage lines that bind an agent, compiled for lookups by path."""

    __slots__ = ("_found", "_training", "_usages", "ai_training", "by_path", "signals")

    def __init__(self, lines: Iterable[Directive]) -> None:
        by_key: dict[Key, list[Directive]] = {}
        for line in lines:
            by_key.setdefault(line.key, []).append(line)
        self.signals: Mapping[str, Preference] = _read_signals(by_key.get(Key.CONTENT_SIGNAL, ()))
        stated = _read_usages(by_key.get(Key.CONTENT_USAGE, ()))
        # Longest path first; lines without a path apply to every path and come last (spec I1c).
        paths = sorted(stated, key=lambda path: (path == _ANYWHERE, -len(path)))
        self._usages = _matcher(paths)
        self.by_path: Sequence[PathUsage] = [PathUsage(path.decode("ascii"), stated[path]) for path in paths]
        # Longest path first; on ties Allow precedes Disallow (spec I5, D7).
        training = [
            (rfc_pattern(line.value), line)
            for key in (Key.ALLOW_AI_TRAINING, Key.DISALLOW_AI_TRAINING)
            for line in by_key.get(key, ())
            if line.value
        ]
        training.sort(key=lambda each: -len(each[0]))
        self.ai_training: Sequence[Directive] = [line for _, line in training]
        self._training = _matcher([pattern for pattern, _ in training])
        self._found: dict[int, Usage] = {}

    def at(self, path: str, *, allowed: bool) -> Usage | None:
        """The usage for a path and query; None if nothing is stated.

        Content-Usage and AI training apply only to pages that may be fetched, that is, if `allowed` (spec I1d, I10).
        """
        usage = self._usages.first(path) if allowed and self._usages else -1
        training = self._training.first(path) if allowed and self._training else -1
        stated = self.by_path[usage].stated if 0 <= usage < len(self.by_path) else {}
        line = self.ai_training[training] if 0 <= training < len(self.ai_training) else None
        if not (stated or self.signals or line):
            return None
        number = (usage + 1) * (len(self.ai_training) + 2) + training + 1
        found = self._found.get(number)
        if found is None:
            if len(self._found) >= USAGES_KEPT:
                self._found.clear()
            found = self._found[number] = Usage(stated, self.signals, line, number)
        return found


def _matcher(patterns: list[bytes]) -> Matcher | None:
    return Matcher(rfc_subject, Patterns(patterns, steps=STEPS)) if patterns else None


def _read_usages(lines: Iterable[Directive]) -> dict[bytes, dict[str, Preference]]:
    """Map normalised path patterns to preferences; for the same path and category, "n" wins (spec I1c)."""
    stated: dict[bytes, dict[str, Preference]] = {}
    room = STRUCTURED_LIMIT
    for line in lines:
        path, preferences = split_path(line.value)
        simple = read_simple_dictionary(preferences)
        if simple is None:
            room -= len(preferences)
            simple = read_dictionary(preferences) if room >= 0 else None
        of_path = stated.setdefault(rfc_pattern(path) or _ANYWHERE, {})
        for category, use in (simple or {}).items():
            if use in _USES:
                preference = Preference(use, line.line)
                of_path[category] = min(preference, of_path.get(category, preference))
    return stated


def split_path(value: bytes) -> tuple[bytes, bytes]:
    """Split `[path SP] preferences`; a value that begins with `/` has a path (spec I1a)."""
    if not value.startswith(b"/"):
        return b"", value
    path = re.split(b"[" + BLANKS + b"]", value, maxsplit=1)[0]
    return path, value[len(path) :].lstrip(BLANKS)


def read_simple_dictionary(text: bytes) -> dict[str, str] | None:
    """Read a dictionary of plain tokens; None for any other text, which may still be a valid dictionary."""
    found: dict[str, str] = {}
    at = 0
    while member := _MEMBER.match(text, at):
        found[member[1].decode("ascii")] = member[2].decode("ascii")
        at = member.end()
        if at == len(text):
            return None if text.endswith(b"\t") or text.startswith(b"\t") else found
        if text[at : at + 1] != b",":
            return None
        at += 1
    return None


def read_dictionary(text: bytes) -> dict[str, str] | None:
    """The members of a structured-field dictionary that are tokens (RFC 9651 3.2); None if it is invalid.

    Parameters are ignored, and the last of repeated keys counts (spec I1e).
    """
    import http_sf  # here, since few files need more than plain values

    try:
        parsed = http_sf.parse(text, tltype="dictionary")
    except ValueError:
        return None
    if not isinstance(parsed, dict):
        return None
    members = ((key, member[0]) for key, member in parsed.items() if isinstance(member, tuple))
    return {key: str(use) for key, use in members if isinstance(use, http_sf.Token)}


def signal_parts(value: bytes) -> list[tuple[str, str]]:
    """Split `purpose=value, ...` in lower case; a malformed part has an empty purpose or value (spec I2)."""
    parts = (part.partition("=") for part in readable(value).split(","))
    return [(purpose.strip().lower(), signal.strip().lower()) for purpose, _, signal in parts]


def _read_signals(lines: Iterable[Directive]) -> dict[str, Preference]:
    """Map purposes to values; for a repeated purpose `no` wins, then `yes`, then the first value (spec I2, I10)."""
    signals: dict[str, Preference] = {}
    for line in lines:
        for purpose, signal in signal_parts(line.value):
            if purpose and signal and (purpose not in signals or _rank(signal) < _rank(signals[purpose].value)):
                signals[purpose] = Preference(signal, line.line)
    return signals


def _rank(signal: str) -> int:
    return ("no", "yes", signal).index(signal)
