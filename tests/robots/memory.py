"""Measure the memory of parsed files, in a separate process: PYTHONMALLOC=malloc `python -m tests.robots.memory`.

tracemalloc does not see allocations of C code, so all allocations go to malloc, which reports the bytes in use.
"""

import ctypes
import gc
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from robots_core.robots.agents import read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.robots_txt import RobotsTxt

Question: TypeAlias = tuple[str, str, list[str]]
"""A body, in which each character is a byte, a dialect, and agents."""


class Cost(NamedTuple):
    """A file's `size` and `memory`, and the bytes that it takes."""

    size: int
    memory: int
    taken: int


PATHS = ("/", "/a/aaaa?x:y", "/catalog/x/aaaa/" + "ab" * 50, "/catalog/x/aaaa/?" + "abcdefgh:" * 150)


class _MallInfo(ctypes.Structure):
    _fields_ = [(f"field_{number}", ctypes.c_size_t) for number in range(10)]


def costs(questions: Sequence[Question]) -> list[Cost]:
    """What each file costs, judged for its agents."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.robots.memory"],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent.parent.parent,
        env={**os.environ, "PYTHONMALLOC": "malloc"},
    )
    return [Cost(*numbers) for numbers in json.loads(run.stdout)]


def in_use() -> int:
    """The bytes that malloc has in use."""
    gc.collect()
    library = ctypes.CDLL(None)
    library.mallinfo2.restype = _MallInfo
    found = library.mallinfo2()
    return int(found.field_4 + found.field_7)  # hblkhd and uordblks


def keep(body: bytes, dialect: str, agents: Sequence[str]) -> RobotsTxt:
    """Parse a file and judge it, so that its caches are filled."""
    robots = RobotsTxt(body)
    reading = robots.reading(DIALECTS[dialect])
    for agent in map(read_agent, agents):
        selection = reading.select(agent)
        if selection is not None:
            reading.terms(selection, agent)
        for path in PATHS:
            reading.judge(agent, path)
    return robots


def main() -> None:
    """Read the questions from stdin, and write the sizes to stdout."""
    gc.freeze()  # or each measurement would visit all that was imported
    found = []
    for text, dialect, agents in json.load(sys.stdin):
        body = text.encode("latin-1")
        keep(body, dialect, agents)
        before = in_use()
        robots = keep(body, dialect, agents)
        found.append(Cost(robots.size, robots.memory, in_use() - before + len(body)))
        del robots
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
