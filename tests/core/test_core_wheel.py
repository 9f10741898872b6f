"""One wheel, built from the source distribution, under every Python of the machine."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.core.answers import answers
from tests.robots.cases import CASES

ROOT = Path(__file__).parents[2]
ROWS = CASES / "verdict-cases.jsonl"
OLDEST = (3, 11)
SECONDS = 600
SOURCES = (".pyx", ".pxd", ".h")
DEPENDENCIES = ("http_sf", "idna", "typing_extensions")


def pythons() -> Iterator[tuple[tuple[int, int], str]]:
    """A Python of each minor version, on PATH and of pyenv, whose shims run only the chosen ones."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    folders = [*map(Path, os.environ["PATH"].split(":")), *sorted(root.glob("versions/*/bin"))]
    found = {sys.version_info[:2]: sys.executable}
    for python in (path for folder in folders for path in sorted(folder.glob("python3.[0-9]*"))):
        version = re.fullmatch(r"python3\.(\d+)", python.name)
        if version and (3, int(version[1])) >= OLDEST and (3, int(version[1])) not in found:
            asked = subprocess.run(
                [python, "-c", "import sys; print(sys.version_info[1])"], capture_output=True, text=True
            )
            if asked.stdout.strip() == version[1]:
                found[3, int(version[1])] = str(python)
    yield from sorted(found.items())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = ["sh", str(ROOT / "core" / "build.sh"), sys.executable, str(folder)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    [built] = folder.glob("*.whl")
    return built


@pytest.mark.timeout(2 * SECONDS)
def test_wheel_has_what_the_checkout_has(wheel: Path) -> None:
    assert "-cp311-abi3-" in wheel.name
    files = set(zipfile.ZipFile(wheel).namelist())
    listed = subprocess.run(["git", "ls-files", "robots_core"], cwd=ROOT / "core", capture_output=True, text=True)
    assert {name for name in listed.stdout.split() if not name.endswith(SOURCES)} - files == set()
    assert {name.partition("/")[0] for name in files} == {"robots_core", "robots_core-0.1.0.dist-info"}
    assert not {name for name in files if name.endswith((*SOURCES, ".c"))}
    assert {name.split(".", 1)[1] for name in files if name.endswith(".so")} == {"abi3.so"}


@pytest.mark.timeout(2 * SECONDS)
def test_wheel_answers_alike_under_every_python(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "wheel")
    for name in DEPENDENCIES:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        origin = Path(spec.origin)
        if origin.name == "__init__.py":
            shutil.copytree(origin.parent, tmp_path / "wheel" / name)
        else:
            shutil.copy(origin, tmp_path / "wheel")
    expected = json.loads(json.dumps(answers(ROWS.read_text(encoding="utf-8").splitlines())))
    program = (ROOT / "tests" / "core" / "answers.py").read_text()
    asked = []
    for version, python in pythons():
        script = f"import sys; sys.path.insert(0, {str(tmp_path / 'wheel')!r})\n{program}"
        command = [python, "-I", "-S", "-c", script, str(ROWS)]
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS)
        assert ended.returncode == 0, f"{python}\n{ended.stderr}"
        found = json.loads(ended.stdout)
        assert found["from"].startswith(str(tmp_path))
        assert found["answers"] == expected, python
        asked.append(version)
    assert sys.version_info[:2] in asked
