"""Files that are read at the start and reloaded on SIGHUP, or when they have changed."""

import asyncio
import logging
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

from app.loop.background import BackgroundTask, Surviving, periodically

_log = logging.getLogger(__name__)

T = TypeVar("T")


class ReloadedFile(Generic[T]):
    """The content of a file, or of several that belong together.

    A failed reload leaves `value` unchanged; `refused` is true until one succeeds.
    """

    def __init__(self, name: str, load: Callable[[], T], *paths: Path) -> None:
        """Load the files at `paths`, which the log calls `name`. `load` raises ValueError for an invalid file."""
        self.name = name
        self._load = load
        self.paths = paths
        self._wanted = False
        self._reloading: asyncio.Task[None] | None = None
        self._versions = self._versions_now()
        self.value = load()
        self.refused = False

    def reload(self) -> None:
        """Reload the file in the background: as it is now, or as a later change leaves it. The result is logged."""
        self._wanted = True
        if not self._in_progress:
            self._reloading = asyncio.create_task(self._read(), name=BackgroundTask.RELOADS)

    async def reload_if_changed(self) -> None:
        """Reload the file if it is another one, or has been written to, since it was last read."""
        changed = await asyncio.to_thread(self._versions_now) != self._versions
        # A reload in progress will have the change, or the next call finds it: several callers notice one change.
        if changed and not self._in_progress:
            self.reload()

    async def current(self) -> T:
        """The content as it is now; `value` if it cannot be loaded."""
        await self.reload_if_changed()
        await self.end()
        return self.value

    async def end(self) -> None:
        """Wait for a reload in progress."""
        if self._reloading is not None:
            await asyncio.wait([self._reloading])

    @property
    def _in_progress(self) -> bool:
        return self._reloading is not None and not self._reloading.done()

    async def _read(self) -> None:
        # One reload at a time, so that an older one cannot end last. In a thread, so that no request waits for it.
        while self._wanted:
            self._wanted = False
            with Surviving(BackgroundTask.RELOADS, self.name):
                await self._read_once()

    async def _read_once(self) -> None:
        try:
            self._versions = await asyncio.to_thread(self._versions_now)
            value = await asyncio.to_thread(self._load)
        except ValueError as error:
            self.refused = True
            _log.error("cannot reload %s, so the previous content stays in force: %s", self.name, error)
        else:
            self.value, self.refused = value, False
            _log.info("reloaded %s", self.name)

    def _versions_now(self) -> list[tuple[int, ...] | None]:
        return [version(path) for path in self.paths]


def version(path: Path) -> tuple[int, ...] | None:
    """What tells a file from an earlier one at that path, or None if it is missing.

    The inode changes when a file is replaced, as in a mounted Secret or ConfigMap, where the path leads through
    symbolic links to a new directory.
    """
    try:
        found = path.stat()
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


@asynccontextmanager
async def on_sighup(*files: ReloadedFile[Any]) -> AsyncIterator[None]:
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


def on_change(every: float, *files: ReloadedFile[Any]) -> AbstractAsyncContextManager[None]:
    """While the block lasts, look at the files every `every` seconds and reload those that have changed."""

    async def look() -> None:
        for file in files:
            with Surviving(BackgroundTask.RELOADS, file.name):
                await file.reload_if_changed()

    return periodically(BackgroundTask.RELOADS, look, every)
