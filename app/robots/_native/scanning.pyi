from typing import final

@final
class Scanner:
    """Reads lines by a list of key names: (name in lower case, its code, whether it is a prefix), first match first."""

    def __init__(self, names: list[tuple[bytes, int, bool]], line_limit: int) -> None: ...
    def scan(self, body: bytes) -> Lines:
        """Read the lines: linear in the body, without the interpreter's lock."""

@final
class Lines:
    """The lines that say something: 12 bytes and a code for each, and the body they are in."""

    @property
    def body(self) -> bytes: ...
    @property
    def codes(self) -> bytes:
        """A byte for each line: which key it has, and how that is written."""

    @property
    def count(self) -> int:
        """How many lines the file has, with those that say nothing."""

    def __len__(self) -> int: ...
    def number(self, place: int) -> int:
        """The number of a line in its file, from 1."""

    def start(self, place: int) -> int:
        """Where its value begins in the body."""

    def value(self, place: int) -> bytes:
        """Its value without outer blanks and comment."""

    def values(self, places: list[int]) -> list[bytes]: ...
