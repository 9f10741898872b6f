"""What background tasks report: logged with a traceback, and counted."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from app.loop.background import TASK, BackgroundTask

LOG_EVERY = 60.0
"""Seconds in which at most LOGGED failures of a task are logged: it may fail many times a second."""

LOGGED = 10

_log = logging.getLogger(__name__)


class BackgroundFailures:
    """Logs and counts the failures of background tasks. `failed` is called for each; `monotonic` is in seconds."""

    def __init__(self, failed: Callable[[BackgroundTask], None], monotonic: Callable[[], float]) -> None:
        self._failed = failed
        self._monotonic = monotonic
        self._begun: dict[BackgroundTask, float] = {}
        self._count: dict[BackgroundTask, int] = {}

    def note(self, task: BackgroundTask, message: str, error: BaseException | None) -> None:
        """Count a failure, and log it unless many of the same task were logged lately."""
        self._failed(task)
        now = self._monotonic()
        if now - self._begun.get(task, -LOG_EVERY) >= LOG_EVERY:
            self._begun[task] = now
            self._count[task] = 0
        self._count[task] += 1
        if self._count[task] > LOGGED:
            return
        more = "; further failures are not logged for a while" if self._count[task] == LOGGED else ""
        _log.error("Unexpected error: %s, and continues with the next%s", message, more, exc_info=error)

    @asynccontextmanager
    async def noted(self) -> AsyncIterator[None]:
        """While the block lasts, note what is reported to the running event loop; the rest is left to its handler."""
        loop = asyncio.get_running_loop()
        before = loop.get_exception_handler()

        def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            task = context.get(TASK)
            if isinstance(task, BackgroundTask):
                self.note(task, context["message"], context.get("exception"))
            elif before is None:
                loop.default_exception_handler(context)
            else:
                before(loop, context)

        loop.set_exception_handler(handle)
        try:
            yield
        finally:
            loop.set_exception_handler(before)
