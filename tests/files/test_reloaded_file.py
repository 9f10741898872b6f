"""Files that are reloaded on SIGHUP, such as the domain table."""

import asyncio
import logging
import os
import signal
from functools import partial
from pathlib import Path

import pytest

from app.cache.recheck_file import load
from app.files.reloaded_file import ReloadedFile, on_change, on_sighup
from tests.faults.until import until_so


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
    """Log lines, with an event for each."""

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
    log = logging.getLogger("app.files.reloaded_file")
    log.addHandler(lines)
    log.setLevel(logging.INFO)
    file = ReloadedFile("RECHECK_FILE", partial(load, path), path)
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
    file = ReloadedFile("RECHECK_FILE", partial(load, path), path)
    async with on_sighup(file):
        for number in range(20):
            write(path, f'"{number}a.example" = {{delay = "2h"}}')
            file.reload()
            await asyncio.sleep(0)
    assert list(file.value.rows) == ["19a.example"]


async def test_a_mounted_file_that_changes_is_reloaded_without_a_signal(tmp_path: Path) -> None:
    """As the kubelet does it: the file is a link into a directory that is a link, which is replaced."""
    for number in ("1", "2"):
        (tmp_path / number).mkdir()
        (tmp_path / number / "recheck.toml").write_text(f'"{number}a.example" = {{delay = "1h"}}')
    (tmp_path / "..data").symlink_to("1")
    (tmp_path / "recheck.toml").symlink_to("..data/recheck.toml")
    path = tmp_path / "recheck.toml"
    file = ReloadedFile("RECHECK_FILE", partial(load, path), path)
    async with on_change(0.01, file):
        (tmp_path / "new").symlink_to("2")
        (tmp_path / "new").rename(tmp_path / "..data")
        await until_so(lambda: list(file.value.rows) == ["2a.example"])


async def test_an_unchanged_file_is_not_read_again(path: Path) -> None:
    loads: list[Path] = []
    file = ReloadedFile("RECHECK_FILE", partial(loads.append, path), path)
    for _ in range(3):
        await file.reload_if_changed()
    await file.end()
    assert len(loads) == 1
    write(path, None)
    for _ in range(3):
        await file.reload_if_changed()
        await file.end()
    assert len(loads) == 2  # a file that is missing is reported once
