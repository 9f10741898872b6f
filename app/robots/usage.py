"""What a file says about the use of what is fetched: Content-Usage, Content-Signal and AI training (spec I).

None of it changes a verdict. Content-Usage and Content-Signal are drafts in motion: what is stated is reported in the
words it is stated in.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import http_sf

from app.robots._native.matching import Matcher, Patterns
from app.robots.lines import AI_TRAINING_KEYS, BLANKS, Directive, Key, readable
from app.robots.patterns import STEPS, rfc_pattern, rfc_subject

USAGE_KEYS: Final = AI_TRAINING_KEYS | {Key.CONTENT_USAGE, Key.CONTENT_SIGNAL}
"""The members that are about use."""

STRUCTURED_LIMIT: Final = 64 * 1024
"""Bytes of an agent's Content-Usage values that are read as full structured fields; more of them state nothing.

A value such as `train-ai=n, search=y` counts for nothing here: only parameters, lists and their like are that costly.
"""

_KEY: Final = rb"[a-z*][a-z0-9_.*-]*+"
_TOKEN: Final = rb"[A-Za-z*][A-Za-z0-9!#$%&'*+.^_`|~:/-]*+"
_MEMBER: Final = re.compile(rb"[ \t]*+(" + _KEY + rb")=(" + _TOKEN + rb")[ \t]*+")
_USES: Final = ("y", "n")
_ANYWHERE: Final = b"*"


@dataclass(frozen=True, slots=True)
class Usage:
    """What holds for one URL.

    `content_usage`: category -> "y" or "n" where one is stated; `content_signal`: purpose -> value, lower case;
    `ai_training`: the Allow- or DisallowAITraining line that decides, None where none matches (spec I5).
    """

    content_usage: Mapping[str, str]
    content_signal: Mapping[str, str]
    ai_training: Directive | None = None


class PathUsage(NamedTuple):
    """What Content-Usage states for the paths that `pattern` matches; `*` is every path."""

    pattern: str
    stated: Mapping[str, str]


class UsageTerms:
    """The usage lines that bind an agent, ready to be asked about a path."""

    __slots__ = ("_training", "_usages", "ai_training", "by_path", "signals")

    def __init__(self, lines: Iterable[Directive]) -> None:
        by_key: dict[Key, list[Directive]] = {}
        for line in lines:
            by_key.setdefault(line.key, []).append(line)
        self.signals: Mapping[str, str] = _read_signals(by_key.get(Key.CONTENT_SIGNAL, ()))
        stated = _read_usages(by_key.get(Key.CONTENT_USAGE, ()))
        # The longest path first; lines without a path come last, like those for every path (spec I1c).
        paths = sorted(stated, key=lambda path: (path == _ANYWHERE, -len(path)))
        self._usages = _matcher(paths)
        self.by_path: Sequence[PathUsage] = [PathUsage(path.decode("ascii"), stated[path]) for path in paths]
        # The longest path first, of those as long an Allow (spec I5, D7).
        training = [
            (rfc_pattern(line.value), line)
            for key in (Key.ALLOW_AI_TRAINING, Key.DISALLOW_AI_TRAINING)
            for line in by_key.get(key, ())
            if line.value
        ]
        training.sort(key=lambda each: -len(each[0]))
        self.ai_training: Sequence[Directive] = [line for _, line in training]
        self._training = _matcher([pattern for pattern, _ in training])

    def at(self, path: str, *, allowed: bool) -> Usage | None:
        """What holds for a URL's path and query, None where nothing is stated.

        Content-Usage and AI training are about what may be fetched: neither states anything where `allowed` is False
        (spec I1d, I10).
        """
        usage = self._usages.first(path) if allowed and self._usages else -1
        training = self._training.first(path) if allowed and self._training else -1
        stated = self.by_path[usage].stated if 0 <= usage < len(self.by_path) else {}
        line = self.ai_training[training] if 0 <= training < len(self.ai_training) else None
        return Usage(stated, self.signals, line) if stated or self.signals or line else None


def _matcher(patterns: list[bytes]) -> Matcher | None:
    return Matcher(rfc_subject, Patterns(patterns, steps=STEPS)) if patterns else None


def _read_usages(lines: Iterable[Directive]) -> dict[bytes, dict[str, str]]:
    """Normalised path patterns -> what is stated; of lines with the same path, the one that forbids wins (spec I1c)."""
    stated: dict[bytes, dict[str, str]] = {}
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
                of_path[category] = min(use, of_path.get(category, use))
    return stated


def split_path(value: bytes) -> tuple[bytes, bytes]:
    """`[path SP] preferences`: there is a path where the value begins with `/` (spec I1a)."""
    if not value.startswith(b"/"):
        return b"", value
    path = re.split(b"[" + BLANKS + b"]", value, maxsplit=1)[0]
    return path, value[len(path) :].lstrip(BLANKS)


def read_simple_dictionary(text: bytes) -> dict[str, str] | None:
    """A dictionary of nothing but tokens; None where the text is not one, but may well be another dictionary."""
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
    """The members that are tokens, of a structured-field dictionary (RFC 9651 3.2); None where it cannot be parsed.

    Parameters are ignored, and of a repeated key the last one counts (spec I1e).
    """
    try:
        parsed = http_sf.parse(text, tltype="dictionary")
    except ValueError:
        return None
    if not isinstance(parsed, dict):
        return None
    members = ((key, member[0]) for key, member in parsed.items() if isinstance(member, tuple))
    return {key: str(use) for key, use in members if isinstance(use, http_sf.Token)}


def signal_parts(value: bytes) -> list[tuple[str, str]]:
    """`purpose=value, ...` in lower case; what is not written so has an empty purpose or value (spec I2)."""
    parts = (part.partition("=") for part in readable(value).split(","))
    return [(purpose.strip().lower(), said.strip().lower()) for purpose, _, said in parts]


def _read_signals(lines: Iterable[Directive]) -> dict[str, str]:
    """Purpose -> value; of a repeated purpose `no` wins, otherwise the first (spec I2)."""
    signals: dict[str, str] = {}
    for line in lines:
        for purpose, said in signal_parts(line.value):
            if purpose and said:
                signals[purpose] = "no" if said == "no" else signals.get(purpose, said)
    return signals
