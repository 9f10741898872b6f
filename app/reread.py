"""Files that are read at the start, and again on SIGHUP."""

import asyncio
import logging
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

_log = logging.getLogger(__name__)

T = TypeVar("T")


class Reread(Generic[T]):
    """What a file holds; a file that cannot be read when it is read again changes nothing of `value`."""

    def __init__(self, name: str, path: Path, load: Callable[[Path], T]) -> None:
        """Reads the file that the setting `name` names; `load` raises ValueError, which says what is wrong with it."""
        self._name = name
        self._path = path
        self._load = load
        self._wanted = False
        self._reading: asyncio.Task[None] | None = None
        self.value = load(path)

    def reload(self) -> None:
        """Read the file again, behind; what it holds when this is called is what will be in force, or something newer.

        The log says what came of it.
        """
        self._wanted = True
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())

    async def end(self) -> None:
        """Wait for a reading that is under way."""
        if self._reading is not None:
            await asyncio.wait([self._reading])

    async def _read(self) -> None:
        # One reading at a time, so that an older one cannot end last. In a thread, so that no answer waits for it.
        while self._wanted:
            self._wanted = False
            try:
                value = await asyncio.to_thread(self._load, self._path)
            except ValueError as error:
                _log.error("%s=%s cannot be read, and what was in force stays: %s", self._name, self._path, error)
            else:
                self.value = value
                _log.info("%s=%s was read again", self._name, self._path)


@asynccontextmanager
async def on_sighup(*files: Reread[Any]) -> AsyncIterator[None]:
    """While the block lasts, SIGHUP has all of these read again, where there is such a signal and it comes to us."""

    def hang_up() -> None:
        for file in files:
            file.reload()

    loop = asyncio.get_running_loop()
    hears = bool(files) and hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread()
    if hears:
        loop.add_signal_handler(signal.SIGHUP, hang_up)
    try:
        yield
    finally:
        if hears:
            loop.remove_signal_handler(signal.SIGHUP)
        for file in files:
            await file.end()
