"""A helper process: does one piece of work after another for the service, within limits of CPU time and memory.

Run as `python -I -S process.py SECONDS BYTES PATH...`, with the service at the other ends of standard input and output.
PATH is the service's import path. Only the standard library is imported here; work imports the module of its function.

A call is a CALL head, and as many bytes: a function and its arguments, pickled. The service is trusted to send it. The
function returns bytes, which follow an ANSWER head. The service never unpickles what a helper sends, since a helper
reads what strangers have written.
"""

import os
import pickle
import resource
import select
import signal
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable
from enum import IntEnum
from typing import Final

CALL: Final = struct.Struct(">QI")
"""The number of the call, and its size."""

ANSWER: Final = struct.Struct(">QBdI")
"""The number of the call, its CallOutcome, CPU seconds, and the size."""

REPLY_LIMIT: Final = 16 * 1024 * 1024
"""Bytes of the longest answer."""

_TRACEBACK: Final = 16_000  # bytes of a traceback, of which the end matters most


class CallOutcome(IntEnum):
    """What became of a call: DONE, or it needs more memory, its answer more REPLY_LIMIT, or it raised what follows."""

    DONE = 0
    NO_MEMORY = 1
    NO_ROOM = 2
    RAISED = 3


def main(seconds: int, memory: int, path: list[str]) -> None:
    """Answer calls until the service closes standard input, or ends."""
    sys.path[:] = path
    # Ctrl-C in a terminal, or the signal of an init, reaches every process. The service still needs its helpers, and
    # ends them.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_service, daemon=True).start()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    calls, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # what work prints must not get among the answers
    while head := calls.read(CALL.size):
        call, size = CALL.unpack(head)
        begun = time.process_time()
        # This limit is for the whole life of the process, so each call moves it. Then the kernel sends SIGXCPU.
        resource.setrlimit(resource.RLIMIT_CPU, (int(begun) + 1 + seconds, resource.RLIM_INFINITY))
        outcome, answer = _answer(calls.read(size))
        answers.write(ANSWER.pack(call, outcome, time.process_time() - begun, len(answer)))
        answers.write(answer)
        answers.flush()


def _end_with_service() -> None:
    """End this process, whatever it is doing, once the service has closed its end of standard input."""
    service = select.poll()
    service.register(0, 0)  # for POLLHUP alone
    service.poll()
    os._exit(0)


def _answer(call: bytes) -> tuple[CallOutcome, bytes]:
    try:
        work: Callable[..., bytes]
        work, arguments = pickle.loads(call)  # noqa: S301 - the service has written it
        answer = work(*arguments)
    except MemoryError:
        return CallOutcome.NO_MEMORY, b""
    except Exception:  # noqa: BLE001 - the service raises it
        return CallOutcome.RAISED, traceback.format_exc().encode(errors="backslashreplace")[-_TRACEBACK:]
    return (CallOutcome.DONE, answer) if len(answer) <= REPLY_LIMIT else (CallOutcome.NO_ROOM, b"")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
