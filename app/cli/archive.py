"""`python -m app archive`: check an archive of versions, or rebuild its index."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.cli.exit_codes import FAULTY, SOUND, Failed, Parser
from app.cli.output import show
from app.history.archive.archive import Archive
from app.history.archive.places import files_at, is_url, shown


def add(parser: Parser) -> None:
    """Add the arguments: what to do, and the folder."""
    parser.description = (
        "Check that every line and every file of an archive is whole, or rebuild its index from the log of spans. "
        "Make it while no service writes to the archive."
    )
    parser.epilog = "Exit code: 0 if nothing is wrong, 1 if something is, 3 for an error."
    parser.add_argument("action", choices=["verify", "index"])
    parser.add_argument("place", metavar="FOLDER", help="the folder or the URL that ARCHIVE names")


def run(arguments: argparse.Namespace) -> int:
    """Print what is wrong, and a summary on standard error; return the exit code. Raise Failed."""
    archive = archive_at(arguments.place)
    with reading_archive():
        if not archive.exists():
            raise Failed(f"{arguments.place} has no archive: no log is below spans/.")
        if arguments.action == "index":
            count = archive.rebuild()
            sys.stderr.write(f"{count} spans\n")
            return SOUND
        checked = damaged = 0
        for damage in archive.verify():
            checked += 1
            if damage is not None:
                damaged += 1
                show(f"{damage.name}: {damage.fault}")
    sys.stderr.write(f"{checked} lines and files checked, {damaged} damaged\n")
    return FAULTY if damaged else SOUND


@contextmanager
def reading_archive() -> Iterator[None]:
    """A block that reads an archive. Raise Failed if it cannot be read."""
    try:
        yield
    except BrokenPipeError:  # of the output
        raise
    except OSError as error:
        raise Failed(f"The archive cannot be read: {error}.") from None


def archive_at(place: str) -> Archive:
    """The archive at a folder or a URL. Raise Failed if there is none."""
    if not is_url(place) and not Path(place).is_dir():
        raise Failed(f"{place} is not a folder.")
    try:
        return Archive(files_at(place))
    except ValueError as error:
        raise Failed(f"{shown(place)}: {error}.") from None
