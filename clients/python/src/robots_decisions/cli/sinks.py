"""Where rows go: JSON lines, CSV, or Parquet."""

import csv
import io
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from robots_decisions.cli.failures import Failed
from robots_decisions.cli.rows import Row

FORMATS = ("jsonl", "csv", "parquet")

PART_ROWS = 50_000
"""Rows of a file of Parquet, about."""


_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a formula begins with."""


class Sink(Protocol):
    """Takes rows. OSError is raised as it comes."""

    def write(self, rows: Sequence[Row]) -> int | None:
        """Write rows. Return the position after all rows of all calls if they are stored, None if some are not yet."""

    def close(self) -> int | None:
        """Store what is not stored yet; return the position."""


def open_sink(form: str, output: str | None, columns: Mapping[str, type], position: int | None) -> Sink:
    """The sink for a format, a path or standard output, at the position where an earlier run ended. Raise Failed."""
    if form == "parquet":
        return _Parquet(output, columns, position)
    encode = _json_lines if form == "jsonl" else _csv_lines
    head = _csv_lines([{name: name for name in columns}]) if form == "csv" and not position else b""
    try:
        return _Lines(output, encode, head, position)
    except OSError as error:
        raise Failed(f"Cannot write {output}: {error.strerror}.") from None


def _json_lines(rows: Sequence[Row]) -> bytes:
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows).encode()


def _csv_lines(rows: Sequence[Row]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(_in_spreadsheet, row.values()) for row in rows)
    return text.getvalue().encode("utf-8", "backslashreplace")


def _in_spreadsheet(value: Any) -> Any:
    """The value as text that no spreadsheet takes for a formula: lists and rules of sites may have any text."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


class _Lines:
    """Rows as lines of text, in a file or on standard output."""

    def __init__(self, output: str | None, encode: Any, head: bytes, position: int | None) -> None:
        self._encode = encode
        self._position = position or 0
        self._file: BinaryIO = sys.stdout.buffer if output is None else opened(Path(output), self._position)
        self._write(head)

    def write(self, rows: Sequence[Row]) -> int:
        self._write(self._encode(rows))
        return self._position

    def close(self) -> int:
        if self._file is not sys.stdout.buffer:
            self._file.close()
        return self._position

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self._file.flush()
        self._position += len(data)


def made(path: Path) -> BinaryIO:
    """A new file in the place of what has this name: a symbolic link there is removed, not followed. Raise OSError.

    For files whose name the caller did not choose, since others may write to the directory, too.
    """
    path.unlink(missing_ok=True)
    return path.open("xb")


def opened(path: Path, position: int) -> BinaryIO:
    """A file to be written from this position on; what is behind it is cut off. Raise Failed, and OSError."""
    return going_on(path.open("r+b"), path, position) if position else path.open("wb")


def going_on(file: BinaryIO, path: Path, position: int) -> BinaryIO:
    """The file that is open for reading and writing, from this position on. Raise Failed, and OSError."""
    size = file.seek(0, os.SEEK_END)
    if size < position:
        file.close()
        raise Failed(f"{path} has {size} bytes, but the earlier run had written {position}. Choose another state file.")
    file.truncate(position)
    file.seek(position)
    return file


_PART = re.compile(r"part-([0-9]{6,})\.(?:parquet|unfinished)")


def _part(number: int) -> str:
    return f"part-{number:06}.parquet"


class _Parquet:
    """Rows in a directory of files, each complete: one Parquet file cannot be continued."""

    def __init__(self, output: str | None, columns: Mapping[str, type], position: int | None) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise Failed("--format parquet needs pyarrow: install robots-decisions[cli,parquet].") from None
        if output is None:
            raise Failed("--format parquet needs --output: a directory.")
        types = {int: pa.int64(), float: pa.float64(), str: pa.string()}
        self._schema = pa.schema([(name, types[kind]) for name, kind in columns.items()])
        self._table, self._store = pa.Table.from_pylist, pq.write_table
        self._directory = Path(output)
        self._parts = position or 0
        self._rows: list[Row] = []
        try:
            self._directory.mkdir(exist_ok=True)
            found = {path.name for path in self._directory.iterdir()}
            if found and position is None:
                raise Failed(f"{output} is not empty. Choose another directory for --output.")
            gone = next((name for name in map(_part, range(self._parts)) if name not in found), None)
            if gone is not None:
                raise Failed(f"{output} has no {gone}, which the earlier run had written. Choose another state file.")
            for name in found:
                part = _PART.fullmatch(name)
                if part is not None and int(part[1]) >= self._parts:
                    self._directory.joinpath(name).unlink()
        except OSError as error:
            raise Failed(f"Cannot write {output}: {error.strerror}.") from None

    def write(self, rows: Sequence[Row]) -> int | None:
        self._rows += rows
        return self._flush() if len(self._rows) >= PART_ROWS else None

    def close(self) -> int:
        return self._flush() if self._rows else self._parts

    def _flush(self) -> int:
        path = self._directory / _part(self._parts)
        unfinished = path.with_suffix(".unfinished")
        with made(unfinished) as file:
            self._store(self._table(self._rows, schema=self._schema), file, compression="zstd")
        unfinished.rename(path)
        self._rows = []
        self._parts += 1
        return self._parts
