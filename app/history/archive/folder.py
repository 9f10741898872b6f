"""The files of an archive in a folder.

`objects/<first two digits>/<SHA-256>` has the bytes of a robots.txt. `spans/<day>/<process>.ndjson` is the log of
spans: each process appends to a file of its own. `index/` says where in the log an origin has its spans; see
app.history.archive.index.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Final

from app.files.whole_lines import ends_within_a_line
from app.history.archive.files import Line
from app.history.archive.span import LONGEST_LINE

_MODE: Final = 0o640


class Folder:
    """Reads and writes files below `root`; every method raises OSError."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, files: Mapping[str, bytes]) -> None:
        """Write files that never change, unless they are there; none is ever seen in part."""
        for name, data in files.items():
            self._put(self.root / name, data)

    def append(self, files: Mapping[str, bytes]) -> dict[str, tuple[str, int]]:
        """Append to files. A line that was written in part, on a full disk, is ended first."""
        written = {}
        for name, data in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            end = _write(path, (b"\n" if ends_within_a_line(path) else b"") + data, os.O_CREAT | os.O_APPEND)
            written[name] = name, end - len(data)
        return written

    def clear(self, below: str) -> None:
        """Remove a folder with all that it has."""
        with suppress(FileNotFoundError):
            shutil.rmtree(self.root / below)

    def _put(self, path: Path, data: bytes) -> None:
        if path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{token_hex(8)}")
        try:
            _write(temporary, data, os.O_CREAT | os.O_EXCL)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)

    def read(self, name: str) -> bytes | None:
        """The content of a file, None if there is none."""
        with suppress(FileNotFoundError):
            return (self.root / name).read_bytes()
        return None

    def part(self, place: str, at: int, size: int) -> bytes:
        """`size` bytes of a file from byte `at`; none if there is no such file."""
        with suppress(FileNotFoundError), (self.root / place).open("rb") as file:
            file.seek(at)
            return file.read(size)
        return b""

    def lines(self, name: str) -> Iterator[Line]:
        """The lines of a file; one longer than LONGEST_LINE comes in parts."""
        with suppress(FileNotFoundError), (self.root / name).open("rb") as file:
            at = 0
            while data := file.readline(LONGEST_LINE + 1):
                yield Line(name, at, data.removesuffix(b"\n"))
                at += len(data)

    def children(self, below: str) -> list[str]:
        """The names in a folder."""
        with suppress(FileNotFoundError):
            return [path.name for path in (self.root / below).iterdir()]
        return []

    def names(self, below: str) -> Iterator[str]:
        """The names of all files below a folder, in order."""
        for folder, folders, files in os.walk(self.root / below, onerror=_raise_unless_missing):
            folders.sort()
            for file in sorted(files):
                if not file.startswith("."):
                    yield (Path(folder) / file).relative_to(self.root).as_posix()


def _raise_unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _write(path: Path, data: bytes, flags: int) -> int:
    """Write the data, and return the position after it."""
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC | flags, _MODE)
    try:
        written = 0
        while written < len(data):
            written += os.write(file, data[written:])
        os.fsync(file)
        return os.lseek(file, 0, os.SEEK_CUR)
    finally:
        os.close(file)
