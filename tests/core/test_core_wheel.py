"""One wheel, built from the source distribution, under every Python of the machine."""

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.core import library
from tests.core.answers import answers
from tests.core.questions import files, questions
from tests.robots.cases import CASES

ROOT = Path(__file__).parents[2]
ROWS = CASES / "verdict-cases.jsonl"
OLDEST = (3, 11)
SECONDS = 600
SOURCES = (".pyx", ".pxd", ".h")
DEPENDENCIES = ("http_sf", "idna", "typing_extensions")
FILES, ASKED, SEED = 500, 20_000, 20_261_124
FUZZED = """
import json, pickle, sys
import robots_core
sys.path.append(sys.argv[2])
from tests.core.library import answers
from tests.core.questions import Asked
with open(sys.argv[1], "rb") as file:
    bodies, asked = pickle.load(file)
found = answers(bodies, [Asked(*it) for it in asked])
json.dump({"from": robots_core.__file__, "answers": found}, sys.stdout)
"""


def pythons() -> Iterator[tuple[tuple[int, int], str]]:
    """A Python of each minor version, on PATH and of pyenv, whose shims run only the chosen ones."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    folders = [*map(Path, os.environ["PATH"].split(":")), *sorted(root.glob("versions/*/bin"))]
    found = {sys.version_info[:2]: sys.executable}
    for python in (path for folder in folders for path in sorted(folder.glob("python3.[0-9]*"))):
        minor = re.fullmatch(r"python3\.(\d+)", python.name)
        if minor and (3, int(minor[1])) >= OLDEST and (3, int(minor[1])) not in found:
            asked = subprocess.run(
                [python, "-c", "import sys; print(sys.version_info[1])"], capture_output=True, text=True
            )
            if asked.stdout.strip() == minor[1]:
                found[3, int(minor[1])] = str(python)
    yield from sorted(found.items())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = ["sh", str(ROOT / "core" / "build.sh"), sys.executable, str(folder)]
    quick = {**os.environ, "CFLAGS": "-g0"}  # what debuggers read is stripped from released wheels
    ended = subprocess.run(command, env=quick, capture_output=True, text=True, timeout=SECONDS)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    [built] = folder.glob("*.whl")
    return built


@pytest.mark.timeout(2 * SECONDS)
def test_wheel_has_what_the_checkout_has(wheel: Path) -> None:
    assert "-cp311-abi3-" in wheel.name
    files = set(zipfile.ZipFile(wheel).namelist())
    listed = subprocess.run(["git", "ls-files", "robots_core"], cwd=ROOT / "core", capture_output=True, text=True)
    assert {name for name in listed.stdout.split() if not name.endswith(SOURCES)} - files == set()
    assert {name.partition("/")[0] for name in files} == {
        "robots_core",
        f"robots_core-{version('robots-core')}.dist-info",
    }
    assert not {name for name in files if name.endswith((*SOURCES, ".c"))}
    assert {name.split(".", 1)[1] for name in files if name.endswith(".so")} == {"abi3.so"}


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and what it needs."""
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    for name in DEPENDENCIES:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        origin = Path(spec.origin)
        if origin.name == "__init__.py":
            shutil.copytree(origin.parent, folder / name)
        else:
            shutil.copy(origin, folder)
    return folder


def under_every_python(program: str, installed: Path, *arguments: Path) -> Iterator[tuple[str, Any]]:
    """Each Python of the machine, and what it prints: the answers of a program that imports the wheel."""
    script = f"import sys; sys.path.insert(0, {str(installed)!r})\n{program}"
    asked = []
    for release, python in pythons():
        command = [python, "-I", "-S", "-c", script, *map(str, arguments)]
        ended = subprocess.run(command, cwd=installed, capture_output=True, text=True, timeout=SECONDS)
        assert ended.returncode == 0, f"{python}\n{ended.stderr}"
        found = json.loads(ended.stdout)
        assert found["from"].startswith(str(installed))
        yield python, found["answers"]
        asked.append(release)
    assert sys.version_info[:2] in asked


@pytest.mark.timeout(2 * SECONDS)
def test_wheel_answers_each_case_under_every_python(installed: Path) -> None:
    expected = json.loads(json.dumps(answers(ROWS.read_text(encoding="utf-8").splitlines())))
    program = (ROOT / "tests" / "core" / "answers.py").read_text()
    for python, found in under_every_python(program, installed, ROWS):
        assert found == expected, python


@pytest.mark.timeout(2 * SECONDS)
def test_wheel_answers_fuzzed_questions_as_the_checkout(installed: Path, tmp_path: Path) -> None:
    bodies = files(SEED, FILES)
    asked = list(questions(SEED, bodies, ASKED))
    (tmp_path / "asked").write_bytes(pickle.dumps((bodies, [tuple(it) for it in asked])))
    expected = json.loads(json.dumps(library.answers(bodies, asked)))
    assert len({row[1] for row in expected}) > 10
    for python, found in under_every_python(FUZZED, installed, tmp_path / "asked", ROOT):
        assert len(found) == ASKED
        differ = [it for it in zip(asked, found, expected, strict=True) if it[1] != it[2]]
        assert differ == [], python
