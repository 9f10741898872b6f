"""Real robots.txt: the test data in protego's sdist, which make fetches, checked by its hash (`make corpus`)."""

import tarfile
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "build" / "corpus"


@cache
def real_files() -> dict[str, bytes]:
    """Hosts and their files, several thousand; FileNotFoundError says which command brings them."""
    sdist = next(FOLDER.glob("protego-*.tar.gz"), None)
    if sdist is None:
        raise FileNotFoundError(
            f"there is no sdist of protego in {FOLDER}: `make corpus` gets it from the package index"
        )
    with tarfile.open(sdist) as archive:
        members = [member for member in archive if member.isfile() and "/tests/test_data/" in member.name]
        found = {member.name.rpartition("/")[2]: archive.extractfile(member) for member in members}
        return {host: file.read() for host, file in sorted(found.items()) if file is not None}
