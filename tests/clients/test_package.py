"""The package of the client: what is generated is current, and the conversation does no I/O."""

import ast
import subprocess
import sys
from os import environ
from pathlib import Path

import pytest

from tests.clients.crawling import ROOT, SOURCES

PACKAGE = SOURCES / "robots_decisions"
GENERATE = ROOT / "clients" / "python" / "scripts" / "generate.py"
IO = {"asyncio", "aiohttp", "httpx", "httpx2", "scrapy", "crawlee", "socket", "ssl", "time"}
SANS_IO = ["conversation", "errors", "origin_queue", "outcomes", "parsing", "permits", "verdicts"]


def test_generated_modules_are_current() -> None:
    path = f"{Path(sys.executable).parent}:{environ['PATH']}"
    ended = subprocess.run(
        [sys.executable, str(GENERATE), "--check"],
        env={**environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_synchronous_half_has_no_asynchronous_code() -> None:
    for path in PACKAGE.glob("_sync/*.py"):
        kinds = {type(node) for node in ast.walk(ast.parse(path.read_text()))}
        assert not kinds & {ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await}
        assert "asyncio" not in path.read_text()


@pytest.mark.parametrize("module", SANS_IO)
def test_conversation_does_no_io(module: str) -> None:
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse((PACKAGE / f"{module}.py").read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    assert not imported & (IO | {"app"})
