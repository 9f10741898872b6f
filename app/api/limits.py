"""How much of a request's body is read before it is refused."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.problems import Problem

BODY_LIMIT = 4 * 1024 * 1024
"""Octets of the largest request body: a robots.txt at its limit, escaped as JSON or in base64, and its questions."""


class BodyLimit:
    """Answers 413 once a body is longer than BODY_LIMIT, whatever its Content-Length says."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        problem = Problem(413, "too-large", f"The request's body has more than {BODY_LIMIT} octets.")
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if declared.isdigit() and int(declared[:20]) > BODY_LIMIT:
            await problem.response()(scope, receive, send)
            return
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > BODY_LIMIT:
                raise problem
            return message

        await self._app(scope, counted, send)
