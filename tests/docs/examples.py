"""Run the examples of a Markdown page as its readers would, and compare the output with the page.

A page's blocks are run in order, in a directory with the files of the repository. What is done with a block depends on
its language, or on a comment in front of it, which readers of the page do not see:

    sh                             run it, and expect the exit code 0
    json                           compare it with the JSON that the block before it has printed
    text                           compare it with the output of the block before it
    python                         compile it
    <!-- run: exit N -->           run it, and expect this exit code
    <!-- run: background -->       start it, and wait until the service answers
    <!-- run: file NAME -->        write it to a file
    <!-- run: no, REASON -->       leave it out

`...` stands for anything: a value, further members or items, a part of a line, or any lines. Instants are equal, and so
are the members of VOLATILE.
"""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]

PATIENCE = 120
"""Seconds that a block may run, and that the service may take to start."""

DEMO = "make demo"
"""The command by which readers of most pages start a service and a site."""

VOLATILE = frozenset({"age", "wait"})
"""Members whose value is not compared."""

_SERVICE, _SITE, _CLOSED = "127.0.0.1:8080", "127.0.0.1:9000", "127.0.0.1:9001"
_SOURCES = frozenset({"memory", "store", "fetched", "revalidated"})
_MARK = re.compile(r"<!-- run: (.+?) -->")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_MORE = "..."
_LEFT_OUT = ("REDIS_URL", "API_KEYS_FILE", "ROBOTS_API_KEY", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")


class Block(NamedTuple):
    """A block of a page; `line` is the number of its first line, `mark` the comment in front of it."""

    line: int
    language: str
    text: str
    mark: str


def blocks(page: str) -> Iterator[Block]:
    """The blocks of code of a page, without those of Sphinx."""
    mark = ""
    for token in MarkdownIt().parse(page):
        if token.type == "html_block":
            found = _MARK.search(token.content)
            mark = found[1] if found else ""
        elif token.type == "fence":
            if not token.info.startswith("{"):
                assert token.map is not None
                yield Block(token.map[0] + 2, token.info.strip(), token.content, mark)
            mark = ""


class Reader:
    """Runs the examples of a page in order, in a directory with copies of the files and links to the folders of ROOT.

    A page that starts no service with settings of its own asks the one of another reader, `demo`, which ran DEMO.
    """

    def __init__(self, directory: Path, demo: "Reader | None" = None) -> None:
        self._directory = directory
        self._demo = demo
        self._state = directory / ".variables"
        self._ports = dict(zip((_SERVICE, _SITE, _CLOSED), _free_ports(3), strict=True))
        self._started: list[subprocess.Popen[bytes]] = []
        self._out = self._err = ""

    def __enter__(self) -> Self:
        for path in ROOT.iterdir():
            if path.name == ".git":
                continue
            here = self._directory / path.name
            if path.is_file():
                shutil.copy2(path, here)  # a command of a page may write to it
            else:
                here.symlink_to(path)
        (self._directory / "node_modules").mkdir()
        (self._directory / "node_modules" / "robots-decisions").symlink_to(ROOT / "clients" / "javascript")
        command = self._directory / ".bin" / "robots-decisions"  # as if the page's `pip install` had run
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m robots_decisions "$@"\n')
        command.chmod(0o755)
        (self._directory / ".curlrc").write_text("silent\nshow-error\n")
        self._state.touch()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._started:
            os.killpg(process.pid, signal.SIGTERM)
        for process in self._started:
            process.wait(PATIENCE)

    def follow(self, page: str) -> None:
        """Run a page. Raises AssertionError with the line if the page is wrong."""
        every = list(blocks(page))
        if self._demo is not None and all(block.text.strip() == DEMO for block in every if block.mark == "background"):
            self._ports = self._demo._ports
            every = [block for block in every if block.mark != "background"]
        for block in every:
            try:
                self._do(block)
            except AssertionError as error:
                raise AssertionError(f"line {block.line}: {error}\n{block.text}") from error

    def _do(self, block: Block) -> None:
        text = self._here(block.text)
        match block.mark.split(maxsplit=1), block.language:
            case ["no,", _], _:
                pass
            case ["file", name], _:
                (self._directory / name).unlink(missing_ok=True)
                (self._directory / name).write_text(text)
            case ["background"], "sh":
                self.start(text)
            case ["exit", code], "sh":
                self._run(text, int(code))
            case [], "sh":
                self._run(text, 0)
            case [], "json":
                check_json(read_json(block.text), json.loads(self._there(self._out)))
            case [], "text":
                check_text(block.text, self._there(self._out + self._err))
            case [], "python":
                compile(text, f"line {block.line}", "exec")
            case mark, language:
                raise AssertionError(f"a block of {language!r} cannot be run as {mark}")

    def _run(self, text: str, code: int) -> None:
        state = shlex.quote(str(self._state))
        script = f"set -ea; . {state}; {{\n{text}\n}}; export -p > {state}"
        ended = subprocess.run(
            ["bash", "-c", script],
            cwd=self._directory,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        self._out, self._err = ended.stdout, ended.stderr
        assert ended.returncode == code, f"exit code {ended.returncode}, not {code}:\n{self._out}{self._err}"

    def start(self, text: str) -> None:
        """Start a command, and wait until the service answers."""
        process = subprocess.Popen(
            ["bash", "-c", f"set -a; . {shlex.quote(str(self._state))}; {text}"],
            cwd=self._directory,
            env=self._environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._started.append(process)
        deadline = time.monotonic() + PATIENCE
        while not _answers(f"http://127.0.0.1:{self._ports[_SERVICE]}/readyz"):
            assert process.poll() is None, f"it has ended with {process.returncode}"
            assert time.monotonic() < deadline, "the service does not answer"
            time.sleep(0.1)

    def _environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}
        ports = {"PORT": str(self._ports[_SERVICE]), "SITE_PORT": str(self._ports[_SITE])}
        installed = {
            "PATH": f"{self._directory}/.bin:{ROOT}/.venv/bin:{inherited['PATH']}",
            "PYTHONPATH": str(ROOT / "clients" / "python" / "src"),  # as if the page's `pip install` had run
        }
        return {**inherited, **ports, **installed, "CURL_HOME": str(self._directory), "COLUMNS": "100"}

    def _here(self, text: str) -> str:
        for address, port in self._ports.items():
            text = text.replace(address, f"127.0.0.1:{port}")
        return text

    def _there(self, text: str) -> str:
        for address, port in self._ports.items():
            text = text.replace(f"127.0.0.1:{port}", address)
        return text


def read_json(text: str) -> Any:
    """JSON in which `...` may stand for a value, members or items."""
    text = re.sub(r"([,\[])(\s*)\.\.\.(?=\s*\])", rf'\1\2"{_MORE}"', text)
    text = re.sub(r"([,{])(\s*)\.\.\.(?=\s*\})", rf'\1\2"{_MORE}": 0', text)
    return json.loads(text)


def check_json(expected: Any, actual: Any, place: str = "the answer") -> None:
    """Compare the JSON of a page with an answer; raises AssertionError."""
    if expected == _MORE:
        return
    if isinstance(expected, dict):
        assert isinstance(actual, dict), f"{place} is {actual!r}"
        more = _MORE in expected
        named = {name: value for name, value in expected.items() if name != _MORE}
        missing, unnamed = named.keys() - actual.keys(), actual.keys() - named.keys()
        assert not missing, f"{place} has no {sorted(missing)}, but {sorted(actual)}"
        assert more or not unnamed, f"{place} also has {sorted(unnamed)}"
        for name, value in named.items():
            if name in VOLATILE:
                assert type(actual[name]) is type(value), f"{place}.{name} is {actual[name]!r}"
            elif not (name == "source" and {value, actual[name]} <= _SOURCES):
                check_json(value, actual[name], f"{place}.{name}")
    elif isinstance(expected, list):
        assert isinstance(actual, list), f"{place} is {actual!r}"
        first = [item for item in expected if item != _MORE]
        assert len(actual) >= len(first), f"{place} has {len(actual)} items"
        assert _MORE in expected or len(actual) == len(first), f"{place} has {len(actual)} items"
        for number, item in enumerate(first):
            check_json(item, actual[number], f"{place}[{number}]")
    elif isinstance(expected, str) and isinstance(actual, str):
        assert _without_instants(expected) == _without_instants(actual), f"{place} is {actual!r}"
    else:
        assert expected == actual, f"{place} is {actual!r}"
        assert isinstance(expected, bool) is isinstance(actual, bool), f"{place} is {actual!r}"


def check_text(expected: str, actual: str) -> None:
    """Compare the text of a page with the output; raises AssertionError."""
    pattern = ""
    for line in _without_instants(expected).rstrip().splitlines(keepends=True):
        pattern += "(?:.*\n)*" if line.strip() == _MORE else re.escape(line).replace(r"\.\.\.", ".*")
    assert re.fullmatch(pattern + r"\s*", _without_instants(actual)), f"the output is\n{actual}"


def _without_instants(text: str) -> str:
    return _INSTANT.sub("<instant>", text)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=10):
            return True
    except OSError:
        return False


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
