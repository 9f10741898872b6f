"""How much of a request's body is read, and for how long, before it is refused."""

import asyncio
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.problems import Problem

BODY_LIMIT = 4 * 1024 * 1024
"""Octets of the largest request body: a robots.txt at its limit, escaped as JSON or in base64, and its questions."""

BODIES_LIMIT = 256 * 1024 * 1024
"""Octets of all bodies that one process holds at once; one that is read bit by bit counts as one of BODY_LIMIT."""

BODY_SECONDS = 60.0
"""Seconds within which a body has to be there as a whole."""

SILENCE_SECONDS = 120.0
"""Seconds of silence after which a body that is read bit by bit is taken for ended."""


class BodyLimit:
    """Answers 413 once a body is longer than BODY_LIMIT, whatever its Content-Length says, 408 once it takes too long.

    Those that it `spares` are read bit by bit, by routes that keep no more of them than they have bounds for: all that
    is asked of such a one is not to be silent for long. 503 where all bodies together are too large.
    """

    def __init__(
        self,
        app: ASGIApp,
        spares: Callable[[Scope], bool],
        *,
        together: int = BODIES_LIMIT,
        seconds: float = BODY_SECONDS,
        silence: float = SILENCE_SECONDS,
    ) -> None:
        """`together`, `seconds` and `silence`: see BODIES_LIMIT, BODY_SECONDS and SILENCE_SECONDS."""
        self._app = app
        self._spares = spares
        self._room = together
        self._seconds = seconds
        self._silence = silence

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif self._spares(scope):
            await self._pass_on(scope, receive, send)
        else:
            await self._pass_bounded(scope, receive, send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._room < BODY_LIMIT:
            await _overloaded().response()(scope, receive, send)
            return
        more = True

        async def heard() -> Message:
            nonlocal more
            try:
                async with asyncio.timeout(self._silence if more else None):
                    message = await receive()
            except TimeoutError:
                # Its answers are worth having, and one that is cut off could be mistaken for a fault on the way.
                message = {"type": "http.request", "body": b"", "more_body": False}
            more = message.get("more_body", False)
            return message

        self._room -= BODY_LIMIT
        try:
            await self._app(scope, heard, send)
        finally:
            self._room += BODY_LIMIT

    async def _pass_bounded(self, scope: Scope, receive: Receive, send: Send) -> None:
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if declared.isdigit() and int(declared[:20]) > BODY_LIMIT:
            await _too_large().response()(scope, receive, send)
            return
        received = 0
        more = True
        deadline = asyncio.get_running_loop().time() + self._seconds

        async def counted() -> Message:
            nonlocal received, more
            try:
                async with asyncio.timeout_at(deadline if more else None):
                    message = await receive()
            except TimeoutError:
                detail = f"The request's body was not there within {self._seconds:.0f} s."
                raise Problem(408, "slow-request", detail, {"Connection": "close"}) from None
            more = message.get("more_body", False)
            octets = len(message.get("body", b""))
            received += octets
            self._room -= octets
            if received > BODY_LIMIT:
                raise _too_large()
            if self._room < 0:
                raise _overloaded()
            return message

        try:
            await self._app(scope, counted, send)
        finally:
            self._room += received


def _too_large() -> Problem:
    return Problem(413, "too-large", f"The request's body has more than {BODY_LIMIT} octets.")


def _overloaded() -> Problem:
    detail = "The bodies of all requests that are under way are as large as this process takes; ask again in 1 s."
    return Problem(503, "overloaded", detail, {"Retry-After": "1"})
