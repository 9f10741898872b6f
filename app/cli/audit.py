"""`python -m app audit`: verify a decision log, by the archive alone."""

import argparse
import gzip
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path

from app.cli.archive import archive_at, reading_archive
from app.cli.exit_codes import FAULTY, SOUND, Failed, Parser
from app.cli.output import show
from app.decision_log.verify import LogVerifier
from app.files.extras import needing

LONGEST_LOG_LINE = 1024 * 1024
"""Bytes of the longest line that is read."""


def add(parser: Parser) -> None:
    """Add the arguments: logs and the archive."""
    parser.description = (
        "Verify decision logs without a service: find lines that are missing, changed or moved, and decide each again "
        "by the file that the archive has for its version."
    )
    parser.epilog = "Exit code: 0 if nothing is wrong, 1 if something is, 3 for an error."
    parser.add_argument(
        "--verify",
        metavar="LOG",
        nargs="+",
        type=Path,
        required=True,
        help="files of the decision log, the oldest first; those that end with .gz are decompressed",
    )
    parser.add_argument(
        "--archive", metavar="FOLDER", required=True, help="the folder or the URL that ARCHIVE names, or a copy of it"
    )
    parser.add_argument("--public-key", metavar="FILE", type=Path, help="the key of DECISION_LOG_KEY_FILE, as PEM")
    parser.add_argument(
        "--partial",
        action="store_true",
        help="the logs may begin after the processes have, and end before: say nothing of lines outside of them",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print each fault, and a summary on standard error; return the exit code. Raise Failed."""
    archive = archive_at(arguments.archive)
    verifier = LogVerifier(archive, _verifying(arguments.public_key), partial=arguments.partial)
    faults = 0
    with reading_archive():
        of_each = (verifier.verify(str(path), _lines(path)) for path in arguments.verify)
        for fault in chain(chain.from_iterable(of_each), verifier.end()):
            faults += 1
            show(f"{fault.place}: {fault.fault}")
    counts = verifier.counts
    undecided = f", {counts['undecided']} not" if counts["undecided"] else ""
    signed = f", {counts['signed']} signed checkpoints" if arguments.public_key else ""
    if arguments.public_key and counts["unsigned"]:
        signed += f" and {counts['unsigned']} lines after the last of their process"
    sys.stderr.write(
        f"{counts['lines']} lines checked, {counts['decided']} decided again{undecided}{signed}: "
        f"{faults or 'no'} fault{'' if faults == 1 else 's'}\n"
    )
    return FAULTY if faults else SOUND


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for line in iter(partial(file.readline, LONGEST_LOG_LINE), b""):
                yield line.rstrip(b"\n")
    except (OSError, EOFError, zlib.error) as error:  # the last two are those of damaged gzip files
        raise Failed(f"{path} cannot be read: {error}.") from None


def _verifying(path: Path | None) -> Callable[[bytes, bytes], bool] | None:
    if path is None:
        return None
    try:
        with needing("signatures", "verifying signatures"):
            from app.decision_log.signing import is_signed, load_public_key

        return partial(is_signed, load_public_key(path))
    except ValueError as error:
        raise Failed(f"--public-key {path}: {error}.") from None
