"""Parse what a server sends (RESP2), by hiredis, which redis-py uses as well."""

from typing import Any

from hiredis import Reader
from redis._parsers.base import BaseParser
from redis.exceptions import InvalidResponse

_INCOMPLETE = object()


class Replies:
    """The replies of one connection. A string is bytes, a missing value None, and an error a ResponseError."""

    def __init__(self) -> None:
        self._reader = Reader(protocolError=InvalidResponse, replyError=_error, notEnoughData=_INCOMPLETE)

    def feed(self, data: bytes) -> list[Any]:
        """The replies that are complete now. Raises InvalidResponse."""
        self._reader.feed(data)
        found: list[Any] = []
        try:
            while (reply := self._reader.gets()) is not _INCOMPLETE:
                found.append(reply)
        except (ValueError, MemoryError) as error:  # an error's text that redis-py cannot read, or an absurd length
            raise InvalidResponse(f"the server sent no reply: {error}") from None
        return found


def _error(text: str) -> Exception:
    error: Exception = BaseParser.parse_error(text)  # type: ignore[no-untyped-call]
    return error
