"""A bundle on its way into a file: rows in the order of their arrival, then Parquet, sorted by origin."""

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from robots_decisions import BundleRow
from robots_decisions.cli.failures import Failed
from robots_decisions.cli.rows import Row
from robots_decisions.cli.sinks import going_on, made
from robots_decisions.cli.sorting import Sorter

GROUP_ROWS, GROUP_BYTES = 2000, 64 * 1024 * 1024
"""Rows of a row group, and bytes of their files, at most, about: a job that has few origins reads few groups."""

MADE_AT, FORM = "robots_core.made_at", "robots_core.bundle"
"""The keys of the metadata: the instant that the bundle was made for, and the version of its form, which is 1."""


class Spool:
    """Rows in a file of lines, each with the origin that was asked for, the row's own key, and the row.

    Of several rows for one origin the last one counts: an interrupted run may have left some that are asked for again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO | None = None
        self._position = 0

    def open(self, position: int | None) -> None:
        """Begin, or go on at the position of an earlier run. Raise Failed."""
        try:
            self._file = going_on(_unlinked(self.path), self.path, position) if position else made(self.path)
        except OSError as error:
            again = "" if position is None else " To write the bundle again, choose another state file."
            raise Failed(f"Cannot open {self.path}: {error.strerror}.{again}") from None
        self._position = position or 0

    def add(self, asked: str, row: BundleRow) -> None:
        """Add the row of an origin."""
        members = {
            "origin": row.origin,
            "profile": row.profile,
            "valid_from": row.valid_from.timestamp(),
            "valid_until": row.valid_until.timestamp(),
            "outcome": row.outcome,
            "version": row.version,
            "truncated": row.truncated,
            "body": None if row.body is None else b64encode(row.body).decode(),
        }
        self._write(asked, row.key, json.dumps(members))

    def add_missing(self, asked: str) -> None:
        """Note that an origin has no row."""
        self._write(asked, "", "")

    def write(self, _rows: Sequence[Row]) -> int:
        """Store what was added, whatever the rows that are counted; return the position."""
        if self._file is not None:
            self._file.flush()
        return self._position

    def close(self) -> int:
        """Store what was added; return the position."""
        if self._file is not None:
            self._file.close()
        return self._position

    def remove(self) -> None:
        """Remove the file."""
        self.close()
        self.path.unlink(missing_ok=True)

    def _write(self, *fields: str) -> None:
        line = "\t".join(fields).encode() + b"\n"
        if self._file is not None:
            self._file.write(line)
        self._position += len(line)


def _unlinked(path: Path) -> BinaryIO:
    """A file to read and write, which is not reached by a symbolic link. Raise OSError."""
    no_follow = getattr(os, "O_NOFOLLOW", 0)  # which Windows lacks
    return open(path, "r+b", opener=lambda name, flags: os.open(name, flags | no_follow))


Write: TypeAlias = Callable[[Iterator[dict[str, Any]], BinaryIO, datetime], None]
"""Writes rows, sorted by origin, into a file, with the instant that they are of."""


def write_bundle(spool: Path, output: Path, made_at: datetime, missing: Path | None, write: Write) -> None:
    """Write the rows of a spool as a bundle, and into `missing` the origins without one. Raise Failed."""
    unfinished = output.with_name(output.name + ".new")
    try:
        with spool.open("rb") as file, made(unfinished) as written, ExitStack() as stack:
            names = None if missing is None else stack.enter_context(missing.open("wb"))
            write(_rows(file, names), written, made_at)
        unfinished.replace(output)
    except OSError as error:
        raise Failed(f"Cannot write {error.filename or output}: {error.strerror or error}.") from None


def _rows(file: BinaryIO, missing: BinaryIO | None) -> Iterator[dict[str, Any]]:
    """The rows, sorted by origin and profile; each origin once. Their places in the file are sorted, not they."""
    by_key = Sorter()
    for asked, place, key in _last_of_each(_places(file), 3):
        if key:
            by_key.add(b"%b\t%b\n" % (key, place))
        elif missing is not None:
            missing.write(asked + b"\n")
    for _, place in _last_of_each(by_key.sorted(), 2):
        file.seek(int(place))
        row: dict[str, Any] = json.loads(file.readline().split(b"\t", 2)[2])
        for name in ("valid_from", "valid_until"):
            row[name] = datetime.fromtimestamp(row[name], timezone.utc)
        row["body"] = None if row["body"] is None else b64decode(row["body"])
        yield row


def _places(file: BinaryIO) -> Iterator[bytes]:
    """The origin asked for, the place and the key of each row of the file, sorted."""
    sorter, place = Sorter(), 0
    for line in file:
        asked, key, _ = line.split(b"\t", 2)
        sorter.add(b"%b\t%015d\t%b\n" % (asked, place, key))
        place += len(line)
    return sorter.sorted()


def _last_of_each(records: Iterator[bytes], fields: int) -> Iterator[list[bytes]]:
    """The fields of the last of those sorted records that have the same first one."""
    last: list[bytes] | None = None
    for record in records:
        found = record[:-1].split(b"\t", fields - 1)
        if last is not None and last[0] != found[0]:
            yield last
        last = found
    if last is not None:
        yield last


def write_parquet(rows: Iterator[dict[str, Any]], file: BinaryIO, made_at: datetime) -> None:
    """Write rows as a bundle of Parquet."""
    instant = pa.timestamp("us", "UTC")
    columns = {
        "origin": pa.string(),
        "profile": pa.string(),
        "valid_from": instant,
        "valid_until": instant,
        "outcome": pa.string(),
        "version": pa.string(),
        "truncated": pa.bool_(),
        "body": pa.binary(),
    }
    schema = pa.schema(list(columns.items()), {MADE_AT: made_at.isoformat(), FORM: "1"})
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for group in _groups(rows):
            writer.write_table(pa.Table.from_pylist(group, schema=schema), row_group_size=GROUP_ROWS)


def _groups(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    group: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        group.append(row)
        size += len(row["body"] or b"")
        if len(group) == GROUP_ROWS or size > GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group
