"""The compiled part of the core is as pure as the rest: import-linter reads no Cython, so this does."""

import re
from pathlib import Path

import pytest

import app.robots.compiled

FOLDER = Path(app.robots.compiled.__path__[0])
SOURCES = sorted(path.name for pattern in ("*.pyx", "*.pxd") for path in FOLDER.glob(pattern))

PURE = re.compile(r"cython|libc\.\w+|cpython\.\w+|collections\.abc|os|app\.robots(\.\w+)*")
IMPORT = re.compile(r"^\s*(?:from\s+([\w.]+)\s+)?c?import\s+(.+)", re.MULTILINE)


def imports(source: str) -> list[str]:
    return [module or names for module, names in IMPORT.findall(source)]


def test_there_are_modules() -> None:
    assert "patterns.pyx" in SOURCES


def test_every_import_is_seen() -> None:
    written = "import a\nfrom b.c import (\n    d,\n)\ncimport e\n    from f cimport g\nimportant = 1\n"
    assert imports(written) == ["a", "b.c", "e", "f"]


@pytest.mark.parametrize("name", SOURCES)
def test_a_module_needs_nothing_that_does_input_or_output(name: str) -> None:
    source = (FOLDER / name).read_text(encoding="utf-8")
    assert [module for module in imports(source) if not PURE.fullmatch(module)] == []
    # Of the operating system, nothing but a seed that nobody can foresee.
    assert set(re.findall(r"from os import (.+)", source)) <= {"urandom"}
