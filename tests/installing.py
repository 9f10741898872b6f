"""Python environments of tests, which uv installs packages into: it takes a tenth of the time of pip."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
_SECONDS = 600


def run(*command: str | Path, **options: object) -> str:
    """The output of a command that succeeds, and runs in the repository unless told otherwise."""
    given = {"cwd": ROOT, **options}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False, **given)  # type: ignore[call-overload]
    assert ended.returncode == 0, f"{command}\n{ended.stdout}{ended.stderr}"
    return str(ended.stdout)


def new_environment(folder: Path) -> Path:
    """The Python of an environment without packages."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    return folder / "bin" / "python"


def uv(command: str, python: Path, *arguments: str | Path) -> str:
    """What `uv pip` says of the packages of a Python. It asks no index."""
    program = Path(sys.executable).with_name("uv")
    offline = ("--no-index",) if command == "install" else ()
    return run(program, "pip", command, "--offline", "--python", python, *offline, *arguments)
