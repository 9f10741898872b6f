"""RECHECK_FILE: the domain table, read at the start, and again at every SIGHUP."""

import asyncio
import logging
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from app.cache.recheck import TABLE_LIMIT, DomainTable, read_table

_log = logging.getLogger(__name__)


def load(path: Path) -> DomainTable:
    """The table that is in the file; ValueError says what is wrong with it."""
    try:
        with path.open("rb") as file:
            data = file.read(TABLE_LIMIT + 1)
    except OSError as error:
        raise ValueError(f"it cannot be opened: {error.strerror}") from None
    if len(data) > TABLE_LIMIT:
        raise ValueError(f"it is longer than {TABLE_LIMIT} octets")
    try:
        return read_table(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(f"it is no UTF-8: {error.reason} at octet {error.start}") from None


class RecheckFile:
    """The table in force; a file that cannot be read when it is read again changes nothing of it."""

    def __init__(self, path: Path) -> None:
        """Reads the file; ValueError says what is wrong with it."""
        self._path = path
        self._wanted = False
        self._reading: asyncio.Task[None] | None = None
        self.table = load(path)

    def reload(self) -> None:
        """Read the file again, behind; what it holds when this is called is what will be in force, or something newer.

        The log says what came of it.
        """
        self._wanted = True
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        # One reading at a time, so that an older one cannot end last. In a thread, since a long table takes seconds,
        # and nobody's answer is to wait for them.
        while self._wanted:
            self._wanted = False
            try:
                table = await asyncio.to_thread(load, self._path)
            except ValueError as error:
                _log.error(
                    "RECHECK_FILE=%s cannot be read, and the table that was in force stays: %s", self._path, error
                )
            else:
                self.table = table
                _log.info("RECHECK_FILE=%s was read again; suffixes: %d", self._path, len(table.rows))

    @asynccontextmanager
    async def reloaded_on_sighup(self) -> AsyncIterator[None]:
        """While the block lasts, SIGHUP reads the file again, where there is such a signal and it comes to us."""
        loop = asyncio.get_running_loop()
        hears = hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread()
        if hears:
            loop.add_signal_handler(signal.SIGHUP, self.reload)
        try:
            yield
        finally:
            if hears:
                loop.remove_signal_handler(signal.SIGHUP)
            if self._reading is not None:
                await asyncio.wait([self._reading])
