"""Lines of files and of standard input, which gzip may have compressed."""

import gzip
import sys
import zlib
from collections.abc import Iterator, Sequence
from io import BufferedIOBase, BufferedReader
from pathlib import Path

from robots_decisions.cli.failures import Failed

_GZIP = b"\x1f\x8b"
_ERRORS = (OSError, EOFError, zlib.error)  # the last two are those of damaged gzip files


class Sources:
    """Files, `-` for standard input, or the lines themselves, such as a URL. Lines are numbered through."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._begins: list[int] = []

    def lines(self, limit: int) -> Iterator[tuple[int, bytes]]:
        """The lines and their numbers; of one that is longer than `limit` bytes, the first `limit`. Raise Failed."""
        number = 0
        for name in self._names:
            self._begins.append(number)
            if name.startswith(("http://", "https://")):
                for line in name.encode("utf-8", "surrogateescape").split(b"\n"):
                    number += 1
                    yield number, line
                continue
            try:
                with _open(name) as source:
                    for written in _bounded(source, limit):
                        number += 1
                        yield number, written
            except _ERRORS as error:
                reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
                read = number - self._begins[-1]
                until = f" It was read up to line {read}." if read else ""
                raise Failed(f"Cannot read {name}: {reason.rstrip('.')}.{until}") from None

    @property
    def are_several(self) -> bool:
        """Whether a line needs the name of its file."""
        return len(self._names) > 1

    def place(self, number: int) -> tuple[str, int]:
        """The file of a line, with escapes for bytes that are not UTF-8, and its number there."""
        at = max(i for i, begins in enumerate(self._begins) if begins < number)
        return self._names[at].encode("utf-8", "backslashreplace").decode(), number - self._begins[at]


def _open(name: str) -> BufferedIOBase:
    raw = BufferedReader(open(sys.stdin.fileno(), "rb", 0, closefd=False)) if name == "-" else Path(name).open("rb")  # noqa: SIM115
    return gzip.GzipFile(fileobj=raw) if raw.peek(len(_GZIP)).startswith(_GZIP) else raw


def _bounded(source: BufferedIOBase, limit: int) -> Iterator[bytes]:
    while written := source.readline(limit):
        yield written
        while written and not written.endswith(b"\n"):
            written = source.readline(limit)
