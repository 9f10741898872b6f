"""The tree of the last release, from the history: `last-release` names its commit.

When a release is made, that file gets its commit. A change of what is in the store has to read what that tree writes,
and to write what it reads, for one release. Both trees run with the libraries of this one, so the commit must need no
others.
"""

import io
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMIT = Path(__file__).with_name("last-release").read_text().strip()
NATIVE = Path("app") / "robots" / "_native"
SECONDS = 600


def last_release() -> Path:
    """A directory with the tree, whose core is compiled; it is kept in build/upgrade."""
    tree = ROOT / "build" / "upgrade" / COMMIT
    done = tree / ".compiled"
    if not done.exists():
        shutil.rmtree(tree, ignore_errors=True)
        archive = subprocess.run(["git", "archive", COMMIT], cwd=ROOT, capture_output=True, timeout=SECONDS, check=True)
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(tree, filter="data")
        compile_core(tree)
        done.touch()
    return tree


def compile_core(tree: Path) -> None:
    """Compile the core of a tree, or take this tree's if the sources are the same."""
    if sources(tree) == sources(ROOT):
        for built in (ROOT / NATIVE).glob("*.so"):
            shutil.copy2(built, tree / NATIVE)
        return
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    subprocess.run(command, cwd=tree, timeout=SECONDS, check=True)


def sources(tree: Path) -> dict[str, bytes]:
    """What the core is compiled from."""
    files = [tree / "setup.py", *(path for path in (tree / NATIVE).iterdir() if path.suffix in (".pyx", ".pxd", ".h"))]
    return {path.name: path.read_bytes() for path in files}
