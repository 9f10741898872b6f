"""What a distribution imports, it requires, and what it requires, it imports."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
DISTRIBUTIONS = {"app": "pyproject.toml", "core/robots_core": "core/pyproject.toml"}
FOUND_BY_NAME = {
    "fastapi-offline",  # its files of Swagger UI are served
    "s3fs",  # fsspec imports it for s3:// URLs
    "opentelemetry-exporter-otlp-proto-http",  # imported as opentelemetry.exporter, a namespace of many distributions
    "uvloop",  # uvicorn imports it
    "pyarrow",  # an extra of robots-core, which this environment lacks
}
"""Requirements that no import statement shows, with the reason."""
ELSEWHERE = {
    "compression",  # Python 3.14's own
    "pyarrow",
}


def imported(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module.partition(".")[0]


@pytest.mark.parametrize(("folder", "project"), DISTRIBUTIONS.items())
def test_each_import_is_a_dependency_and_each_dependency_is_imported(folder: str, project: str) -> None:
    written = tomllib.loads((ROOT / project).read_text())["project"]
    extras = written.get("optional-dependencies", {}).values()
    texts = [*written["dependencies"], *(text for extra in extras for text in extra)]
    required = {canonicalize_name(Requirement(text).name) for text in texts}
    of = packages_distributions()
    names = set(imported(ROOT / folder)) - set(sys.stdlib_module_names) - {Path(folder).name} - ELSEWHERE
    used = {name: {canonicalize_name(it) for it in of[name]} for name in names}
    assert {name for name, owners in used.items() if not owners & required} == set()
    assert required - FOUND_BY_NAME - {owner for owners in used.values() for owner in owners} == set()


def test_each_lock_says_how_it_is_made() -> None:
    made = re.search(r"foreach name,([a-z ]+),", (ROOT / "Makefile").read_text())
    assert made is not None
    assert sorted(made[1].split()) == sorted(path.stem for path in (ROOT / "locks").iterdir())
