from typing import final

@final
class Spelling:
    """Normalises percent-encoding: encodes the bytes in `escaped`, and decodes escapes of the bytes in `decoded`.

    All other escapes get upper-case digits (RFC 3986 6.2.2). `kept_last`: a byte that is kept if it is the last one.
    Linear in the length of a text.
    """

    def __init__(self, escaped: bytes, decoded: bytes, *, kept_last: bytes = b"") -> None: ...
    def __call__(self, text: bytes) -> bytes: ...
    def each(self, texts: list[bytes]) -> list[bytes]:
        """Normalise all texts; one that is already normalised is returned as the same object."""

@final
class Patterns:
    """Normalised patterns in order of precedence; immutable.

    Patterns of version 1 may have `*` and a final `$` (spec D). `literal`: both are literal, and each pattern is a
    plain prefix (spec E6). `globs`: globs of version 2.0, which match whole paths (spec F10, F11). `steps` limits the
    work of a search in addition to what is linear in the path and the patterns.
    """

    def __init__(self, patterns: list[bytes], *, steps: int, literal: bool = False, globs: bool = False) -> None: ...
    def __len__(self) -> int: ...

@final
class Matcher:
    """Matches paths, normalised by `subject`, against patterns.

    With `query`, the path is also matched in a second form, with the text after the first `?` normalised by `query`,
    against `query_patterns`: the same patterns in their second form (spec X5).
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
        """The number of the first pattern that matches; `len(self)` if none does, -1 if the steps ran out."""

    def every(self, path: str) -> list[int]:
        """The numbers of all patterns that match, ascending; incomplete if the steps ran out."""
