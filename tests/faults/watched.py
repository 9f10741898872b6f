"""The service as `python -m app` serves it, with routes more that tell what goes on in the process."""

import asyncio
import time

import uvicorn
from fastapi import FastAPI

from app.api.connection_limits import raise_file_limit
from app.cli import serve
from app.garbage import collect
from app.observability.event_loop import sample_lag
from app.settings import Settings

SAMPLE_EVERY = 0.005


class Pauses:
    """The longest pause since it was last told, in milliseconds."""

    def __init__(self) -> None:
        self._longest = 0.0

    def observe(self, seconds: float) -> None:
        """The loop was so late."""
        self._longest = max(self._longest, seconds)

    def told(self) -> float:
        """The longest, from which on it begins anew."""
        longest, self._longest = self._longest, 0.0
        return longest * 1000


def create() -> FastAPI:
    """The application that is watched."""
    app = serve.create()
    pauses = Pauses()
    sampling: set[asyncio.Task[None]] = set()

    @app.get("/tasks")
    async def tasks() -> int:
        """How many tasks there are beside the one that counts, and the one that samples."""
        return len(asyncio.all_tasks() - sampling) - 1

    @app.get("/pauses")
    async def longest_pause() -> dict[str, float]:
        """For how long the loop stood still at the longest since this was last asked; the first time begins it."""
        if not sampling:
            sampling.add(asyncio.create_task(sample_lag(pauses.observe, every=SAMPLE_EVERY)))
        return {"loop": pauses.told()}

    @app.get("/collection")
    async def collection() -> float:
        """The processor time of a garbage collection as the service makes one, in milliseconds."""
        begun = time.thread_time()
        collect()
        return (time.thread_time() - begun) * 1000

    return app


if __name__ == "__main__":
    raise_file_limit()
    uvicorn.Server(serve.configuration(Settings.read(), "tests.faults.watched:create")).run()
