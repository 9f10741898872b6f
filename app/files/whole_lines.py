"""Files that several processes append lines to."""

import os
from pathlib import Path


def ends_within_a_line(path: Path) -> bool:
    """Whether a regular file ends with half a line, as a write that failed leaves it; False if that cannot be read."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except OSError:  # it is empty, or may be appended to only
        return False
