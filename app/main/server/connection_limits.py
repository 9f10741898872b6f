"""Limits on all connections of a process together: their number, and the bytes of unread answers."""

import resource
from asyncio import WriteTransport
from functools import cache

from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.problems import Problem

UNREAD_LIMIT = 128 * 1024 * 1024
"""Bytes of answers that wait for slow readers, over all connections.

Beyond it, the connections that have read nothing for the longest time are closed. One connection may hold the body
of its last answer and 64 KiB.
"""

OPEN_FILES = 65_536
"""File descriptors that a process asks the system for."""

RESERVED_FILES = 2048
"""File descriptors left for fetches, DNS and the store: without one, a fetch would seem to fail at its origin."""

MAX_CONNECTIONS = 10_000

_ALWAYS_SERVED = frozenset({"/healthz", "/metrics"})


def raise_file_limit() -> None:
    """Raise this process's limit of file descriptors, as far as the system permits. Child processes inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@cache
def max_connections() -> int:
    """The number of connections served at once.

    Up to twice as many are answered 503; beyond that, connections are closed.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return min(MAX_CONNECTIONS, max(soft // 4, (soft - RESERVED_FILES) // 2))


class UnreadAnswers:
    """The transports of clients that have yet to read, longest waiting first, and the bytes that each of them holds."""

    def __init__(self, limit: int = UNREAD_LIMIT) -> None:
        self._limit = limit
        self._waiting: dict[WriteTransport, int] = {}
        self._total = 0

    def add(self, connection: WriteTransport, size: int) -> None:
        """Count `size` waiting bytes; abort the connections that have waited longest while the total is too large."""
        self._waiting[connection] = size
        self._total += size
        while self._total > self._limit:
            slowest = next(iter(self._waiting))
            self.remove(slowest)
            slowest.abort()

    def remove(self, connection: WriteTransport) -> None:
        """Forget a connection that has been read from, or has ended."""
        self._total -= self._waiting.pop(connection, 0)


class OverloadedApp:
    """Answers 503 in place of the application, except to health checks and metrics."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _ALWAYS_SERVED:
            await self._app(scope, receive, send)
            return
        detail = "This process has reached its limit of connections; try again in 1 s."
        problem = Problem("overloaded", detail, {"Connection": "close"}, retry_after=1)
        await problem.response()(scope, receive, send)
