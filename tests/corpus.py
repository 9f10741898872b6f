"""Real robots.txt files: the test data in protego's sdist, which `make test` downloads, pinned by hash."""

import tarfile
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "build" / "corpus"


@cache
def real_files() -> dict[str, bytes]:
    """Several thousand hosts and their files. Raises FileNotFoundError, which names the command to run."""
    sdist = next(FOLDER.glob("protego-*.tar.gz"), None)
    if sdist is None:
        raise FileNotFoundError(f"{FOLDER} has no sdist of protego; run `make build/corpus/.fetched`")
    with tarfile.open(sdist) as archive:
        members = [member for member in archive if member.isfile() and "/tests/test_data/" in member.name]
        found = {member.name.rpartition("/")[2]: archive.extractfile(member) for member in members}
        return {host: file.read() for host, file in sorted(found.items()) if file is not None}
