"""Work for helper processes, which import only the standard library for it."""

import os
import sys
import time
from importlib import import_module
from math import inf


def pid() -> bytes:
    return b"%d" % os.getpid()


def same(value: bytes) -> bytes:
    return value


def zeros(size: int) -> bytes:
    return bytes(size)


def grown(size: int) -> bytes:
    """The helper's id, after it has held so many bytes."""
    return pid() if bytearray(size) else b""


def burnt(seconds: float) -> bytes:
    """The helper's id, after so many seconds of CPU time."""
    ends = time.process_time() + seconds
    while time.process_time() < ends:
        pass
    return pid()


def rested(seconds: float) -> bytes:
    """The helper's id, after so many seconds."""
    time.sleep(seconds)
    return pid()


def endless(*_arguments: object) -> bytes:
    """Takes CPU time until it is killed."""
    return burnt(inf)


def asleep() -> bytes:
    time.sleep(1000)
    return b""


def printed(text: str) -> bytes:
    sys.stdout.write(text * 10_000)
    return text.encode()


def wrong(text: str) -> bytes:
    raise ValueError(text)


def modules(name: str) -> bytes:
    """The names of all modules, once the module `name` has been imported."""
    import_module(name)
    return " ".join(sys.modules).encode()


def environment() -> bytes:
    return repr((sys.path, os.getsid(0) == os.getpid())).encode()
