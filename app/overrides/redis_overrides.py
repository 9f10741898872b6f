"""Overrides in Redis or Valkey: one hash of rows, and the audit of changes. What is read there is not trusted.

The hash has a row for each override, the version, and the size of all rows in bytes. It is one key, so that no part of
it can be lost without the rest: evicting an index but not its rows, or the other way round, would open what an operator
has closed. A process reads all rows when the version changes.
"""

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.loop.background import BackgroundTask, Surviving
from app.overrides.override_json import OverrideMembers, write_override
from app.overrides.table import Override
from app.store.guarded_client import GuardedClient, StoreDown, UnexpectedReply
from app.store.script import Script
from robots_core.dates import END_OF_TIME

OVERRIDES_LIMIT = 2_000
"""How many overrides there may be."""

BYTES_LIMIT = 4 * 1024 * 1024
"""Bytes of all overrides together, as stored. Each process reads them all after a change."""

ROW_LIMIT = 4 * 1024 * 1024
"""Bytes of the longest row that is read back: a robots.txt at its limit, escaped as JSON."""

AUDIT_LIMIT = 1000
"""How many changes the audit keeps."""

LONGEST_VERSION = 50
"""Bytes of the longest version as stored."""

_READ_AT_ONCE, _ROWS_AT_ONCE = 1024 * 1024, 200
"""Bytes and rows that one call reads; more would take longer than a call may."""

_ROWS, _AUDIT = "robots:{overrides}:rows", "robots:{overrides}:audit"
_VERSION, _BYTES = ":version", ":bytes"
"""Fields of the hash that are not rows; ids have no colon."""

_WRITTEN_VERSION: Final = re.compile(rb"([0-9]{1,17}) ([0-9]{1,12}) ([0-9]{1,17})")
_ENTRY_LIMIT = 16 * 1024

_CHANGE: Final = Script.load(__package__, "change.lua", VERSION=_VERSION, BYTES=_BYTES, LONGEST_VERSION=LONGEST_VERSION)

_READ: Final = Script.load(__package__, "read_rows.lua")

# The names of all fields; 0 if there are more than there could be.
_IDS: Final = Script(
    "if redis.call('HLEN', KEYS[1]) > tonumber(ARGV[1]) then return 0 end return redis.call('HKEYS', KEYS[1])"
)


class ManyOverrides(Exception):
    """A limit is reached, which the text names."""


class ChangedMeanwhile(Exception):
    """The override has changed since it was read."""


@dataclass(frozen=True, slots=True)
class Row:
    """An override as stored, with who set it and when (Unix seconds)."""

    override: Override
    updated_at: float
    updated_by: str


_Instant = Annotated[float, Field(ge=0, le=END_OF_TIME, allow_inf_nan=False)]
_Name = Annotated[str, Field(max_length=100, pattern=r"^[ -~]+$")]


