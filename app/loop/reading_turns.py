"""Turns of the event loop in which robots.txt files are read for the first time, so that many large ones block no one.

To read a file for the first time (to parse it, to compile the rules of an agent, to encode its sitemaps) is work that
cannot be interrupted, and takes up to some hundred milliseconds for the largest hostile files. One of them is bearable,
but many may arrive in one turn of the event loop: the questions of a batch, or of as many callers.
"""

import asyncio
from collections.abc import Hashable
from typing import Final

from robots_core.robots.access import Busy

TURN_BYTES: Final = 32 * 1024
"""Bytes of files that are read in one turn, which most files are far below; a longer file has a turn of its own."""

FREE_TURNS: Final = 8
"""Turns after one that was used up in which nothing is read: a request of another caller needs several."""

WAITING_FILE_BYTES: Final = 64 * 1024 * 1024
"""Bytes of the files that wait for a turn."""

READ_RETRY_AFTER: Final = 5
"""Seconds after which to ask again about a file for which there was no room: by then, those that wait are read."""


class ReadingTurns:
    """Gives turns to read files, in the order of the calls."""

    def __init__(self) -> None:
        self._left = TURN_BYTES
        self._free = 0
        self._is_scheduled = False
        self._waiting: dict[Hashable, tuple[int, asyncio.Event]] = {}
        self._waiting_bytes = 0

    async def wait(self, key: Hashable, size: int) -> None:
        """Return in a turn in which the caller may read a file of `size` bytes, before it awaits anything else.

        Calls with the same `key` wait together: the first to go on reads the file, and the others find it read.
        Raises Busy if too much waits.
        """
        waiting = self._waiting.get(key)
        if waiting is None:
            if not self._waiting and (size <= self._left or self._left == TURN_BYTES):
                self._spend(size)
                return
            if self._waiting_bytes + size > WAITING_FILE_BYTES:
                raise Busy(READ_RETRY_AFTER, "Too many large files wait to be read")
            waiting = self._waiting[key] = size, asyncio.Event()
            self._waiting_bytes += size
        await waiting[1].wait()

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left <= 0:
            self._free = FREE_TURNS
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._is_scheduled = False
        if self._free > 0:
            self._free -= 1
            self._schedule()
            return
        self._left = TURN_BYTES
        while self._waiting:
            key, (size, begins) = next(iter(self._waiting.items()))
            if size > self._left < TURN_BYTES:
                break
            del self._waiting[key]
            self._waiting_bytes -= size
            self._spend(size)
            begins.set()
