"""How long a caller's HTTP cache may reuse an answer (RFC 9111)."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.cache.freshness import State
from app.evaluate import Decision
from app.robots.verdict import Permission

SHORT = 60
"""Seconds for which an answer that can change at any time may be reused."""

NO_STORE = "no-store"


def cache_control(decision: Decision) -> str:
    """The Cache-Control of an answer.

    A private cache may reuse the answer until the file is rechecked, the rate changes, or the file grows older than
    `max_age`. A defer is never stored, nor an answer from a file that is being refreshed. Shared caches are excluded:
    access is checked here, and a crawler's visits are counted here.
    """
    question, freshness, snapshot = decision.question, decision.cached.freshness, decision.cached.snapshot
    if freshness is None or snapshot is None or decision.verdict.permission is Permission.DEFER:
        return NO_STORE
    if freshness.state is not State.FRESH:
        return NO_STORE
    ends = freshness.recheck_at
    # The rate at an instant that the question names does not change.
    if question.at is None and decision.valid_until is not None:
        ends = min(ends, decision.valid_until.timestamp())
    if question.max_age is not None:
        ends = min(ends, snapshot.fetched_at + question.max_age)
    # A stale copy may be replaced, and an override changed, at any time.
    if freshness.stale or decision.revision is None:
        ends = min(ends, decision.now + SHORT, *_expiries(decision))
    seconds = int(ends - decision.now)
    return f"private, max-age={seconds}" if seconds > 0 else NO_STORE


def _expiries(decision: Decision) -> list[float]:
    if decision.overrides is None:
        return []
    overrides = (decision.overrides.deciding, decision.overrides.delaying)
    return [it.expires_at for it in overrides if it is not None and it.expires_at is not None]


class NoStoreByDefault:
    """Add `Cache-Control: no-store` to responses that set no caching headers.

    Without it, a cache may reuse such a response for as long as it sees fit (RFC 9111 4.2.2).
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_header(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).setdefault("Cache-Control", NO_STORE)
            await send(message)

        await self._app(scope, receive, send_with_header)
