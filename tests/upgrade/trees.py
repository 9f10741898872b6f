"""The tree of the last release, from the history: `last-release` names its commit.

When a release is made, that file gets its commit; before the first one, it says HEAD.

A change of what is in the store has to read what that tree writes, and to write what it reads, for one release. Both
trees run with the libraries of this one, so the commit must need no others.
"""

import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAME = Path(__file__).with_name("last-release").read_text().strip()
SECONDS = 600


def last_release() -> Path:
    """A directory with the tree, whose core is compiled; it is kept in build/upgrade."""
    found = subprocess.run(["git", "rev-parse", NAME], cwd=ROOT, capture_output=True, text=True, check=True)
    commit = found.stdout.strip()
    tree = ROOT / "build" / "upgrade" / commit
    done = tree / ".compiled"
    if not done.exists():
        shutil.rmtree(tree, ignore_errors=True)
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, timeout=SECONDS, check=True)
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(tree, filter="data")
        compile_core(tree)
        done.touch()
    return tree


def compile_core(tree: Path) -> None:
    """Compile the core of a tree in place, in its folder `core`."""
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    quick = {**os.environ, "CFLAGS": "-g0"}  # without what debuggers read
    subprocess.run(command, cwd=tree / "core", env=quick, timeout=SECONDS, check=True)
