"""The parent of the embedded Valkey, which ends it when the service ends, however that happens.

Run as `python -I -S embedded_guard.py GRACE DIRECTORY COMMAND...` with the read end of a pipe as standard input. The
service holds the only write end, so its end, SIGKILL included, is end of file here: an event that no signal handler,
no atexit hook and no polling of a parent's id can miss. Then the server gets SIGTERM, after GRACE seconds SIGKILL, and
DIRECTORY is removed. If the server ends by itself, its last words go to standard output. Nothing but the standard
library is there to import.
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

LAST_WORDS = 4096
"""How many bytes of the server's output are remembered; it may write for years."""

PR_SET_PDEATHSIG = 1


def main(grace: float, directory: str, command: list[str]) -> int:
    """Run the server until it ends (1) or standard input does (0); signals are noted, and change nothing."""
    woken = _note_signals()
    try:
        return _run(grace, command, woken)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _note_signals() -> int:
    # An init that stops a service may send SIGTERM to every process of it. The service is still to finish what it is
    # doing, with the server, and end of file is sure to come. A handler, not SIG_IGN: exec would hand that on to the
    # server. SIGCHLD comes out of the same descriptor and says that the server may have ended.
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
            preexec_fn=_mortal(os.getpid()),
        )
    except (OSError, subprocess.SubprocessError) as error:
        os.write(1, f"{command[0]} cannot be run: {error}".encode(errors="replace"))
        return 1
    try:
        return 0 if _watch(server, woken) else 1
    finally:
        _end(server, grace)


def _mortal(guard: int) -> Callable[[], None] | None:
    """What makes the server end with this process on Linux; elsewhere only end of file does, which is this one's."""
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
    """True when the service has ended; False, its last words passed on, when the server has."""
    output = cast("IO[bytes]", server.stdout).fileno()
    words = b""
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
                said = os.read(output, LAST_WORDS)
                words = (words + said)[-LAST_WORDS:]
                if not said:
                    selector.unregister(output)
    # Not to end of file: a child of the server, saving, may hold the pipe open for long.
    os.set_blocking(output, False)
    with contextlib.suppress(BlockingIOError):
        while said := os.read(output, LAST_WORDS):
            words = (words + said)[-LAST_WORDS:]
    with contextlib.suppress(BrokenPipeError):
        os.write(1, words or f"nothing, and ended with the status {server.returncode}".encode())
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
