"""How long a caller's HTTP cache may give an answer again (RFC 9111)."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.cache.freshness import State
from app.decide import Answer
from app.robots.verdict import Decision

SHORT = 60
"""Seconds for which an answer is kept that may become another one at any time."""

NO_STORE = "no-store"


def cache_control(answer: Answer, until: float) -> str:
    """The Cache-Control of `answer`, whose rate and visit time are as they are up to the Unix time `until`.

    It may be kept until the file is checked again, a rate ends, or the file becomes older than was asked for. A defer
    is never kept, nor what is served while it is refreshed. The caches of others are none that may keep it: who may
    ask is for this service to say, and the visits of a crawler are counted here.
    """
    question, freshness, snapshot = answer.question, answer.held.freshness, answer.held.snapshot
    if freshness is None or snapshot is None or answer.verdict.decision is Decision.DEFER:
        return NO_STORE
    if freshness.state is not State.FRESH:
        return NO_STORE
    ends = freshness.recheck_at
    # Rates that were asked for at an instant stay what they are at that instant.
    if question.at is None:
        ends = min(ends, until)
    if question.max_age is not None:
        ends = min(ends, snapshot.fetched_at + question.max_age)
    # A copy that stands in for a file which cannot be had, and what operators set, last for as long as somebody likes.
    if freshness.stale or answer.edition is None:
        ends = min(ends, answer.now + SHORT, *_expiries(answer))
    seconds = int(ends - answer.now)
    return f"private, max-age={seconds}" if seconds > 0 else NO_STORE


def _expiries(answer: Answer) -> list[float]:
    if answer.overrides is None:
        return []
    overrides = (answer.overrides.deciding, answer.overrides.delaying)
    return [it.expires_at for it in overrides if it is not None and it.expires_at is not None]


class NoStoreByDefault:
    """Lets no cache keep an answer that says nothing of caches: what is held now, or is set, is another a moment later.

    Without a word, a cache may give an answer again for as long as it thinks right (RFC 9111 4.2.2).
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).setdefault("Cache-Control", NO_STORE)
            await send(message)

        await self._app(scope, receive, noted)
