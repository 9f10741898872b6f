from collections.abc import Sequence

class GlobIndex:
    """Patterns of version 2.0, which match whole subjects, in order of precedence (spec F10).

    What is not ASCII is refused with ValueError, as pattern and as subject: neither `glob_pattern` nor `glob_subject`
    returns it, so it can only be a text that was not normalised.
    """

    def __init__(self, patterns: Sequence[str]) -> None: ...
    def first(self, subject: str) -> int:
        """The place of the first pattern that matches `subject`; the number of patterns if none does."""

    def every(self, subject: str) -> list[int]:
        """The places of all patterns that match, ascending; of those that say the same, each."""
