"""What commands print. Text of sites is escaped so that it cannot control a terminal, and verdicts have colours there.

NO_COLOR turns the colours off (https://no-color.org).
"""

import os
import sys
from collections.abc import Iterable

from app.observability.logs import printable
from robots_core.lint.advice import Advice
from robots_core.robots.verdict import Permission

_COLOURS = {Permission.ALLOW: "32", Permission.DISALLOW: "31", Permission.DEFER: "33"}


def show(line: str) -> None:
    """Print a line on standard output."""
    sys.stdout.write(printable(line) + "\n")


def show_verdict(first: str, *others: str) -> None:
    """Print the lines about a verdict, which the first one begins with."""
    sys.stdout.writelines(f"{line}\n" for line in (_coloured(first), *others))


def show_warnings(warnings: Iterable[Advice], place: str) -> None:
    """Print warnings about the robots.txt at a place on standard error, as compilers write them."""
    for warning in warnings:
        sys.stderr.write(printable(f"{place}:{warning.line}: {warning.code}: {warning.message}") + "\n")


def _coloured(line: str) -> str:
    """The line with the verdict that it begins with in green, red or yellow, if standard output is a terminal."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not sys.stdout.isatty():
        return line
    for verdict, code in _COLOURS.items():
        if line.startswith(verdict):
            return f"\x1b[{code}m{verdict}\x1b[0m{line.removeprefix(verdict)}"
    return line
