"""deploy/release.py: which files it changes, and that no other file has the version."""

import importlib.util
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent.parent
OTHERS = ("CHANGELOG.md", "locks/", "tests/", "docs/page", "build/", "dist/", "deploy/release.py", "docs/status")
"""Where the version may stand for a release of the past, or for something else."""

BINARY = {".png", ".parquet", ".gz", ".dict", ".woff2", ".ico", ".der", ".bin"}


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / "deploy" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


release = load()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the files with the version."""
    for name in (*release.FILES, release.CHANGELOG, "tests/upgrade/last-release"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def with_version(version: str) -> set[str]:
    """The files of the repository that have the version."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True, check=True).stdout
    names = [name for name in listed.splitlines() if not name.startswith(OTHERS)]
    files = [name for name in names if (ROOT / name).is_file() and Path(name).suffix not in BINARY]
    pattern = release.occurrences(version)
    return {name for name in files if pattern.search((ROOT / name).read_text(errors="replace"))}


def test_every_file_with_the_version_is_known() -> None:
    assert with_version(release.current(ROOT)) == set(release.FILES)


def test_a_release_changes_every_file_and_the_next_one_again(tree: Path) -> None:
    old = release.current(tree)
    release.release(tree, "7.8.9", "2030-01-02", "https://git.example.org/robots/")
    assert release.current(tree) == "7.8.9"
    assert "\n## 7.8.9 (2030-01-02)\n" in (tree / "CHANGELOG.md").read_text()
    for name in release.FILES:
        text = (tree / name).read_text()
        if name.endswith(release.OF_OTHERS):
            assert text.count('"version": "7.8.9"') == 2
            continue
        assert not release.occurrences(old).search(text), name
        assert release.occurrences("7.8.9").search(text), name
        assert release.PLACEHOLDER not in text, name
    assert 'Repository = "https://git.example.org/robots"' in (tree / "pyproject.toml").read_text()
    with pytest.raises(release.Refused, match="released already"):
        release.release(tree, "7.9.0", "2030-01-03", None)
    release.begin(tree, "7.9.0", "abc")
    assert (tree / "CHANGELOG.md").read_text().count("\n## 7.9.0 (unreleased)\n\n## 7.8.9 (2030-01-02)\n") == 1
    assert (tree / "tests/upgrade/last-release").read_text() == "abc\n"
    with pytest.raises(release.Refused, match="not released yet"):
        release.begin(tree, "8.0.0", "abc")
    release.release(tree, "7.9.0", "2030-02-02", None)


def test_a_release_without_an_address_is_refused_and_changes_nothing(tree: Path) -> None:
    before = {name: (tree / name).read_text() for name in release.FILES}
    with pytest.raises(release.Refused, match="set REPOSITORY"):
        release.release(tree, "7.8.9", "2030-01-02", None)
    (tree / "Dockerfile").write_text("FROM scratch\n")
    with pytest.raises(release.Refused, match=r"^Dockerfile does not have the version"):
        release.set_version(tree, release.current(tree), "7.8.9")
    assert {name: (tree / name).read_text() for name in release.FILES if name != "Dockerfile"} == {
        name: text for name, text in before.items() if name != "Dockerfile"
    }


@pytest.mark.parametrize("text", ["192.0.2.0/24", "10.2.0", "0.2.01", "0.2.0.1"])
def test_a_longer_number_is_no_version(text: str) -> None:
    assert not release.occurrences("0.2.0").search(text)


@pytest.mark.parametrize("text", ["v0.2.0", "robots-decisions:0.2.0.", "==0.2.0,", "0.2.0-rc"])
def test_a_version_is_found_in_text(text: str) -> None:
    assert release.occurrences("0.2.0").search(text)
