"""Parse what a server sends (RESP2), by hiredis, which redis-py uses as well; within bounds, which hiredis has not."""

import asyncio
import re
from typing import Any, Final, cast

from hiredis import Reader
from redis._parsers.base import BaseParser
from redis._parsers.hiredis import _AsyncHiredisParser
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import InvalidResponse

STORE_REPLY_LIMIT: Final = 32 * 1024 * 1024
"""Bytes of a reply, several times those of the longest one that the service asks for: overrides, or a history."""

ARRAY_LIMIT: Final = 1_000_000
"""Items of an array, for which hiredis allocates memory before they have come."""

REPLY_LINE_LIMIT: Final = 64 * 1024
"""Bytes of a line: the text of an error, or a number."""

_INCOMPLETE: Final = object()
_SHORT: Final = 1024
_MANY: Final = re.compile(rb"\*\d{6}")
_HEADER: Final = re.compile(rb"([$*])(\d{1,20})")


class ReplyBounds:
    """Follows what a server sends, and raises InvalidResponse for what is longer than a limit."""

    def __init__(self) -> None:
        self._held = 0
        self._line = b""
        self._string = 0

    @property
    def in_part(self) -> bool:
        """Whether what came last ended within a line or a string."""
        return bool(self._line or self._string)

    def follow(self, data: bytes) -> None:
        """Go from line to line, past strings, to where `data` ends: in a line, or so many bytes before a string's end.

        Raises InvalidResponse for a line, or an array, that is too long.
        """
        data, at = self._line + data, self._string
        self._line = b""
        while at < len(data):
            end = data.find(b"\r\n", at)
            if (len(data) if end < 0 else end) - at > REPLY_LINE_LIMIT:
                raise InvalidResponse(f"the server sent a line of more than {REPLY_LINE_LIMIT} bytes")
            if end < 0:
                self._line = data[at:]
                break
            header = _HEADER.match(data, at, end)
            at = end + 2
            if header is not None and header[1] == b"$":
                at += int(header[2]) + 2
            elif header is not None and int(header[2]) > ARRAY_LIMIT:
                raise InvalidResponse(f"the server sent an array of more than {ARRAY_LIMIT} items")
        self._string = max(at - len(data), 0)

    def hold(self, size: int) -> None:
        """Count bytes of a reply that has not ended. Raises InvalidResponse if they are too many."""
        self._held += size
        if self._held > STORE_REPLY_LIMIT:
            raise InvalidResponse(f"the server sent a reply of more than {STORE_REPLY_LIMIT} bytes")

    def end(self) -> None:
        """Note that a reply has ended."""
        self._held = 0


class Replies:
    """The replies of one connection. A string is bytes, a missing value None, and an error a ResponseError."""

    def __init__(self) -> None:
        self._reader = Reader(protocolError=InvalidResponse, replyError=_error, notEnoughData=_INCOMPLETE)
        self._bounds = ReplyBounds()

    def feed(self, data: bytes) -> list[Any]:
        """The replies that are complete now. Raises InvalidResponse."""
        # Most of what arrives is whole, short replies with short arrays: to search them costs less than to follow them.
        followed = self._bounds.in_part or len(data) > _SHORT or _MANY.search(data) is not None
        if followed:
            self._bounds.follow(data)
        self._reader.feed(data)
        found: list[Any] = []
        try:
            while (reply := self._reader.gets()) is not _INCOMPLETE:
                found.append(reply)
        except (ValueError, MemoryError) as error:  # an error's text that redis-py cannot read, or an absurd length
            raise InvalidResponse(f"the server sent no reply: {error}") from None
        if found:
            self._bounds.end()
        else:
            self._bounds.hold(len(data))
        # hiredis has read the first byte of what has begun, and all of a string's header or none of it.
        if not followed and (self._reader.has_data() or not data.endswith(b"\r\n")):
            self._bounds.follow(data)
        return found


class BoundedParser(_AsyncHiredisParser):
    """What redis-py reads by itself, such as published messages, within the same bounds."""

    def __init__(self, socket_read_size: int) -> None:
        super().__init__(socket_read_size)
        self._bounds = ReplyBounds()

    def on_connect(self, connection: Any) -> None:
        """Begin with a new connection."""
        super().on_connect(connection)  # type: ignore[no-untyped-call]
        self._bounds = ReplyBounds()

    async def read_from_socket(self) -> bool:
        """Read what has arrived. Raises InvalidResponse."""
        stream, reader = cast("asyncio.StreamReader", self._stream), cast("Reader", self._reader)
        data = await stream.read(self._read_size)
        if not data:
            raise NoConnection("the server closed the connection")
        self._bounds.follow(data)
        self._bounds.hold(len(data))
        reader.feed(data)
        return True

    async def read_response(self, *args: Any, **options: Any) -> Any:
        """The next reply, as the parser of redis-py gives it."""
        reply = await super().read_response(*args, **options)
        self._bounds.end()
        return reply


def _error(text: str) -> Exception:
    error: Exception = BaseParser.parse_error(text)  # type: ignore[no-untyped-call]
    return error
