"""OVERRIDES_FILE: overrides that are kept in version control and mounted, one JSON object a line.

A line has the members of a PUT and the `id`, as `robots-decisions overrides export` prints it. What that prints of the
state of a record is ignored here, as it is in a PUT.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from app.files.toml_file import read_file
from app.files.validation import shown, unknown_name
from app.overrides.override_json import OverrideMembers, read_override
from app.overrides.redis_overrides import OVERRIDES_LIMIT
from app.overrides.table import Override
from robots_core.times import read_instant

OVERRIDES_FILE_LIMIT = 16 * 1024 * 1024
"""Bytes of the longest file: an export of as many overrides as the store may have, with all characters escaped."""

_STATE = frozenset({"expired", "updated_at", "updated_by", "source"})
"""The members of a record that say nothing of what it does."""

_MEMBERS = ("id", *OverrideMembers.model_fields)

OfFile = Mapping[str, Override]
"""The overrides of the file by id."""


def load(path: Path) -> OfFile:
    """Read the file; raises ValueError, which names the line, the member and its value."""
    return read_lines(read_file(path, OVERRIDES_FILE_LIMIT))


def read_lines(text: str) -> OfFile:
    """Read the lines of a file; blank ones are left out. Raises ValueError."""
    found: dict[str, Override] = {}
    numbers: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            override = _read(line)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        if override.id in found:
            raise ValueError(f"line {number}: id is {override.id!r}, which line {numbers[override.id]} has, too")
        found[override.id], numbers[override.id] = override, number
    if len(found) > OVERRIDES_LIMIT:
        raise ValueError(f"it has {len(found)} overrides; at most {OVERRIDES_LIMIT} are read")
    return found


def _read(line: str) -> Override:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise ValueError(f"expected a JSON object, and it is {shown(line.strip())}")
    members = {name: value for name, value in record.items() if name not in _STATE}
    if unknown := sorted(members.keys() - set(_MEMBERS)):
        raise ValueError(unknown_name("member", unknown[0], _MEMBERS))
    id_, at = members.pop("id", None), members.get("expires_at")
    if not isinstance(id_, str):
        raise ValueError(f"id is {shown(id_)}: expected a text")
    if at is not None:
        instant = read_instant(at) if isinstance(at, str) else None
        if instant is None:
            raise ValueError(f"expires_at is {shown(at)}: expected an instant like 2026-11-21T18:30:00Z")
        members["expires_at"] = instant.timestamp()
    return replace(read_override(id_, members), source="file")
