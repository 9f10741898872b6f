"""Which commit of the source this is."""

from pathlib import Path

UNKNOWN = "unknown"

LENGTH = 12
"""Digits of a commit that are shown."""


def checked_out(folder: Path) -> str:
    """The commit that Git has checked out in a folder, or UNKNOWN."""
    try:
        git = folder / ".git"
        if git.is_file():  # a worktree names its directory, and that names the one that all share
            git = folder / git.read_text().removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head[:LENGTH]
        shared = git / (git / "commondir").read_text().strip() if (git / "commondir").exists() else git
        return _commit(shared, head.removeprefix("ref: "))[:LENGTH]
    except OSError:
        return UNKNOWN


def _commit(git: Path, ref: str) -> str:
    """The commit of a branch. OSError is raised if the files cannot be read."""
    if (git / ref).exists():
        return (git / ref).read_text().strip()
    lines = (git / "packed-refs").read_text().splitlines()
    return next((line.partition(" ")[0] for line in lines if line.endswith(f" {ref}")), UNKNOWN)


def _built(folder: Path) -> str:
    """What the build of an image or a wheel has written beside this module, or the commit of this clone."""
    try:
        return (folder / "REVISION").read_text().strip()[:LENGTH] or UNKNOWN
    except OSError:
        return checked_out(folder.parent)


REVISION = _built(Path(__file__).parents[1])
