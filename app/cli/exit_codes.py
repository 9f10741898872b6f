"""How commands end: exit codes that scripts can rely on, and one exception for what keeps them from it."""

import argparse
import sys
from collections.abc import Iterable
from typing import NoReturn

from app.robots.verdict import Permission

ALLOW, DISALLOW, DEFER, ERROR = 0, 1, 2, 3
"""What `check` and `test` end with. ERROR is what every command ends with that could not do its work."""

INTERRUPTED = 130
"""What a shell says of a command that Ctrl-C ended."""


class Failed(Exception):
    """The command cannot do its work; the text says why, as a sentence."""


class Parser(argparse.ArgumentParser):
    """Arguments that cannot be read end with ERROR: argparse's own 2 would read as a verdict."""

    def error(self, message: str) -> NoReturn:
        """Say how it is called, and what was wrong."""
        self.print_usage(sys.stderr)
        self.exit(ERROR, f"{self.prog}: {message}\n")


def worst(decisions: Iterable[str]) -> int:
    """DISALLOW if any of them is, else DEFER if any is, else ALLOW."""
    found = set(decisions)
    codes = {Permission.DISALLOW: DISALLOW, Permission.DEFER: DEFER}
    return next((code for decision, code in codes.items() if decision in found), ALLOW)
