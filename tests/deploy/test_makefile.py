"""What the targets of the Makefile install, and what they say where that cannot work."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
MAKEFILE = (ROOT / "Makefile").read_text()
OTHERS = {"help", "clean", "check", ".check-newest", ".generate-codemirror"}
"""Targets that run no Python, or look for one themselves."""

OLD_PYTHON = """#!/bin/sh
exec {python} -c 'import sys; sys.version_info = (3, 10, 13, "final", 0); exec(sys.argv[1])' "$2"
"""
"""A Python that says that it is 3.10."""


def targets() -> list[str]:
    """The targets that a person makes, and those that they stand for."""
    return sorted(set(re.findall(r"^(\.?[a-z-]+):(?= |$)", MAKEFILE, re.MULTILINE)) - OTHERS)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree in which nothing was installed or built."""
    tree = tmp_path_factory.mktemp("fresh")
    for path in ROOT.iterdir():
        if path.name not in {"build", "dist", ".venv", ".git"}:
            (tree / path.name).symlink_to(path)
    python = tree / "python3.10"
    python.write_text(OLD_PYTHON.format(python=sys.executable))
    python.chmod(0o755)
    return tree


@pytest.mark.parametrize("target", targets())
def test_python_that_is_too_old_is_named_at_once(target: str, fresh: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    made = subprocess.run(
        ["make", target, "PYTHON=./python3.10"], cwd=fresh, env=environment, capture_output=True, text=True
    )
    assert made.returncode == 2
    assert "Python 3.11 or later is needed; ./python3.10 is 3.10. Set PYTHON" in made.stderr
    assert not (fresh / ".venv").exists()


def targets_with_tests() -> list[tuple[str, str]]:
    """The targets of the Makefile whose recipe runs a module of `tests`, each with what it depends on."""
    found = []
    makefile = re.sub(r"^(?:ifeq .*|else|endif)\n", "", MAKEFILE, flags=re.MULTILINE)
    for rule in re.split(r"\n(?=\S)", makefile):
        head, _, recipe = rule.partition("\n")
        if "$(BIN)/python -m tests." in recipe:
            target, _, needed = head.partition("##")[0].partition(":")
            found.append((target, needed))
    return found


def test_targets_that_run_modules_of_tests_install_what_those_import() -> None:
    """A release made in a fresh clone ended in the middle: the environment had no YAML."""
    found = targets_with_tests()
    assert ".generate-documents" in dict(found)
    assert [target for target, needed in found if "$(VENV)/.dev" not in needed] == []


def test_generated_files_are_replaced_when_they_are_complete() -> None:
    """A generator that failed left an empty README of the chart."""
    recipe = re.search(r"^\.generate-documents:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert recipe is not None
    written = re.findall(r"> (\S+)(?: && mv \1 (\S+))?", recipe[1])
    assert [after for _, after in written] == ["openapi.json", "deploy/helm/robots-decisions/README.md"]


@pytest.mark.parametrize("target", ["check", "generate"])
def test_a_name_that_a_target_does_not_have_is_refused(target: str) -> None:
    made = subprocess.run(["make", target, "NAME=imge"], cwd=ROOT, capture_output=True, text=True)
    assert made.returncode == 2
    assert re.match(r"NAME is 'imge': expected one of (newest|documents) ", made.stderr)
