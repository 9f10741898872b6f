"""Exit codes that scripts can rely on, and the exception for a command that fails."""

import argparse
import sys
from typing import NoReturn

ALLOW, DISALLOW, DEFER, ERROR = 0, 1, 2, 3
"""Exit codes; every command exits with ERROR when it fails."""

INTERRUPTED = 130
"""The exit code that shells report after Ctrl-C."""


class Failed(Exception):
    """The command failed; the text says why, as a sentence."""


class Parser(argparse.ArgumentParser):
    """An argument parser that exits with ERROR: the 2 of argparse would read as defer."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and the error, and exit."""
        self.print_usage(sys.stderr)
        self.exit(ERROR, f"{self.prog}: {message}\n")
