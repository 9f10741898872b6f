"""Lines of a file or pipe, read in a thread, so that a pending read blocks neither the event loop nor the exit."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import BinaryIO

from app.cli.exit_codes import Failed


def open_stdin() -> BinaryIO:
    """A reader of standard input: Python waits for the lock of sys.stdin at exit, which a pending read would hold."""
    return open(sys.stdin.fileno(), "rb", closefd=False)


async def pieces(source: BinaryIO, what: str, limit: int) -> AsyncIterator[bytes]:
    """The lines with their line breaks; a line beyond `limit` bytes comes in pieces of that length.

    Raise Failed, which calls the source `what`.
    """
    loop, read_ahead = asyncio.get_running_loop(), asyncio.Queue[bytes | OSError](1)

    def read() -> None:
        with suppress(RuntimeError, CancelledError):  # the command has ended, and its loop with it
            found: bytes | OSError = b"\n"
            while found and not isinstance(found, OSError):
                try:
                    found = source.readline(limit)
                except OSError as error:
                    found = error
                asyncio.run_coroutine_threadsafe(read_ahead.put(found), loop).result()

    # A daemon, since Python cannot interrupt a read.
    threading.Thread(target=read, daemon=True).start()
    while written := await read_ahead.get():
        if isinstance(written, OSError):
            raise Failed(f"Cannot read {what}: {written.strerror}.")
        yield written
