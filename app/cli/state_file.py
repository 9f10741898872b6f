"""Which origins are done, in a file that survives an interrupt at any moment."""

import fcntl
import os
import threading
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from app.cli.exit_codes import Failed

HEADER = b"# robots-decisions: origins that are warm\n"
"""The first line of such a file: no other file is ever written to."""

SYNC_EVERY = 200
"""After so many origins the disk is waited for."""


class Done:
    """The set of origins that are done; `add` may be called by several threads. Without a path, nothing is kept.

    The file grows by a line per origin. A line that was cut short, by a full disk or the power, is no origin, and is
    overwritten: at worst an origin is done twice. One process at a time may have it.
    """

    def __init__(self, path: str | None) -> None:
        self._path = None if path is None else Path(path)
        self._file: BinaryIO | None = None
        self._keys: set[bytes] = set()
        self._lock = threading.Lock()
        self._unsynced = 0

    def __contains__(self, key: str) -> bool:
        return key.encode() in self._keys

    def __enter__(self) -> "Done":
        if self._path is not None:
            try:
                self._file = self._path.open("a+b")
                self._read(self._file)
            except OSError as error:
                raise Failed(f"{self._path} cannot be used for the state: {error.strerror}.") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            if self._file is not None:
                self._file.flush()
                os.fsync(self._file.fileno())
                self._file.close()
                self._file = None

    def add(self, key: str) -> None:
        """This origin is done; raises OSError where that cannot be written."""
        with self._lock:
            if self._file is None:
                return
            self._file.write(key.encode() + b"\n")
            self._file.flush()
            self._unsynced += 1
            if self._unsynced >= SYNC_EVERY:
                os.fsync(self._file.fileno())
                self._unsynced = 0

    def _read(self, file: BinaryIO) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Failed(f"{self._path} is the state of another command that still runs.") from None
        file.seek(0)
        first = file.readline(len(HEADER))
        if first and not HEADER.startswith(first):
            raise Failed(f"{self._path} is no state of this command, and is left as it is.")
        if first != HEADER:
            file.truncate(0)
            file.write(HEADER)
            file.flush()
            return
        whole = len(HEADER)
        for line in file:
            if not line.endswith(b"\n"):
                file.truncate(whole)
                break
            self._keys.add(line.rstrip(b"\n"))
            whole += len(line)
