"""Prepare a release: the version in every file that has it, and the date in the changelog.

python deploy/release.py VERSION: this version is released today. With --next, development towards it begins after a
release: the changelog gets a section, and tests/upgrade/last-release the commit that is checked out. REPOSITORY in the
environment replaces the address of the repository in every package.
"""

import argparse
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parent.parent
CHANGELOG = "CHANGELOG.md"
FILES = (
    "Dockerfile",
    "app/__init__.py",
    "clients/java/README.md",
    "clients/java/pom.xml",
    "clients/javascript/package-lock.json",
    "clients/javascript/package.json",
    "clients/python/pyproject.toml",
    "core/pyproject.toml",
    "deploy/helm/robots-decisions/Chart.yaml",
    "deploy/helm/robots-decisions/values-prod.yaml",
    "docs/how-to/container.md",
    "docs/how-to/java.md",
    "docs/how-to/kubernetes.md",
    "pyproject.toml",
    "openapi.json",
)
"""The files that have the version."""

OF_OTHERS = "package-lock.json"
"""A file that begins with the version, twice, and then has those of other packages."""

PLACEHOLDER = "https://git.example.com/robots-decisions"
"""The address of the repository until there is one."""

_HEADING = re.compile(r"^## (\S+)( \(.*\))?$", re.MULTILINE)
_VERSION = re.compile(r"\d+\.\d+\.\d+")


class Refused(ValueError):
    """The release cannot be prepared; the text says why."""


def occurrences(version: str) -> "re.Pattern[str]":
    """What finds a version that is not a part of a longer number, such as an address."""
    return re.compile(rf"(?<![\d.]){re.escape(version)}(?!\.?\d)")


def current(root: Path) -> str:
    """The version of the newest section of the changelog. Raises Refused."""
    found = _HEADING.search((root / CHANGELOG).read_text())
    if found is None:
        raise Refused(f"{CHANGELOG} has no section for a version")
    return found[1]


def set_version(root: Path, old: str, new: str) -> None:
    """Replace the version in FILES. Raises Refused if one of them does not have it."""
    texts = {name: (root / name).read_text() for name in FILES}
    for name, text in texts.items():
        if not occurrences(old).search(text):
            raise Refused(f"{name} does not have the version {old}")
    for name, text in texts.items():
        (root / name).write_text(occurrences(old).sub(new, text, count=2 if name.endswith(OF_OTHERS) else 0))


def set_repository(root: Path, address: str) -> None:
    """Replace the placeholder in every file of FILES that has it."""
    for name in FILES:
        text = (root / name).read_text()
        if PLACEHOLDER in text:
            (root / name).write_text(text.replace(PLACEHOLDER, address))


def release(root: Path, version: str, day: str, repository: str | None) -> None:
    """Make the unreleased section the one of this version. Raises Refused."""
    text = (root / CHANGELOG).read_text()
    newest = _HEADING.search(text)
    if newest is None or newest[2] != " (unreleased)":
        raise Refused(f"the newest section of {CHANGELOG} is released already; begin another with --next")
    if repository is not None:
        set_repository(root, repository.rstrip("/"))
    elif PLACEHOLDER in (root / "pyproject.toml").read_text():
        raise Refused(f"the packages name the repository {PLACEHOLDER}, a placeholder: set REPOSITORY to its address")
    set_version(root, newest[1], version)
    (root / CHANGELOG).write_text(text[: newest.start()] + f"## {version} ({day})" + text[newest.end() :])


def begin(root: Path, version: str, commit: str) -> None:
    """Begin the section of the next version, after `commit` was released. Raises Refused."""
    text = (root / CHANGELOG).read_text()
    newest = _HEADING.search(text)
    if newest is None or newest[2] == " (unreleased)":
        raise Refused(f"the newest section of {CHANGELOG} is not released yet")
    set_version(root, newest[1], version)
    (root / CHANGELOG).write_text(text[: newest.start()] + f"## {version} (unreleased)\n\n" + text[newest.start() :])
    (root / "tests" / "upgrade" / "last-release").write_text(f"{commit}\n")


def main() -> int:
    """Prepare what the arguments say; 1, with the reason, if that cannot be."""
    parser = argparse.ArgumentParser(description="Prepare a release.")
    parser.add_argument("version", help="such as 0.3.0")
    parser.add_argument("--next", action="store_true", help="begin the development of this version")
    arguments = parser.parse_args()
    try:
        if not _VERSION.fullmatch(arguments.version):
            raise Refused(f"{arguments.version!r} is not a version such as 0.3.0")
        if arguments.next:
            command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
            commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603
            begin(ROOT, arguments.version, commit)
        else:
            day = datetime.now(UTC).date().isoformat()
            release(ROOT, arguments.version, day, os.environ.get("REPOSITORY") or None)
    except Refused as refused:
        sys.stderr.write(f"{refused}.\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
