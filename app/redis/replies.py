"""Parse what a server sends (RESP2), in linear time, however it is cut into pieces."""

from typing import Any

from redis._parsers.base import BaseParser
from redis.exceptions import InvalidResponse

LINE_BYTES = 64 * 1024
"""Bytes of the longest line: a number, a status, or the message of an error."""

NESTED = 16
"""Arrays within each other; our scripts return two."""


_ARRAY, _ERROR, _INTEGER, _STATUS, _STRING = b"*-:+$"


class Replies:
    """The replies of one connection. A string is bytes, a missing value None, and an error a ResponseError."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._needed = 0
        self._begun: list[tuple[list[Any], int]] = []  # the arrays that are not complete, and their lengths

    def feed(self, data: bytes) -> list[Any]:
        """The replies that are complete now. Raises InvalidResponse."""
        self._pieces.append(data)
        self._size += len(data)
        if self._size < self._needed:
            return []
        if len(self._pieces) > 1:
            data = b"".join(self._pieces)
        try:
            found, read = self._read(data)
        except ValueError as error:
            raise InvalidResponse(f"the server sent no reply: {error}") from None
        self._pieces = [data[read:]] if read < len(data) else []
        self._size = len(data) - read
        return found

    def _read(self, data: bytes) -> tuple[list[Any], int]:
        """The replies, and how many of the bytes they took; `_needed` is how many the next value takes at least."""
        found: list[Any] = []
        at, self._needed = 0, 0
        while (end := data.find(b"\r\n", at, at + LINE_BYTES)) >= 0:
            kind, line, after = data[at], data[at + 1 : end], end + 2
            if kind == _ARRAY and (length := int(line)) > 0:
                if len(self._begun) == NESTED:
                    raise ValueError(f"more than {NESTED} arrays within each other")
                self._begun.append(([], length))
                at = after
                continue
            if kind == _STRING and (length := int(line)) >= 0:
                value: Any = data[after : after + length]
                after += length + 2
                if len(data) < after:
                    self._needed = after - at
                    break
            else:
                value = _read_line(kind, line)
            at = after
            self._put(value, found)
        if end < 0 and len(data) - at >= LINE_BYTES:
            raise ValueError(f"a line of more than {LINE_BYTES} bytes")
        return found, at

    def _put(self, value: Any, found: list[Any]) -> None:
        """Put a value into the array that it belongs to, and that, if it is complete now, into its own."""
        while self._begun:
            values, length = self._begun[-1]
            values.append(value)
            if len(values) < length:
                return
            value = values
            self._begun.pop()
        found.append(value)


def _read_line(kind: int, line: bytes) -> Any:
    """A value of one line."""
    if kind == _INTEGER:
        return int(line)
    if kind == _STATUS:
        return line
    if kind == _ERROR:
        return BaseParser.parse_error(line.decode("utf-8", "replace"))  # type: ignore[no-untyped-call]
    if kind in (_STRING, _ARRAY):
        return None if int(line) < 0 else []
    raise ValueError(f"{bytes([kind]) + line!r:.80}")
