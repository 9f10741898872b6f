"""Lines of input that cannot be read."""

import sys

from tqdm import tqdm

from app.cli.formatting import printable

REPORTED_LINES = 10
"""Unreadable lines that are reported one by one."""


def report_unreadable(count: int, number: int, message: str) -> None:
    """Report the line with this number, the `count`th that is unreadable; those after REPORTED_LINES are left out."""
    if count <= REPORTED_LINES:
        more = "" if count < REPORTED_LINES else " (further lines are only counted)"
        tqdm.write(f"line {number}: {printable(message)}{more}", file=sys.stderr)
