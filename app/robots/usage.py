"""What a file says about the use of what is fetched: Content-Usage and Content-Signal (spec I); no verdict.

Both are drafts in motion: what is stated is reported, in the words it is stated in.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.robots.compiled.patterns import PatternIndex
from app.robots.compiled.uses import by_path, by_purpose
from app.robots.paths import rfc_pattern, rfc_subject


@dataclass(frozen=True, slots=True)
class Usage:
    """`content_usage`: category -> "y" or "n" where one is stated; `content_signal`: purpose -> value, lower case."""

    content_usage: Mapping[str, str]
    content_signal: Mapping[str, str]


class UsageTerms:
    """The usage lines of the groups that speak for an agent, ready to be asked about a path."""

    def __init__(self, usages: Iterable[str], signals: Iterable[str]) -> None:
        stated = by_path(usages, rfc_pattern)
        # The longest path first, the one of lines without a path last: "*" is as short as a pattern can be.
        anywhere = [stated.pop("*")] if "*" in stated else []
        self._paths = sorted(stated, key=len, reverse=True)
        self._stated = [*map(stated.__getitem__, self._paths), *anywhere]
        self._paths += ["*"] * len(anywhere)
        self._index = PatternIndex(self._paths)
        self._signals = by_purpose(signals)

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
