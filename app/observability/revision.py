"""Which commit of the source this is."""

import subprocess
from pathlib import Path

UNKNOWN = "unknown"

LENGTH = 12
"""Digits of a commit that are shown."""


def checked_out(folder: Path) -> str:
    """The commit that Git has checked out in a folder, not in one above it; UNKNOWN if there is none, or no Git."""
    command = ("git", f"--git-dir={folder / '.git'}", "rev-parse", "--verify", f"--short={LENGTH}", "HEAD")
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603 - no shell, and one folder
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN


def _built(folder: Path) -> str:
    """What the build of an image or a wheel has written beside this module, or the commit of this clone."""
    try:
        return (folder / "REVISION").read_text().strip()[:LENGTH] or UNKNOWN
    except OSError:
        return checked_out(folder.parent)


REVISION = _built(Path(__file__).parents[1])