class AuditEntry(BaseModel):
    """One change: `before` and `after` are the override's members, None where there was none.

    The digest and the size of a robots.txt stand for its text.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    at: _Instant
    by: _Name
    id: _Name
    before: dict[str, object] | None
    after: dict[str, object] | None


class OverridesVersion(NamedTuple):
    """The last change: the time of the first one (microseconds), the number of this one, and its time."""

    born: int
    number: int
    at: int

    def follows(self, other: "OverridesVersion") -> bool:
        """Whether this version is `other` or a later one; if not, changes were lost."""
        return self == other or (self.born == other.born and self.number > other.number)


@dataclass(frozen=True, slots=True)
class OverridesState:
    """The version of the overrides, None if it cannot be read.

    `lost`: there are no overrides although there have been some.
    """

    version: OverridesVersion | None
    lost: bool


class RedisOverrides:
    """The overrides that all processes share. Methods raise StoreDown if the store cannot be used."""

    def __init__(self, redis: GuardedClient) -> None:
        self._redis = redis

    async def state(self) -> OverridesState:
        """The version of the overrides; raises StoreDown."""
        [version] = await self._read([_VERSION], LONGEST_VERSION)
        written = _WRITTEN_VERSION.fullmatch(version) if isinstance(version, bytes) else None
        if written is None:
            return OverridesState(None, lost=not await self.ids() and await self._was_changed())
        return OverridesState(OverridesVersion(*map(int, written.groups())), lost=False)

    async def ids(self) -> Collection[str]:
        """The ids of all rows; raises StoreDown, also if there are more than there could be."""
        limit = str(2 * OVERRIDES_LIMIT)
        data = await _IDS.run(self._redis, [_ROWS], limit)
        if data == 0:
            raise StoreDown(f"{_ROWS} has more than {limit} fields, which this service did not write")
        names = data if isinstance(data, list) else []
        ids = [name.decode() for name in names if isinstance(name, bytes) and name.isascii()]
        return [id_ for id_ in ids if not id_.startswith(":")]

    async def rows(self, ids: Collection[str]) -> Mapping[str, Row | None]:
        """The rows of these ids that exist; None for one that cannot be read.

        Raises StoreDown, also if they are larger than BYTES_LIMIT together.
        """
        found: dict[str, Row | None] = {}
        left, room = list(ids), BYTES_LIMIT
        while left and room >= 0:
            values = await self._read(left[:_ROWS_AT_ONCE], ROW_LIMIT)
            for id_, value in zip(left, values, strict=False):
                if isinstance(value, bytes):
                    room -= len(value)
                    found[id_] = None
                    with Surviving(BackgroundTask.OVERRIDES, id_):
                        found[id_] = _decode(id_, value)
            left = left[len(values) :]
        if left:
            raise StoreDown(f"{_ROWS} has more than {BYTES_LIMIT} bytes, which this service did not write")
        return found

    async def _read(self, fields: Sequence[str], longest: int) -> Sequence[object]:
        """The values of the first of these fields, one at least; None for a missing one."""
        arguments = (str(_READ_AT_ONCE), str(longest), *fields)
        match await _READ.run(self._redis, [_ROWS], *arguments):
            case None:  # the key has another type
                return [None] * len(fields)
            case [*values] if 0 < len(values) <= len(fields):
                return values
            case other:
                raise UnexpectedReply(other)

    async def _was_changed(self) -> bool:
        """Whether the audit has an entry."""
        length = await self._redis.command(_AUDIT, "LLEN", _AUDIT)
        return isinstance(length, int) and length > 0

    async def put(self, override: Override, by: str, at: float) -> bool:
        """Set the override and add an entry to the audit; whether it is new.

        Nothing is written if it has not changed. Raises ManyOverrides and ChangedMeanwhile.
        """
        stored, row = await self._stored(override.id)
        if row is not None and row.override == override:
            return False
        await self._change(override.id, stored, row, Row(override, at, by), by, at)
        return row is None

    async def remove(self, id_: str, by: str, at: float) -> bool:
        """Remove the override; whether there was one."""
        stored, row = await self._stored(id_)
        if stored == b"":
            return False
        await self._change(id_, stored, row, None, by, at)
        return True

    async def audit(self, start: int, count: int) -> Sequence[AuditEntry]:
        """At most `count` changes, newest first, after the first `start` ones; raises StoreDown."""
        data = await self._redis.command(_AUDIT, "LRANGE", _AUDIT, start, start + count - 1)
        entries = map(_decode_entry, data if isinstance(data, list) else [])
        return [entry for entry in entries if entry is not None]

    async def _stored(self, id_: str) -> tuple[bytes, Row | None]:
        data = await self._redis.command(_ROWS, "HGET", _ROWS, id_)
        return (data, _decode(id_, data)) if isinstance(data, bytes) else (b"", None)

    async def _change(self, id_: str, stored: bytes, before: Row | None, after: Row | None, by: str, at: float) -> None:
        entry = AuditEntry(at=at, by=by, id=id_, before=_summary(before), after=_summary(after))
        data = b"" if after is None else _encode(after)
        digest = hashlib.sha1(stored, usedforsecurity=False).hexdigest()
        limits = (str(OVERRIDES_LIMIT), str(BYTES_LIMIT), str(AUDIT_LIMIT))
        arguments = (id_, digest, data, entry.model_dump_json(), *limits)
        reply = await _CHANGE.run(self._redis, [_ROWS, _AUDIT], *arguments)
        match reply:
            case b"done":
                return
            case b"changed":
                raise ChangedMeanwhile(f"The override {id_!r} was changed by another request at the same time.")
            case b"many":
                raise ManyOverrides(f"There are {OVERRIDES_LIMIT} overrides, which is the limit. Remove some first.")
            case b"large":
                raise ManyOverrides(
                    f"The overrides together would be larger than {BYTES_LIMIT} bytes. Remove some first."
                )
            case _:
                raise StoreDown(f"{_ROWS} or {_AUDIT} has a value that this service did not write")


def _encode(row: Row) -> bytes:
    members = {**write_override(row.override), "updated_at": row.updated_at, "updated_by": row.updated_by}
    return json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()


class _RowMembers(OverrideMembers):
    updated_at: _Instant
    updated_by: _Name


def _decode(id_: str, data: bytes) -> Row | None:
    if len(data) > ROW_LIMIT:
        return None
    try:
        members = _RowMembers.model_validate_json(data)
        return Row(members.override(id_), members.updated_at, members.updated_by)
    except ValueError:  # a BadOverride is one, and so is pydantic's error
        return None


def _summary(row: Row | None) -> dict[str, object] | None:
    if row is None:
        return None
    members = write_override(row.override)
    if row.override.robots is not None:
        body = row.override.robots.body
        members["robots"] = f"sha256:{hashlib.sha256(body).hexdigest()}, {len(body)} bytes"
    return members


def _decode_entry(data: object) -> AuditEntry | None:
    if not isinstance(data, bytes) or len(data) > _ENTRY_LIMIT:
        return None
    try:
        return AuditEntry.model_validate_json(data)
    except ValidationError:
        return None
