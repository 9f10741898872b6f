"""The parent of the embedded Valkey: restarts it if it ends, and stops it when the service ends, however that happens.

Run as `python -I -S embedded_guard.py GRACE DIRECTORY COMMAND...` with the read end of a pipe as standard input. The
service has the only write end, so standard input reaches end of file when the service ends, even by SIGKILL, which
signal handlers, atexit hooks and polling of a parent's id can miss. Then the server gets SIGTERM, after GRACE seconds
SIGKILL, and DIRECTORY is removed.

The service writes a byte once the server answers. If the server ends before that, its last output goes to standard
output, and the guard ends. Afterwards, a server that ends is started again after a pause, and standard output gets a
line of JSON with `status` (of the process; -9 for SIGKILL), its last `output` and the `pause` in seconds. Only the
standard library can be imported.
"""

import contextlib
import ctypes
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import IO, cast

LAST_OUTPUT = 4096
"""How many bytes of the server's latest output are kept; it may write for years."""

FIRST_RESTART_PAUSE, LONGEST_RESTART_PAUSE = 1.0, 60.0
"""Seconds before the server is started again: they double, and start over after a run that lasted longer than that."""

PR_SET_PDEATHSIG = 1


def main(grace: float, directory: str, command: list[str]) -> int:
    """Run the server until standard input ends (0), or it cannot be started (1); signals have no effect."""
    service = _Service(_note_signals())
    try:
        return _run(grace, command, service)
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


class _Service:
    """What the service has said on standard input; `woken` is the descriptor of signals."""

    def __init__(self, woken: int) -> None:
        self._ended = False
        self._has_server = False
        self._woken = woken

    def has_ended(self) -> bool:
        """Whether it has ended, or needs the server no more."""
        return self._ended

    def has_server(self) -> bool:
        """Whether it has said that the server answered."""
        return self._has_server

    def wait(self, seconds: float | None, output: int | None = None) -> bool:
        """Wait until the service writes or ends, a signal arrives or so much time has passed.

        The result is whether a descriptor for `output` can be read, which also ends the wait.
        """
        with selectors.DefaultSelector() as selector:
            for descriptor in (0, self._woken, *(() if output is None else (output,))):
                selector.register(descriptor, selectors.EVENT_READ)
            ready = {key.fd for key, _ in selector.select(seconds)}
        if 0 in ready:
            written = os.read(0, 512)
            self._ended = self._ended or not written
            self._has_server = self._has_server or bool(written)
        if self._woken in ready:
            os.read(self._woken, 512)
        return output in ready


def _run(grace: float, command: list[str], service: _Service) -> int:
    pause = FIRST_RESTART_PAUSE
    while True:
        begun = time.monotonic()
        status, output = _run_once(grace, command, service)
        if service.has_ended():
            return 0
        service.wait(0.0)  # it may have written just before the server ended
        with contextlib.suppress(BrokenPipeError):
            if not service.has_server():
                os.write(1, output or f"none; it ended with status {status}".encode())
                return 1
            if time.monotonic() - begun > LONGEST_RESTART_PAUSE:
                pause = FIRST_RESTART_PAUSE
            line = {"status": status, "output": output.decode(errors="replace"), "pause": pause}
            os.write(1, json.dumps(line).encode() + b"\n")
        again = time.monotonic() + pause
        while (left := again - time.monotonic()) > 0:
            service.wait(left)
            if service.has_ended():
                return 0
        pause = min(2 * pause, LONGEST_RESTART_PAUSE)


def _run_once(grace: float, command: list[str], service: _Service) -> tuple[int, bytes]:
    """Run the server until it ends, or is stopped since the service has; its status and its last output."""
    try:
        server = subprocess.Popen(  # noqa: S603 - the command is the service's own
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=_die_with(os.getpid()),
        )
    except (OSError, subprocess.SubprocessError) as error:
        return 127, f"{command[0]} cannot be run: {error}".encode(errors="replace")
    with cast("IO[bytes]", server.stdout) as output:
        try:
            last = _watch(server, output.fileno(), service)
        finally:
            _end(server, grace)
    return server.returncode, last


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


def _watch(server: subprocess.Popen[bytes], output: int, service: _Service) -> bytes:
    """Wait until the server or the service has ended; the last that the server wrote to `output`."""
    kept, open_output = b"", True
    while server.poll() is None and not service.has_ended():
        if service.wait(None, output if open_output else None):
            data = os.read(output, LAST_OUTPUT)
            kept = (kept + data)[-LAST_OUTPUT:]
            open_output = bool(data)
    # Not to end of file: a child of the server that saves may keep the pipe open for long.
    os.set_blocking(output, False)
    with contextlib.suppress(BlockingIOError):
        while data := os.read(output, LAST_OUTPUT):
            kept = (kept + data)[-LAST_OUTPUT:]
    return kept


def _end(server: subprocess.Popen[bytes], grace: float) -> None:
    server.terminate()
    try:
        server.wait(grace)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2], sys.argv[3:]))
