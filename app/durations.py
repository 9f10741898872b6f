"""Durations as people write them."""

import re

_WRITTEN = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhdw]?)")
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}


def read_seconds(text: str) -> float | None:
    """Seconds of a text like "90", "15m", "12h", "1.5d" or "2w"; None for any other text."""
    written = _WRITTEN.fullmatch(text.strip())
    return None if written is None else float(written[1]) * _UNITS[written[2]]
