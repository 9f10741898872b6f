"""How far a list has been worked through: one line on a terminal, nothing elsewhere."""

import os
import stat
from collections.abc import Callable
from typing import BinaryIO, TextIO

EVERY, WIDTH = 0.2, 30
"""Seconds between two drawings, and the characters of the bar."""


class Bar:
    """Drawn onto `stream` where that is a terminal; the share is that of the octets of `source`, if it is a file."""

    def __init__(self, source: BinaryIO, stream: TextIO, monotonic: Callable[[], float]) -> None:
        self._source = source
        self._stream = stream
        self._monotonic = monotonic
        self._began = monotonic()
        self._next = self._began if stream.isatty() else float("inf")
        state = os.fstat(source.fileno())
        self._size = state.st_size if stat.S_ISREG(state.st_mode) else 0

    def draw(self, asked: int) -> None:
        """So many origins were asked by now."""
        now = self._monotonic()
        if now < self._next:
            return
        self._next = now + EVERY
        share = ""
        if self._size:
            part = min(self._source.tell() / self._size, 1.0)
            full = round(part * WIDTH)
            share = f"[{'#' * full}{'.' * (WIDTH - full)}] {part:4.0%}  "
        self._stream.write(f"\r{share}{asked} asked, {asked / max(now - self._began, EVERY):.0f}/s\x1b[K")
        self._stream.flush()

    def clear(self) -> None:
        """Make room for what is said next."""
        if self._next != float("inf"):
            self._stream.write("\r\x1b[K")
