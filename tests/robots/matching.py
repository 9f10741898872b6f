"""Match patterns in the normal form: paths whose escapes have upper-case digits are not changed."""

from collections.abc import Sequence

from robots_core.robots._native.matching import Matcher, Patterns, Spelling

AS_WRITTEN = Spelling(b"", b"")
ENOUGH = 1 << 40


def matching_numbers(patterns: Patterns, path: str) -> list[int]:
    """The numbers of all patterns that match; checks that `first` returns the first of them."""
    matcher = Matcher(AS_WRITTEN, patterns)
    found = matcher.every(path)
    assert matcher.first(path) == (found[0] if found else len(patterns))
    return found


def path_patterns(patterns: Sequence[str], *, literal: bool = False) -> Patterns:
    """Patterns of version 1."""
    return Patterns([it.encode("utf-8", "surrogatepass") for it in patterns], steps=ENOUGH, literal=literal)


def globs(patterns: Sequence[str]) -> Patterns:
    """Patterns of version 2.0."""
    return Patterns([pattern.encode() for pattern in patterns], steps=ENOUGH, globs=True)
