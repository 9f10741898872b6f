from typing import final

@final
class Scanner:
    """Scans lines for keys: (name in lower case, code, whether it is a prefix). The first matching name counts."""

    def __init__(self, names: list[tuple[bytes, int, bool]], line_limit: int) -> None: ...
    def scan(self, body: bytes) -> Lines:
        """Scan the lines: linear in the size of the body, without the GIL."""

@final
class Lines:
    """The lines with a key, and empty ones between them: 12 bytes and a code for each, and the body."""

    @property
    def body(self) -> bytes: ...
    @property
    def codes(self) -> bytes:
        """One byte for each line: its key and form."""

    @property
    def count(self) -> int:
        """The number of all lines of the file, including those without a key."""

    def __len__(self) -> int: ...
    def number(self, position: int) -> int:
        """The line number in the file, from 1."""

    def start(self, position: int) -> int:
        """The offset of the value in the body."""

    def value(self, position: int) -> bytes:
        """The value without outer blanks and comment."""

    def values(self, positions: list[int]) -> list[bytes]: ...
