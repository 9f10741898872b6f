"""Colours for verdicts, on terminals only; NO_COLOR turns them off (https://no-color.org)."""

import os
import sys

from robots_core.robots.verdict import Permission

_CODES = {Permission.ALLOW: "32", Permission.DISALLOW: "31", Permission.DEFER: "33"}


def coloured(line: str) -> str:
    """The line with the verdict that it begins with in green, red or yellow, if standard output is a terminal."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not sys.stdout.isatty():
        return line
    for verdict, code in _CODES.items():
        if line.startswith(verdict):
            return f"\x1b[{code}m{verdict}\x1b[0m{line.removeprefix(verdict)}"
    return line
