"""Train a dictionary for app/cache/compression.py on real robots.txt files.

Usage: python -m tests.cache.train_dictionary FILE

Run `make build/corpus/.fetched` first. Name the result app/cache/dictionaries/N.dict, with the next N, and make it
CURRENT one release later: until then, processes of the release before could not read what is compressed with it.
"""

import sys
from pathlib import Path

from app.cache.codec import plain
from app.cache.compression import zstd
from app.cache.freshness import Snapshot
from robots_core.robots.access import Successful, Unavailable, Validators
from tests.corpus import real_files

BYTES = 110 * 1024
"""The size of the dictionary; larger ones compressed no better."""

SAMPLE = 3000
"""Bytes of a file that are trained on, so that a few large files do not fill the dictionary."""

AT = 1_790_000_000.123456


def samples() -> list[bytes]:
    """Snapshots of all files as they are compressed, and of an origin without a file."""
    facts = Validators('"5f3a-5b1c8d2e"', "Tue, 13 Oct 2026 08:12:31 GMT")
    none = plain(Snapshot(Unavailable(404), AT, lifetime=86400.0, since=int(AT)))
    kind = "text/plain; charset=utf-8"
    copies = [
        Snapshot(Successful(200, file[:SAMPLE], content_type=kind), AT, None, facts, 86400.0, since=int(AT))
        for file in real_files().values()
    ]
    return [*map(plain, copies), *[none] * 20]


def main() -> None:
    """Write the dictionary."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    Path(sys.argv[1]).write_bytes(zstd.train_dict(samples(), BYTES).dict_content)


if __name__ == "__main__":
    main()
