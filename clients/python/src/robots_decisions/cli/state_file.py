"""The state of an interrupted command: which lines are done, and how much of the output is theirs."""

import json
import os
from collections.abc import Mapping
from errno import ENOSPC
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from robots_decisions.cli.failures import Failed

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # Windows, where nothing stops two commands from sharing a file
    flock = None  # type: ignore[assignment]

FORM = "robots-decisions check 1"
"""The first member of a state file. A file without it is never written to."""


class StateFile:
    """Records of what is done, one JSON object per line; kept nowhere without a path.

    The first has the identity of the work. A line cut short by a power failure is dropped; what it recorded is done
    again, and the output is cut to the position before.
    """

    def __init__(self, path: str | None) -> None:
        self._path = None if path is None else Path(path)
        self._file: BinaryIO | None = None
        self._size = 0

    def __enter__(self) -> "StateFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def load(self, identity: Mapping[str, Any]) -> list[dict[str, Any]] | None:
        """The records of an earlier run, None if there was none. Raise Failed if it did other work."""
        if self._path is None:
            return None
        try:
            self._file = self._path.open("a+b", buffering=0)
            if flock is not None:
                flock(self._file, LOCK_EX | LOCK_NB)
            self._file.seek(0)
            content = self._file.read()
        except BlockingIOError:
            raise Failed(f"{self._path} is in use by another running command.") from None
        except OSError as error:
            raise Failed(f"Cannot use the state file {self._path}: {error.strerror}.") from None
        complete = content[: content.rfind(b"\n") + 1]
        found: list[dict[str, Any]] = [json.loads(line) for line in complete.splitlines()] if _is_state(content) else []
        head = found[0] if found else None
        if head is None and content and not _head(identity).startswith(content):
            raise Failed(f"{self._path} is not a state file of this command. Choose another file.")
        if head is not None and head != json.loads(_head(identity)):
            differ = sorted(name for name in identity if head.get(name) != identity[name])
            raise Failed(
                f"{self._path} is the state of other work: {', '.join(differ)} changed. Choose another state file."
            )
        self._size = len(complete) if head is not None else 0
        self._file.truncate(self._size)
        if head is not None:
            return found[1:]
        self._write(_head(identity))
        return None

    def add(self, record: Mapping[str, Any]) -> None:
        """Add a record. Raise Failed if it cannot be written."""
        if self._file is not None:
            self._write(json.dumps(record, separators=(",", ":")).encode() + b"\n")

    def _write(self, data: bytes) -> None:
        if self._file is None:
            return
        try:
            if self._file.write(data) < len(data):  # a disk that is full takes a part, without an error
                raise OSError(ENOSPC, os.strerror(ENOSPC))
            self._size += len(data)
        except OSError as error:
            self._file.truncate(self._size)  # or the next record would be behind a part of this one
            raise Failed(f"Cannot write the state file {self._path}: {error.strerror}.") from None


def _head(identity: Mapping[str, Any]) -> bytes:
    return json.dumps({"form": FORM, **identity}).encode() + b"\n"


def _is_state(content: bytes) -> bool:
    try:
        head = json.loads(content[: content.find(b"\n") + 1])
        return isinstance(head, dict) and head.get("form") == FORM
    except (ValueError, RecursionError):
        return False
