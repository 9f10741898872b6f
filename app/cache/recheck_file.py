"""RECHECK_FILE: the domain table as a file."""

from pathlib import Path

from app.cache.recheck import TABLE_LIMIT, DomainTable, read_table
from app.toml_file import read_file


def load(path: Path) -> DomainTable:
    """The table that is in the file; ValueError says what is wrong with it."""
    return read_table(read_file(path, TABLE_LIMIT))
