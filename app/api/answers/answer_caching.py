"""How long a caller's HTTP cache may reuse an answer (RFC 9111), and when it has the answer already (RFC 9110 13)."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response
from starlette.types import Scope

from app.api.answers.answer_tags import EntityTag, FileTags
from app.api.answers.http_caching import NO_STORE
from app.cache.freshness import State
from app.cache.result import CacheResult
from app.decisions.evaluate import Decision
from robots_core.robots.verdict import Permission

NOT_MODIFIED: Final[Mapping[int | str, dict[str, Any]]] = {
    304: {"description": "Not modified: If-None-Match names the ETag of the answer."}
}
"""The response to a caller that has the answer, for the OpenAPI document."""


class AnswerCaching:
    """The Cache-Control of answers, which live at most `seconds`, and the tags of those about files.

    A private cache may reuse an answer until the file is rechecked, the rate changes, an override ends, or the file
    grows older than `max_age`. Overrides, refreshes and purges reach it no sooner, so `seconds` bounds all of these. A
    defer is never stored, nor an answer from a file that is being refreshed. Shared caches are excluded: access is
    checked here, and a crawler's visits are counted here.
    """

    def __init__(self, seconds: int, tags: FileTags) -> None:
        self.tags = tags
        self._seconds = seconds
        self._longest = _private(seconds)

    def of_decision(self, decision: Decision) -> str:
        """The Cache-Control of the answer."""
        question, overrides = decision.question, decision.overrides
        if decision.verdict.permission is Permission.DEFER:
            return NO_STORE
        ends = [] if overrides is None else [overrides.deciding, overrides.delaying]
        until = [it.expires_at for it in ends if it is not None and it.expires_at is not None]
        # The rate at an instant that the question names does not change.
        change = decision.valid_until if question.at is None else None
        if change is not None:
            until.append(change.timestamp())
        return self.of_file(decision.cached, decision.now, question.max_age, min(until, default=None))

    def of_file(self, cached: CacheResult, now: float, max_age: float | None, until: float | None = None) -> str:
        """The Cache-Control of an answer by this file, which holds until an instant (Unix seconds, None: always)."""
        freshness, snapshot = cached.freshness, cached.snapshot
        if freshness is None or snapshot is None or freshness.state is not State.FRESH:
            return NO_STORE
        left = freshness.recheck_at - now
        if max_age is not None:
            left = min(left, snapshot.fetched_at + max_age - now)
        if until is not None:
            left = min(left, until - now)
        if left >= self._seconds:
            return self._longest
        return _private(int(left)) if left >= 1 else NO_STORE


class NotModifiedResponse(Response):
    """A 304, with the fields that the answer would have (RFC 9110 15.4.5)."""

    def __init__(self, tag: EntityTag, lifetime: str) -> None:
        self.status_code = 304
        self.background = None
        self.body = b""
        self.raw_headers = [(b"cache-control", lifetime.encode("ascii")), (b"etag", tag.field)]


def if_none_match(scope: Scope) -> bytes | None:
    """The value of If-None-Match, of all its lines; None without one. The server bounds it as a part of the head."""
    lines = [value for name, value in scope["headers"] if name == b"if-none-match"]
    return b",".join(lines) if lines else None


def _private(seconds: int) -> str:
    return f"private, max-age={seconds}"
