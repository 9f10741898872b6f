"""Files that are read again at SIGHUP, as the domain table is."""

import asyncio
import logging
import os
import signal
from pathlib import Path

import pytest

from app.cache.recheck_file import load
from app.reread import Reread, on_sighup


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "recheck.toml"
    path.write_text('"a.example" = {delay = "1h"}')
    return path


def write(path: Path, text: str | None) -> None:
    path.unlink(missing_ok=True)
    if text is not None:
        path.write_text(text)


class Lines(logging.Handler):
    """What is logged, and an event at each of it."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.loop = asyncio.get_running_loop()
        self.logged = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        self.logged.set()


async def test_sighup_rereads_the_file_and_an_invalid_one_changes_nothing(path: Path) -> None:
    lines = Lines()
    log = logging.getLogger("app.reread")
    log.addHandler(lines)
    log.setLevel(logging.INFO)
    file = Reread("RECHECK_FILE", path, load)
    try:
        async with on_sighup(file):
            write(path, '"b.example" = {delay = "2h"}')
            await hang_up(lines)
            assert list(file.value.rows) == ["b.example"]
            write(path, '"c.example" = {delay = "2h"}\n"d.example" = {delay = "x"}')
            await hang_up(lines)
            assert list(file.value.rows) == ["b.example"]
            assert "'d.example' has delay = 'x'" in lines.lines[-1]
            write(path, None)
            await hang_up(lines)
            assert list(file.value.rows) == ["b.example"]
    finally:
        log.removeHandler(lines)
        log.setLevel(logging.NOTSET)


async def hang_up(lines: Lines) -> None:
    lines.logged.clear()
    os.kill(os.getpid(), signal.SIGHUP)
    await lines.logged.wait()
    await asyncio.sleep(0)


async def test_the_file_at_the_time_of_a_reload_is_in_force_after_it(path: Path) -> None:
    file = Reread("RECHECK_FILE", path, load)
    async with on_sighup(file):
        for number in range(20):
            write(path, f'"{number}a.example" = {{delay = "2h"}}')
            file.reload()
            await asyncio.sleep(0)
    assert list(file.value.rows) == ["19a.example"]
