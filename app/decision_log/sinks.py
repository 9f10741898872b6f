"""Where the lines of the decision log go: standard output, a file, or a stream in the store."""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from select import PIPE_BUF
from typing import Final, Protocol

from app.files.whole_lines import ends_within_a_line
from app.loop.background import in_daemon_thread
from app.store.guarded_client import GuardedClient, StoreDown
from app.store.script import Script

DECISIONS_STREAM: Final = "robots:{decisions}"
DECISIONS_LENGTH = 100_000
"""Lines that the stream keeps."""

NEWEST_BYTES: Final = 1024 * 1024
NEWEST_LINES: Final = 2000
"""How much of the log a mark looks at for other processes."""

_ADD: Final = Script.load(__package__, "add_lines.lua")
_MODE: Final = 0o640
_APPENDING: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
_STDOUT: Final = 1


class SinkFailed(Exception):
    """Some lines could not be written; `lost` is their number."""

    def __init__(self, reason: str, lost: int) -> None:
        super().__init__(reason)
        self.lost = lost


class Sink(Protocol):
    """Takes lines; slow ones delay only the log."""

    async def write(self, lines: Sequence[bytes]) -> None:
        """Write the lines; raises SinkFailed if some of them were not written."""

    async def newest(self) -> Sequence[bytes]:
        """The newest lines of the log, by any process; the first may be cut. None if they cannot be read."""


def check_path(path: Path) -> None:
    """Raise ValueError if the file at `path` can neither be opened nor made. It is not changed, nor made."""
    try:
        # Without O_NONBLOCK, the open of a FIFO would wait for its reader.
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC))
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise ValueError(f"its directory {path.parent} does not exist") from None
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise ValueError(f"no file can be made in {path.parent}") from None
    except OSError as error:
        if not (error.errno == errno.ENXIO and path.is_fifo()):
            raise ValueError(f"it cannot be opened: {error.strerror}") from None


class FileSink:
    """Appends to a file, which is opened again for each write, so that it can be rotated; None is standard output.

    It writes in a daemon thread, since a write to a pipe without a reader may never return, and the process must end.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._torn = False

    async def write(self, lines: Sequence[bytes]) -> None:
        """Write the lines in a thread; raises SinkFailed."""
        await in_daemon_thread("decision-log", lambda: self._write(lines))

    async def newest(self) -> Sequence[bytes]:
        """The lines at the end of a file; those of a pipe cannot be read."""
        return await in_daemon_thread("decision-log", self._newest)

    def _newest(self) -> Sequence[bytes]:
        if self._path is None or not self._path.is_file():
            return ()
        try:
            with self._path.open("rb") as file:
                file.seek(max(0, self._path.stat().st_size - NEWEST_BYTES))
                return file.read(NEWEST_BYTES).splitlines()
        except OSError:
            return ()  # it may be appended to only, or was rotated

    def _write(self, lines: Sequence[bytes]) -> None:
        data, written = b"".join(line + b"\n" for line in lines), 0
        try:
            # Not by way of sys.stdout, whose lock a write that hangs would hold when the process ends.
            file = _STDOUT if self._path is None else os.open(self._path, _APPENDING, _MODE)
            try:
                if self._torn or (self._path is not None and ends_within_a_line(self._path)):
                    os.write(file, b"\n")
                    self._torn = False
                for end in _ends_of_pieces(data, file):
                    while written < end:
                        written += os.write(file, data[written:end])
            finally:
                if self._path is not None:
                    os.close(file)
        except OSError as error:
            self._torn = self._torn or not (data[:written] or b"\n").endswith(b"\n")
            raise SinkFailed(str(error), len(lines) - data.count(b"\n", 0, written)) from error


def _ends_of_pieces(data: bytes, file: int) -> Iterator[int]:
    """Where the pieces end that are written at once, each of whole lines, since several processes may write there.

    A regular file takes all of it at once. A pipe takes PIPE_BUF bytes: in longer pieces, others may write in between.
    """
    most = len(data) if stat.S_ISREG(os.fstat(file).st_mode) else PIPE_BUF
    end = 0
    while end < len(data):
        begin = end
        end = len(data) if len(data) - begin <= most else data.rfind(b"\n", begin, begin + most) + 1
        if end == 0:
            end = data.index(b"\n", begin) + 1
        yield end


class StreamSink:
    """Adds to the stream DECISIONS_STREAM in Redis or Valkey, in entries with the field `decision`."""

    def __init__(self, redis: GuardedClient) -> None:
        self._redis = redis

    async def write(self, lines: Sequence[bytes]) -> None:
        """Add all of the lines, or none; raises SinkFailed."""
        added = None
        with suppress(StoreDown):
            added = await _ADD.run(self._redis, [DECISIONS_STREAM], str(DECISIONS_LENGTH), *lines)
        if added != len(lines):
            raise SinkFailed("the store did not take the lines", len(lines))

    async def newest(self) -> Sequence[bytes]:
        """The newest lines of the stream."""
        key, entries = DECISIONS_STREAM, None
        with suppress(StoreDown):
            entries = await self._redis.command(key, "XREVRANGE", key, "+", "-", "COUNT", NEWEST_LINES)
        return [fields[1] for _, fields in entries] if isinstance(entries, list) else ()
