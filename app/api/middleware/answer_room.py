"""Room for the encoded answers that requests with many questions hold until they are sent."""

from starlette.types import ASGIApp, Receive, Scope, Send

from app.loop.admission import HeldBytes, Refused, ignore, refusal

HELD_BYTES = 128 * 1024 * 1024
"""Bytes of such answers that one process holds: two batches in which every answer has the largest size."""

_KEY = "held_answers"


class HeldAnswers:
    """The answers that one request holds. Each was decided before others, which may have to wait for a fetch."""

    def __init__(self, room: HeldBytes) -> None:
        self._room = room
        self._size = 0

    def hold(self, answer: bytes) -> bytes:
        """Hold an answer, and return it. Raises Overloaded if this process holds too many."""
        self._room.take(len(answer))
        self._size += len(answer)
        return answer

    def add(self, answer: bytes) -> None:
        """Hold an answer for which there is always room, since it is short."""
        self._room.add(len(answer))
        self._size += len(answer)

    def release(self, answer: bytes) -> None:
        """Release an answer that is sent before the request ends."""
        self._room.give_back(len(answer))
        self._size -= len(answer)

    def close(self) -> None:
        """Release all answers."""
        self._room.give_back(self._size)
        self._size = 0


class AnswerRoom:
    """Gives each request its HeldAnswers, and closes them when it ends."""

    def __init__(self, app: ASGIApp, refused: Refused = ignore) -> None:
        self._app = app
        self._room = HeldBytes(HELD_BYTES, refusal("answers", refused, "Too many answers wait to be sent"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        held = scope.setdefault("state", {})[_KEY] = HeldAnswers(self._room)
        try:
            await self._app(scope, receive, send)
        finally:
            held.close()


def held_answers(scope: Scope) -> HeldAnswers:
    """Those of a POST request."""
    held: HeldAnswers = scope["state"][_KEY]
    return held
