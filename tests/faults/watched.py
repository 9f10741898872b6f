"""The service as `python -m app` serves it, with additional routes that report on the process."""

import asyncio
import time

import uvicorn
from fastapi import FastAPI

from app.cli import serve
from app.loop.garbage import collect
from app.main.server.connection_limits import raise_file_limit
from app.main.settings import Settings
from app.observability.event_loop import sample_lag

SAMPLE_EVERY = 0.005


class Pauses:
    """The longest pause since it was last read, without the time in which the process waited for a processor."""

    def __init__(self) -> None:
        self._longest = 0.0
        self._worked = time.thread_time()

    def observe(self, seconds: float) -> None:
        """Record a pause of the loop."""
        before, self._worked = self._worked, time.thread_time()
        self._longest = max(self._longest, min(seconds, self._worked - before))

    def read(self) -> float:
        """Return the longest pause in milliseconds, and reset it."""
        longest, self._longest = self._longest, 0.0
        return longest * 1000


def create() -> FastAPI:
    """The application with these routes."""
    app = serve.create()
    pauses = Pauses()
    sampling: set[asyncio.Task[None]] = set()

    async def sample() -> None:
        while True:
            await sample_lag(pauses.observe, every=SAMPLE_EVERY)

    @app.get("/tasks")
    async def tasks() -> int:
        """The number of tasks, without the counting and the sampling one."""
        return len(asyncio.all_tasks() - sampling) - 1

    @app.get("/pauses")
    async def longest_pause() -> dict[str, float]:
        """The longest pause of the loop since the last request, in milliseconds; the first request starts measuring."""
        if not sampling:
            sampling.add(asyncio.create_task(sample()))
        return {"loop": pauses.read()}

    @app.get("/collection")
    async def collection() -> float:
        """The CPU time of a full garbage collection, in milliseconds."""
        begun = time.thread_time()
        collect()
        return (time.thread_time() - begun) * 1000

    return app


if __name__ == "__main__":
    raise_file_limit()
    uvicorn.Server(serve.configuration(Settings.read(), "tests.faults.watched:create")).run()
