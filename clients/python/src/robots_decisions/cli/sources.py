"""Lines of files, here or at a URL, and of standard input, which gzip may have compressed; and the URLs of tables."""

import gzip
import sys
import zlib
from collections.abc import Iterator, Sequence
from io import SEEK_SET, BufferedIOBase, BufferedReader, RawIOBase
from pathlib import Path
from typing import Any, cast

from robots_decisions.cli.columns import PARQUET, TABLE_LINE_LIMIT, Value, column_of, parquet_column
from robots_decisions.cli.failures import Failed
from robots_decisions.cli.options import printable
from robots_decisions.question import without_credentials

_GZIP = b"\x1f\x8b"
_ERRORS = (OSError, EOFError, ValueError, zlib.error)  # those but the first are of damaged files


class Sources:
    """Files, `-` for standard input, URLs to read, or the lines themselves, such as a URL. Lines are numbered through.

    With a `column`, and of Parquet files, the lines are those of a table, of which each has a URL.
    """

    def __init__(self, names: Sequence[str], column: str | None = None, *, tables: bool = True) -> None:
        """`tables`: whether a Parquet file may be read."""
        self._names = names
        self._column = column
        self._tables = tables
        self._begins: list[int] = []

    def lines(self, limit: int) -> Iterator[tuple[int, Value]]:
        """The lines and their numbers; of one that is longer than `limit` bytes, the first `limit`. Raise Failed."""
        number = 0
        for name in self._names:
            self._begins.append(number)
            if name.startswith(("http://", "https://")):
                for line in name.encode("utf-8", "surrogateescape").split(b"\n"):
                    number += 1
                    yield number, line
                continue
            url = _url_to_read(name)
            shown = name if url is None else without_credentials(url)
            try:
                with _open(name) if url is None else _opened(url) as source:
                    for written in self._values(source, limit):
                        number += 1
                        yield number, written
            except Failed as error:
                raise Failed(f"{shown}: {error}") from None
            except _ERRORS as error:
                reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
                read = number - self._begins[-1]
                until = f" It was read up to line {read}." if read else ""
                raise Failed(f"Cannot read {shown}: {reason.rstrip('.')}.{until}") from None

    def _values(self, source: BufferedReader, limit: int) -> Iterator[Value]:
        start = source.peek(len(PARQUET))
        if start.startswith(PARQUET):
            if not self._tables:
                raise Failed("A Parquet file is no log.")
            if not source.seekable():
                raise Failed("A Parquet file cannot be read from a pipe. Name the file.")
            return parquet_column(source, self._column)
        text = cast("BufferedIOBase", gzip.GzipFile(fileobj=source)) if start.startswith(_GZIP) else source
        if self._column is not None:
            return column_of(_bounded(text, TABLE_LINE_LIMIT), self._column)
        return _bounded(text, limit)

    @property
    def are_several(self) -> bool:
        """Whether a line needs the name of its file."""
        return len(self._names) > 1

    def place(self, number: int) -> tuple[str, int]:
        """The file of a line, with escapes for bytes that are not UTF-8, and its number there."""
        at = max(i for i, begins in enumerate(self._begins) if begins < number)
        return self._names[at].encode("utf-8", "backslashreplace").decode(), number - self._begins[at]


def _url_to_read(name: str) -> str | None:
    """The URL behind an `@`, or of another scheme than http, such as s3; None for other names."""
    if name.startswith(("@http://", "@https://")):
        return name[1:]
    scheme, separator, _ = name.partition("://")
    return name if separator and scheme.isascii() and scheme.replace("+", "").isalnum() else None


def _open(name: str) -> BufferedReader:
    return BufferedReader(open(sys.stdin.fileno(), "rb", 0, closefd=False)) if name == "-" else Path(name).open("rb")


def _opened(url: str) -> BufferedReader:
    """What is at a URL. Raise Failed if it cannot be read."""
    try:
        import fsspec
    except ImportError:
        raise Failed("A list at a URL is read with fsspec: install robots-decisions[cli,remote].") from None
    try:
        return BufferedReader(_Remote(fsspec.open(url, "rb").open(), url))
    except Exception as error:  # noqa: BLE001 - each file system has errors of its own, such as aiohttp's or botocore's
        raise _unreadable(error, url) from None


def _bounded(source: BufferedIOBase, limit: int) -> Iterator[bytes]:
    while written := source.readline(limit):
        yield written
        while written and not written.endswith(b"\n"):
            written = source.readline(limit)


class _Remote(RawIOBase):
    """A file at a URL. Its errors are Failed."""

    def __init__(self, file: Any, url: str) -> None:
        self._file = file
        self._url = url

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._file.seekable())

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._file.read(len(buffer))
        except Exception as error:  # noqa: BLE001 - see above
            raise _unreadable(error, self._url) from None
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def _unreadable(error: Exception, url: str) -> Failed:
    reason = str(error).replace(url, without_credentials(url))
    return Failed(f"It cannot be read ({type(error).__name__}: {printable(reason[:300])}).")
