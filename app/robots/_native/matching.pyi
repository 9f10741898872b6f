from typing import final

@final
class Spelling:
    """Percent-encoding normalised: `escaped` bytes become escapes, escapes of `decoded` bytes become those bytes.

    All other escapes get upper-case digits (RFC 3986 6.2.2). `kept_last`: a byte that stays as it is where it is the
    last. Linear in the length of a text.
    """

    def __init__(self, escaped: bytes, decoded: bytes, *, kept_last: bytes = b"") -> None: ...
    def __call__(self, text: bytes) -> bytes: ...
    def each(self, texts: list[bytes]) -> list[bytes]:
        """All of them; one that needs no change is the same object."""

@final
class Patterns:
    """Normalised patterns in order of precedence, which stay as they are.

    Patterns of version 1 have `*` and a final `$` (spec D). `literal`: both are characters, and each pattern is a plain
    prefix (spec E6). `globs`: those of version 2.0, which match whole paths (spec F10, F11). `steps` bounds what a
    search may take beside what is linear in path and patterns.
    """

    def __init__(self, patterns: list[bytes], *, steps: int, literal: bool = False, globs: bool = False) -> None: ...
    def __len__(self) -> int: ...

@final
class Matcher:
    """Patterns, and how a path is spelt before they are asked.

    With `query`, what follows the first `?` of a path is spelt so in a second form of it, which `query_patterns` are
    asked about: the same patterns in their own second form (spec X5).
    """

    def __init__(
        self,
        subject: Spelling,
        patterns: Patterns,
        query: Spelling | None = None,
        query_patterns: Patterns | None = None,
    ) -> None: ...
    @property
    def patterns(self) -> Patterns: ...
    def __len__(self) -> int: ...
    def first(self, path: str) -> int:
        """The number of the first pattern that matches, that of all of them for none, -1 where the steps ran out."""

    def every(self, path: str) -> list[int]:
        """The numbers of all patterns that match, ascending; not all of them where the steps ran out."""
