"""The state of an interrupted command: a file with one finished origin per line."""

import fcntl
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from app.cli.exit_codes import Failed

HEADER = b"# robots-decisions: origins that are warm\n"
"""The first line of a state file. A file without it is never written to."""


class StateFile:
    """The set of finished origins; kept in memory only without a path.

    A line cut short by a full disk or a power failure is dropped, so at worst an origin is asked about twice. The file
    is locked: two commands cannot share it.
    """

    def __init__(self, path: str | None) -> None:
        self._path = None if path is None else Path(path)
        self._file: BinaryIO | None = None
        self._origins: set[str] = set()

    def __contains__(self, origin: str) -> bool:
        return origin in self._origins

    def __enter__(self) -> Self:
        if self._path is not None:
            try:
                self._file = self._path.open("a+b", buffering=0)
                self._load(self._file)
            except OSError as error:
                raise Failed(f"Cannot use the state file {self._path}: {error.strerror}.") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, origin: str) -> None:
        """Add a finished origin. Raise Failed if it cannot be written."""
        self._origins.add(origin)
        if self._file is not None:
            try:
                self._file.write(origin.encode() + b"\n")
            except OSError as error:
                raise Failed(f"Cannot write the state file {self._path}: {error.strerror}.") from None

    def _load(self, file: BinaryIO) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Failed(f"{self._path} is in use by another running command.") from None
        file.seek(0)
        content = file.read()
        if not content.startswith(HEADER):
            if not HEADER.startswith(content):
                raise Failed(f"{self._path} is not a state file of this command. Choose another file.")
            file.truncate(0)
            file.write(HEADER)
            return
        complete = content[: content.rindex(b"\n") + 1]
        file.truncate(len(complete))
        self._origins = set(complete[len(HEADER) :].decode("utf-8", "replace").splitlines())
