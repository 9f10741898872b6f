"""Files of TOML that operators write: read within bounds, with faults that are sentences."""

import os
import stat
import tomllib
from pathlib import Path
from typing import Any


def read_file(path: Path, limit: int, *, private: bool = False) -> str:
    """The text of a file of at most `limit` bytes; ValueError says what is wrong with it.

    A `private` one is refused where others may read or change it, or its group may change it.
    """
    try:
        with path.open("rb") as file:
            if private:
                _check_mode(os.fstat(file.fileno()).st_mode)
            data = file.read(limit + 1)
    except OSError as error:
        raise ValueError(f"it cannot be opened: {error.strerror}") from None
    if len(data) > limit:
        raise ValueError(f"it is longer than {limit} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8: {error.reason} at byte {error.start}") from None


def _check_mode(mode: int) -> None:
    if os.name == "posix" and mode & (stat.S_IRWXO | stat.S_IWGRP):
        raise ValueError(
            f"its mode is {stat.S_IMODE(mode):04o}, so other users may read or change it: run `chmod 600` on it"
        )


def parse(text: str, what: str) -> dict[str, Any]:
    """What the TOML says; ValueError says what is wrong with it, which should be `what`."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"it is not TOML: {error}") from None
    except RecursionError:
        raise ValueError(f"it is not a {what}: its values are nested too deeply") from None


def shown(value: object) -> str:
    """A value of it, to be quoted in a fault: at most 61 characters."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer with too many digits to be shown, tables in tables
        return f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:60] + "…"
