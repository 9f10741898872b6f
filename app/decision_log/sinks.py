"""Where the lines of the decision log go: standard output, a file, or a stream in the store."""

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from app.redis.guarded_client import GuardedClient, StoreDown

STREAM: Final = "robots:{decisions}"
LENGTH = 100_000
"""Lines that the stream keeps."""

_MODE: Final = 0o640


class SinkFailed(Exception):
    """The lines could not be written."""


class Sink(Protocol):
    """Takes lines; slow ones delay only the log."""

    async def write(self, lines: Sequence[bytes]) -> None:
        """Write the lines; raises SinkFailed if some of them were not written."""


class FileSink:
    """Appends to a file, which is opened anew for each write, so that it can be rotated; None is standard output."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    async def write(self, lines: Sequence[bytes]) -> None:
        """Write the lines in a thread; raises SinkFailed."""
        try:
            await asyncio.to_thread(self._write, b"".join(line + b"\n" for line in lines))
        except OSError as error:
            raise SinkFailed(str(error)) from error

    def _write(self, data: bytes) -> None:
        if self._path is None:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
            return
        # One write for all of it, since several processes may append to the file.
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, _MODE)
        try:
            while data:
                data = data[os.write(file, data) :]
        finally:
            os.close(file)


class StreamSink:
    """Adds to the stream STREAM in Redis or Valkey, in entries with the field `decision`."""

    def __init__(self, redis: GuardedClient) -> None:
        self._redis = redis
        self._client = redis.client

    async def write(self, lines: Sequence[bytes]) -> None:
        """Add the lines; raises SinkFailed."""
        with suppress(StoreDown):
            results = await self._redis.run(STREAM, lambda: self._add(lines))
            if results is not None and not any(isinstance(result, Exception) for result in results):
                return
        raise SinkFailed("the store did not take all lines")

    async def _add(self, lines: Sequence[bytes]) -> list[object]:
        pipeline = self._client.pipeline(transaction=False)
        for line in lines:
            pipeline.xadd(STREAM, {"decision": line}, maxlen=LENGTH, approximate=True)
        results: list[object] = await pipeline.execute(raise_on_error=False)
        return results
