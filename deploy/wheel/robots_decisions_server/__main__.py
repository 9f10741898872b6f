"""`robots-decisions-server`, or `python -m robots_decisions_server`: the commands of the service."""

import sys
from importlib import import_module
from pathlib import Path

IMPORT_PATH = Path(__file__).with_name("_import_path")


def main() -> int:
    """Run the command in the arguments and return its exit code."""
    # First, so that an `app` in the working directory or in PYTHONPATH is not taken for this one. Workers inherit it.
    sys.path.insert(0, str(IMPORT_PATH))
    sys.argv[0] = "robots-decisions-server"
    code: int = import_module("app.__main__").main()
    return code


if __name__ == "__main__":
    sys.exit(main())
