"""Bounds for the size of request bodies and the time they take to arrive."""

import asyncio
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.problems import Problem, problem_of
from app.loop.admission import HeldBytes, Overloaded, Refused, ignore, refusal

REQUEST_BODY_LIMIT = 4 * 1024 * 1024
"""Bytes of the largest request body: a robots.txt at its limit, escaped as JSON or in base64, and its questions."""

BODIES_LIMIT = 256 * 1024 * 1024
"""Bytes of all bodies that one process holds at once; a streamed body counts as REQUEST_BODY_LIMIT."""

BODY_SECONDS = 60.0
"""Seconds in which a whole body has to arrive."""

SILENCE_SECONDS = 120.0
"""A streamed body that is silent for so many seconds is treated as finished."""

_FRAMING = (b"content-length", b"transfer-encoding")


class BodyLimit:
    """Answers 413 to bodies longer than REQUEST_BODY_LIMIT, 408 to slow ones, and 503 when all together are too large.

    `streamed` is true for requests whose routes read the body piece by piece, within bounds of their own. Such bodies
    may be of any length, but not silent for long.
    """

    def __init__(
        self,
        app: ASGIApp,
        streamed: Callable[[Scope], bool],
        refused: Refused = ignore,
    ) -> None:
        """`refused` is called with "bodies" for each request that is refused because of all bodies together."""
        self._app = app
        self._streamed = streamed
        why = "This process holds too many request bodies at once"
        self._room = HeldBytes(BODIES_LIMIT, refusal("bodies", refused, why))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _has_no_body(scope):
            await self._app(scope, receive, send)
            return
        streamed = self._streamed(scope)
        now = asyncio.get_running_loop().time
        deadline = now() + BODY_SECONDS
        held = 0
        more = True

        def hold(size: int) -> None:
            nonlocal held
            try:
                self._room.take(size)
            except Overloaded as error:
                raise problem_of(error) from None
            held += size

        async def receive_bounded() -> Message:
            nonlocal more
            latest = now() + SILENCE_SECONDS if streamed else deadline
            try:
                async with asyncio.timeout_at(latest if more else None):
                    message = await receive()
            except TimeoutError:
                if not streamed:
                    detail = f"The request body did not arrive within {BODY_SECONDS:.0f} s."
                    raise Problem("slow-request", detail, {"Connection": "close"}) from None
                # End the body rather than the connection: the client still gets its answers.
                message = {"type": "http.request", "body": b"", "more_body": False}
            more = message.get("more_body", False)
            if not streamed:
                size = len(message.get("body", b""))
                _check_size(held + size)
                hold(size)
            return message

        try:
            if streamed:
                hold(REQUEST_BODY_LIMIT)
            else:
                declared = dict(scope["headers"]).get(b"content-length", b"0")
                _check_size(int(declared[:20]) if declared.isdigit() else 0)
            await self._app(scope, receive_bounded, send)
        finally:
            self._room.give_back(held)


def _has_no_body(scope: Scope) -> bool:
    """Whether the request is a GET without a body, as nearly all are (RFC 9112 6.3)."""
    return scope["method"] == "GET" and not [name for name, _ in scope["headers"] if name in _FRAMING]


def _check_size(size: int) -> None:
    if size > REQUEST_BODY_LIMIT:
        detail = f"The request body is larger than {REQUEST_BODY_LIMIT} bytes; send it in parts."
        raise Problem("too-large", detail)
