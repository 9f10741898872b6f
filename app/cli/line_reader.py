"""Lines of a file or pipe, read in a thread, so that a pending read blocks neither the event loop nor the exit."""

import asyncio
import sys
import threading
import zlib
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from io import BufferedIOBase, BufferedReader

from app.cli.exit_codes import Failed

BLOCK = 256 * 1024
"""Bytes that are read at once, at most: of a pipe, what is there."""

_ERRORS = (OSError, EOFError, zlib.error)  # the last two are those of compressed files


def open_stdin() -> BufferedReader:
    """A reader of standard input: Python waits for the lock of sys.stdin at exit, which a pending read would hold."""
    return open(sys.stdin.fileno(), "rb", closefd=False)


async def blocks(source: BufferedIOBase, what: str, limit: int) -> AsyncIterator[list[bytes]]:
    """The lines with their line breaks; a line beyond `limit` bytes comes in pieces of that length.

    Each list has the lines that one read completes, so a slow source delays only later lines. Raise Failed, which calls
    the source `what`.
    """
    loop, read_ahead = asyncio.get_running_loop(), asyncio.Queue[list[bytes] | Exception | None](1)

    def put(found: list[bytes] | Exception | None) -> None:
        asyncio.run_coroutine_threadsafe(read_ahead.put(found), loop).result()

    def read() -> None:
        with suppress(RuntimeError, CancelledError):  # the command has ended, and its loop with it
            try:
                for block in _split(source, limit):
                    put(block)
            except _ERRORS as error:
                put(error)
            else:
                put(None)

    # A daemon, since Python cannot interrupt a read.
    threading.Thread(target=read, daemon=True).start()
    while (block := await read_ahead.get()) is not None:
        if isinstance(block, Exception):
            reason = block.strerror if isinstance(block, OSError) else None
            raise Failed(f"Cannot read {what}: {reason or block}.")
        yield block


def _split(source: BufferedIOBase, limit: int) -> Iterator[list[bytes]]:
    rest = b""
    while data := source.read1(BLOCK):
        *lines, rest = (rest + data).split(b"\n")
        block = [piece for line in lines for piece in _cut(line + b"\n", limit)]
        *parts, rest = _cut(rest, limit) or [b""]
        block += parts
        if block:
            yield block
    if rest:
        yield [rest]


def _cut(line: bytes, limit: int) -> list[bytes]:
    return [line] if len(line) <= limit else [line[start : start + limit] for start in range(0, len(line), limit)]
