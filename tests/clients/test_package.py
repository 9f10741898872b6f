"""The package of the client: what is generated is current, and the conversation does no I/O."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from os import environ
from pathlib import Path

import pytest

from tests.clients.crawling import ROOT, SOURCES

PACKAGE = SOURCES / "robots_decisions"
GENERATE = ROOT / "clients" / "python" / "scripts" / "generate.py"
IO = {"asyncio", "aiohttp", "httpx", "httpx2", "requests", "scrapy", "crawlee", "socket", "ssl", "time"}
SANS_IO = [
    "conversation",
    "errors",
    "origin_queue",
    "outcomes",
    "pace",
    "parsing",
    "permits",
    "question",
    "verdicts",
    "waits",
]


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


def imported(path: Path) -> set[str]:
    """The modules that a module imports, in functions too; `from package import name` counts as package.name, too."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            names |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


@pytest.mark.parametrize("module", SANS_IO)
def test_conversation_does_no_io(module: str) -> None:
    assert not {name.split(".")[0] for name in imported(PACKAGE / f"{module}.py")} & (IO | {"app"})


def test_no_module_imports_itself_through_others() -> None:
    paths = [path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"]
    modules = {".".join(path.relative_to(SOURCES).with_suffix("").parts): path for path in paths}
    imports = {name: imported(path) & modules.keys() for name, path in modules.items()}
    assert sum(map(len, imports.values())) > len(modules)
    TopologicalSorter(imports).prepare()
