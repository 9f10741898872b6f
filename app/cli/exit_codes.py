"""Exit codes that scripts can rely on, and the exception for commands that fail."""

import argparse
import sys
from collections.abc import Iterable
from typing import NoReturn

from robots_core.robots.verdict import Permission

ALLOW, DISALLOW, DEFER, ERROR = 0, 1, 2, 3
"""Exit codes of `decide` and `test`; every command exits with ERROR when it fails."""

SOUND, FAULTY = 0, 1
"""Exit codes of commands that verify: nothing is wrong; something is."""

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


def worst(decisions: Iterable[str]) -> int:
    """DISALLOW if any decision is disallow, else DEFER if any is defer, else ALLOW."""
    found = set(decisions)
    codes = {Permission.DISALLOW: DISALLOW, Permission.DEFER: DEFER}
    return next((code for decision, code in codes.items() if decision in found), ALLOW)
