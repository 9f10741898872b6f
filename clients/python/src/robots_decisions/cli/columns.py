"""The URLs of a table: CSV, tab-separated values, Parquet, JSON lines, or a CDX index."""

import csv
import json
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from robots_decisions.cli.entries import UNREADABLE, NotAsked
from robots_decisions.cli.failures import Failed

TABLE_LINE_LIMIT = 1024 * 1024
"""Bytes of the longest line of a table."""

PARQUET = b"PAR1"
"""What a Parquet file begins with."""

URL_COLUMN = "url"
"""The column of a Parquet file that is read unless another one is named."""

_CDX_URL = b"a"  # the letter of the original URL
_CDX_TIME = 14  # digits
_PARQUET_ROWS = 8192

Value: TypeAlias = "bytes | NotAsked"
"""A URL, which is empty if the line or row has none by right, such as a head; or why a line cannot be read."""


def column_of(lines: Iterator[bytes], column: str) -> Iterator[Value]:
    """The value of each line. The first line says which form they have. Raise Failed if it has no such column."""
    read: Callable[[bytes], Value] | None = None
    for line in lines:
        text = line.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n")
        if len(line) >= TABLE_LINE_LIMIT:
            yield NotAsked(UNREADABLE, f"The line is longer than {TABLE_LINE_LIMIT} bytes.")
        elif not text.strip():
            yield b""
        elif read is None:
            read, is_head = _reader(text, column)
            yield b"" if is_head else read(text)
        else:
            yield read(text)


def parquet_column(file: Any, column: str | None) -> Iterator[Value]:
    """The value of each row of a Parquet file, empty for null. Raise Failed; ValueError if the file is damaged."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise Failed("A Parquet file is read with pyarrow: install robots-decisions[cli,parquet].") from None
    opened = pq.ParquetFile(file)
    name = column or URL_COLUMN
    if name not in opened.schema_arrow.names:
        has = ", ".join(map(repr, opened.schema_arrow.names[:20]))
        raise Failed(f"The Parquet file has no column {name!r}, but {has}. Name one with --column.")
    kind = opened.schema_arrow.field(name).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)):
        raise Failed(f"The column {name!r} of the Parquet file is of {kind}, not text.")
    for batch in opened.iter_batches(_PARQUET_ROWS, columns=[name]):
        for value in batch.column(0).to_pylist():
            yield b"" if value is None else value.encode("utf-8", "surrogatepass")


def _reader(first: bytes, column: str) -> tuple[Callable[[bytes], Value], bool]:
    """How lines are read, by the first of them, and whether that is a head. Raise Failed."""
    if first.lstrip().startswith(b"{"):
        return lambda text: _member(text, column), False
    if first.split()[0] == b"CDX":
        letters = first.split()[1:]
        if _CDX_URL not in letters:
            raise Failed("The CDX file has no field 'a', the original URL.")
        at = letters.index(_CDX_URL)
        return lambda text: _field(text.split(b" "), at), True
    if _cdx_fields(first):
        return lambda text: _of_cdx(text, column), False
    delimiter = "\t" if b"\t" in first else ","
    names = _fields(first, delimiter)
    if column.encode() not in names:
        has = ", ".join(repr(name.decode("utf-8", "replace")[:100]) for name in names[:20])
        raise Failed(f"The first line has no column {column!r}, but {has}.")
    at = names.index(column.encode())
    return lambda text: _field(_fields(text, delimiter), at), True


def _cdx_fields(text: bytes) -> bytes:
    """What follows the key and the time of a line of a CDX index; empty if the line is none."""
    key, _, rest = text.partition(b" ")
    time, _, fields = rest.partition(b" ")
    return fields if key and time.isdigit() and len(time) <= _CDX_TIME else b""


def _of_cdx(text: bytes, column: str) -> Value:
    fields = _cdx_fields(text)
    if not fields:
        return NotAsked(UNREADABLE, "The line is none of a CDX index.")
    return _member(fields, column) if fields.startswith(b"{") else fields.split(b" ", 1)[0]


def _member(text: bytes, column: str) -> Value:
    try:
        value = json.loads(text)
        found = value.get(column) if isinstance(value, dict) else None
    except (ValueError, RecursionError):
        return NotAsked(UNREADABLE, "The line is not JSON.")
    if not isinstance(found, str):
        return NotAsked(UNREADABLE, f"The line has no text {column!r}.")
    return found.encode("utf-8", "replace")


def _field(fields: list[bytes], at: int) -> Value:
    return fields[at] if at < len(fields) else NotAsked(UNREADABLE, f"The line has {len(fields)} fields.")


def _fields(text: bytes, delimiter: str) -> list[bytes]:
    """The fields of a line, in which no field has a line break."""
    try:
        [fields] = csv.reader([text.decode("utf-8", "surrogateescape")], delimiter=delimiter)
    except (ValueError, csv.Error):
        return []
    return [field.encode("utf-8", "surrogateescape") for field in fields]
