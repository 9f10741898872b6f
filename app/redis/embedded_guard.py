"""The parent of the embedded Valkey, which stops it when the service ends, however that happens.

Run as `python -I -S embedded_guard.py GRACE DIRECTORY COMMAND...` with the read end of a pipe as standard input. The
service has the only write end, so standard input reaches end of file when the service ends, even by SIGKILL, which
signal handlers, atexit hooks and polling of a parent's id can miss. Then the server gets SIGTERM, after GRACE seconds
SIGKILL, and DIRECTORY is removed. If the server exits first, its last output goes to standard output. Only the
standard library can be imported.
"""

import contextlib
import ctypes
import os
import selectors
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from types import FrameType
from typing import IO, cast

LAST_OUTPUT = 4096
"""How many bytes of the server's latest output are kept; it may write for years."""

PR_SET_PDEATHSIG = 1


def main(grace: float, directory: str, command: list[str]) -> int:
    """Run the server until it ends (1) or standard input does (0); signals have no effect."""
    woken = _note_signals()
    try:
        return _run(grace, command, woken)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _note_signals() -> int:
    # An init that stops a service may send SIGTERM to every process of it. The service still needs the server to finish
    # its work, and end of file is sure to come. A handler, not SIG_IGN, which the server would inherit. SIGCHLD arrives
    # at the same descriptor and means that the server may have ended.
    woken, wake = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _nothing)
    return woken


def _nothing(number: int, frame: FrameType | None) -> None:
    del number, frame


def _run(grace: float, command: list[str], woken: int) -> int:
    try:
        server = subprocess.Popen(  # noqa: S603 - the command is the service's own
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=_die_with(os.getpid()),
        )
    except (OSError, subprocess.SubprocessError) as error:
        os.write(1, f"{command[0]} cannot be run: {error}".encode(errors="replace"))
        return 1
    try:
        return 0 if _watch(server, woken) else 1
    finally:
        _end(server, grace)


def _die_with(guard: int) -> Callable[[], None] | None:
    """A function for the child that makes it end with this process, on Linux; None elsewhere."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl

    def ask_to_die() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # The guard may have died between the fork and the line above, and then no signal is sent.
        if os.getppid() != guard:
            os._exit(1)

    return ask_to_die


def _watch(server: subprocess.Popen[bytes], woken: int) -> bool:
    """Wait until the service has ended (True), or the server has (False), whose last output is passed on."""
    output = cast("IO[bytes]", server.stdout).fileno()
    kept = b""
    with selectors.DefaultSelector() as selector:
        for descriptor in (0, output, woken):
            selector.register(descriptor, selectors.EVENT_READ)
        while server.poll() is None:
            ready = {key.fd for key, _ in selector.select()}
            if 0 in ready and not os.read(0, 512):
                return True
            if woken in ready:
                os.read(woken, 512)
            if output in ready:
                data = os.read(output, LAST_OUTPUT)
                kept = (kept + data)[-LAST_OUTPUT:]
                if not data:
                    selector.unregister(output)
    # Not to end of file: a child of the server that saves may keep the pipe open for long.
    os.set_blocking(output, False)
    with contextlib.suppress(BlockingIOError):
        while data := os.read(output, LAST_OUTPUT):
            kept = (kept + data)[-LAST_OUTPUT:]
    with contextlib.suppress(BrokenPipeError):
        os.write(1, kept or f"none; it ended with status {server.returncode}".encode())
    return False


def _end(server: subprocess.Popen[bytes], grace: float) -> None:
    server.terminate()
    try:
        server.wait(grace)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2], sys.argv[3:]))
