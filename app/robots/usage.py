"""What a file says about the use of what is fetched: Content-Usage and Content-Signal (spec I); no verdict.

Both are drafts in motion: what is stated is reported, in the words it is stated in.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import http_sf

from app.robots.compiled.patterns import PatternIndex
from app.robots.paths import rfc_pattern, rfc_subject
from app.robots.syntax import BLANKS, readable

_USES = ("y", "n")


@dataclass(frozen=True, slots=True)
class Usage:
    """`content_usage`: category -> "y" or "n" where one is stated; `content_signal`: purpose -> value, lower case."""

    content_usage: Mapping[str, str]
    content_signal: Mapping[str, str]


class UsageTerms:
    """The usage lines of the groups that speak for an agent, ready to be asked about a path."""

    def __init__(self, usages: Iterable[str], signals: Iterable[str]) -> None:
        by_path: dict[str, dict[str, str]] = {}
        for value in usages:
            path, preferences = _split_path(value)
            stated = by_path.setdefault(rfc_pattern(path) if path else "*", {})
            for category, use in _preferences(preferences).items():
                # Of lines with the same path all count, and the one that forbids wins (spec I1c).
                stated[category] = min(use, stated.get(category, use))
        # The longest path first, the one of lines without a path last: "*" is as short as a pattern can be.
        self._paths = sorted(by_path, key=lambda pattern: (pattern == "*", -len(pattern)))
        self._stated = [by_path[path] for path in self._paths]
        self._index = PatternIndex(self._paths)
        self._signals = _signals(signals)

    @property
    def by_path(self) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Patterns, "*" for lines without a path, and what is stated for each; the first that fits counts."""
        return list(zip(self._paths, self._stated, strict=True))

    @property
    def signals(self) -> Mapping[str, str]:
        """What Content-Signal states, by purpose."""
        return self._signals

    def at(self, path: str, *, allowed: bool) -> Usage | None:
        """What holds for a URL's path and query, None where nothing is stated.

        Content-Usage speaks only of what may be fetched: it is empty where `allowed` is False (spec I1d).
        """
        stated: Mapping[str, str] = {}
        if allowed and self._paths:
            place = self._index.first(rfc_subject(path))
            stated = self._stated[place] if place < len(self._stated) else {}
        return Usage(stated, self._signals) if stated or self._signals else None


def _split_path(value: str) -> tuple[str, str]:
    """`[path SP] preferences`: there is a path where the value begins with `/` (spec I1a)."""
    if not value.startswith("/"):
        return "", value
    end = next((at for at, character in enumerate(value) if character in BLANKS), len(value))
    return value[:end], value[end:]


def _preferences(text: str) -> Mapping[str, str]:
    """A structured-field dictionary (RFC 9651 3.2); what cannot be parsed states nothing (spec I1e)."""
    try:
        parsed = http_sf.parse(text.encode("latin-1"), tltype="dictionary")
    except ValueError:
        return {}
    if not isinstance(parsed, dict):
        return {}
    members = ((key, member[0]) for key, member in parsed.items() if isinstance(member, tuple))
    return {key: str(use) for key, use in members if isinstance(use, http_sf.Token) and str(use) in _USES}


def _signals(values: Iterable[str]) -> Mapping[str, str]:
    """`purpose=value, ...`; of a repeated purpose `no` wins, otherwise the first (spec I2)."""
    signals: dict[str, str] = {}
    for value in values:
        for part in readable(value).split(","):
            purpose, equals, said = part.partition("=")
            purpose, said = purpose.strip().lower(), said.strip().lower()
            if purpose and equals and said and signals.setdefault(purpose, said) != said and said == "no":
                signals[purpose] = said
    return signals
