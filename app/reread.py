"""Files that are read at the start and reloaded on SIGHUP, or when they have changed."""

import asyncio
import logging
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

from app.background import periodically

_log = logging.getLogger(__name__)

T = TypeVar("T")


class Reread(Generic[T]):
    """The content of a file. A failed reload leaves `value` unchanged."""

    def __init__(self, name: str, path: Path, load: Callable[[Path], T]) -> None:
        """Load the file at `path`, the value of the setting `name`. `load` raises ValueError for an invalid file."""
        self._name = name
        self._path = path
        self._load = load
        self._wanted = False
        self._reloading: asyncio.Task[None] | None = None
        self._version = version(path)
        self.value = load(path)

    def reload(self) -> None:
        """Reload the file in the background: as it is now, or as a later change leaves it. The result is logged."""
        self._wanted = True
        if self._reloading is None or self._reloading.done():
            self._reloading = asyncio.create_task(self._read())

    async def reload_if_changed(self) -> None:
        """Reload the file if it is another one, or has been written to, since it was last read."""
        if await asyncio.to_thread(version, self._path) != self._version:
            self.reload()

    async def end(self) -> None:
        """Wait for a reload in progress."""
        if self._reloading is not None:
            await asyncio.wait([self._reloading])

    async def _read(self) -> None:
        # One reload at a time, so that an older one cannot end last. In a thread, so that no request waits for it.
        while self._wanted:
            self._wanted = False
            try:
                self._version = await asyncio.to_thread(version, self._path)
                value = await asyncio.to_thread(self._load, self._path)
            except ValueError as error:
                _log.error(
                    "cannot reload %s=%s, so its previous content stays in force: %s", self._name, self._path, error
                )
            else:
                self.value = value
                _log.info("reloaded %s=%s", self._name, self._path)


def version(path: Path) -> tuple[int, ...] | None:
    """What tells a file from an earlier one at that path, or None if it is missing.

    The inode changes when a file is replaced, as in a mounted Secret or ConfigMap, where the path leads through
    symbolic links to a new directory.
    """
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


@asynccontextmanager
async def on_sighup(*files: Reread[Any]) -> AsyncIterator[None]:
    """While the block lasts, reload the files on SIGHUP, if this platform and this thread can handle the signal."""

    def reload_all() -> None:
        for file in files:
            file.reload()

    loop = asyncio.get_running_loop()
    handles = bool(files) and hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread()
    if handles:
        loop.add_signal_handler(signal.SIGHUP, reload_all)
    try:
        yield
    finally:
        if handles:
            loop.remove_signal_handler(signal.SIGHUP)
        for file in files:
            await file.end()


def on_change(every: float, *files: Reread[Any]) -> AbstractAsyncContextManager[None]:
    """While the block lasts, look at the files every `every` seconds and reload those that have changed."""

    async def look() -> None:
        for file in files:
            await file.reload_if_changed()

    return periodically(look, every)
