"""Checks of Robot-version 2.0 and of obsolete statements (spec F10 to F12, G7, G9)."""

from collections.abc import Iterator
from typing import Final

from robots_core.lint.advice import Warned, name_of, show
from robots_core.lint.checked_file import CheckedFile
from robots_core.robots.lines import Key, codes_of


def version_misplaced(file: CheckedFile) -> Iterator[Warned]:
    """Robot-version that is not directly below the agents, or not 2.0."""
    groups = file.version_2_groups
    if groups is None:
        return
    placed = {group.version_position for group in groups if group.version_2}
    for position in file.positions(codes_of({Key.ROBOT_VERSION})):
        if position not in placed:
            shown = show(file.scan.lines.value(position))
            message = f"Robot-version {shown} has no effect here. Put 'Robot-version: 2.0' right below the agents."
            yield Warned(file.number(position), message)


def v2_root_only(file: CheckedFile) -> Iterator[Warned]:
    """A '/' that matches only the root page (spec Q1)."""
    for line, key, value in file.globs.values():
        if value == b"/":
            instead = f"{name_of(key)}: /*"
            yield Warned(line, f"With Robot-version 2.0, '/' is the root page alone. Write {instead!r}.", instead)


_OUT_OF_USE: Final = {
    Key.ROBOT_VERSION: "Robot-version is deprecated. Write rules of version 1.0 with '*' and '$'.",
    Key.NOINDEX: "Noindex in robots.txt has no effect since 2019. Use a robots meta tag or X-Robots-Tag.",
    Key.HOST: "Host has no effect since 2018. Redirect to the main host instead.",
}


def deprecated(file: CheckedFile) -> Iterator[Warned]:
    """Obsolete statements."""
    misplaced = {warned.line for warned in version_misplaced(file)}
    return (Warned(line, _OUT_OF_USE[key]) for line, key, _ in file.lines(*_OUT_OF_USE) if line not in misplaced)
