"""The versions of what is released together, and which commit runs."""

import json
import re
import subprocess
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from app import __version__
from app.observability.revision import LENGTH, UNKNOWN, checked_out

ROOT = Path(__file__).parent.parent


def in_pyproject(path: str) -> str:
    project: str = tomllib.loads((ROOT / path).read_text())["project"]["version"]
    return project


def in_pom() -> str | None:
    return ElementTree.parse(ROOT / "clients/java/pom.xml").findtext("{*}version")


def test_what_is_released_together_has_the_version_of_the_changelog() -> None:
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    versions = {
        "service": __version__,
        "server": in_pyproject("pyproject.toml"),
        "core": in_pyproject("core/pyproject.toml"),
        "python": in_pyproject("clients/python/pyproject.toml"),
        "javascript": json.loads((ROOT / "clients/javascript/package.json").read_text())["version"],
        "java": in_pom(),
    }
    assert versions == dict.fromkeys(versions, newest[1])


def git(folder: Path, *command: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    ended = subprocess.run(["git", "-C", folder, *identity, *command], capture_output=True, text=True, check=True)
    return ended.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with one commit."""
    folder = tmp_path / "clone"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "one")
    return folder


def test_revision_is_what_git_has_checked_out(clone: Path, tmp_path: Path) -> None:
    commit = git(clone, "rev-parse", "HEAD")[:LENGTH]
    assert checked_out(clone) == commit
    git(clone, "worktree", "add", "--quiet", "-b", "other", str(tmp_path / "worktree"))
    assert checked_out(tmp_path / "worktree") == commit
    git(clone, "pack-refs", "--all")
    assert not (clone / ".git/refs/heads/main").exists()
    assert (checked_out(clone), checked_out(tmp_path / "worktree")) == (commit, commit)
    git(clone, "checkout", "--quiet", "--detach")
    assert checked_out(clone) == commit


def test_folder_without_git_has_no_revision(tmp_path: Path) -> None:
    assert checked_out(tmp_path) == UNKNOWN
    git(tmp_path, "init", "--quiet")
    assert checked_out(tmp_path) == UNKNOWN
