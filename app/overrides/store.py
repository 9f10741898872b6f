"""Overrides in Redis or Valkey: rows, an index of their versions, and who changed what; nothing there is trusted.

All keys lie in one slot, and one script changes them together: a row, its version in the index, the version of the
whole, the octets of all rows, and the audit. A process that knows a version asks for the index, and then for those
rows alone that it does not have.
"""

import hashlib
import json
import re
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, TypeGuard, cast

from app.overrides.table import END_OF_TIME, BadOverride, Override, Replace, read_override, write_override
from app.store.calls import Calls, StoreDown

COUNT_LIMIT = 10_000
"""How many overrides there may be."""

OCTETS_LIMIT = 16 * 1024 * 1024
"""Octets of all overrides together, as they are written."""

ROW_LIMIT = 4 * 1024 * 1024
"""Octets of the longest row that is read back: a robots.txt at its limit, escaped as JSON."""

AUDIT_LIMIT = 1000
"""How many changes are remembered."""

LONGEST_VERSION = 50
"""Octets of a version as it is written."""

_READ_AT_ONCE, _ROWS_AT_ONCE = 1024 * 1024, 200
"""Octets and rows that one call asks for: more would take longer than a call may."""

_VERSION, _INDEX, _ROWS, _OCTETS, _AUDIT = _KEYS = tuple(
    f"robots:{{overrides}}:{name}" for name in ("version", "index", "rows", "octets", "audit")
)
_NOTHING: Final = hashlib.sha1(b"", usedforsecurity=False).hexdigest()
_WRITTEN_VERSION: Final = re.compile(rb"([0-9]{1,17}) ([0-9]{1,12}) ([0-9]{1,17})")
_ENTRY_LIMIT = 16 * 1024
_BY_LIMIT = 100

# ARGV: the id, the SHA-1 of the row that is to be replaced, the new row ("" to remove it), the entry for the audit, and
# the limits. What was decided on the strength of the old row is carried out only where it is still there.
_CHANGE: Final = f"""
local version, index, rows, octets, audit = unpack(KEYS)
local id, expected, row, entry = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
-- A script that fails undoes nothing: whatever may fail, for a key of another type, is asked before the first write.
-- A version is when the first was told, the number of this one, and when it was: so that a store that lost everything,
-- or the last of it, never comes to tell the same again for something else.
local time = redis.call('TIME')
local clock = time[1] .. string.format('%06d', tonumber(time[2]))
local held = redis.call('GET', version) or ''
local born, last = nil, nil
if #held <= {LONGEST_VERSION} then born, last = string.match(held, '^(%d+) (%d+) %d+$') end
if not last or #last > 11 then born, last = clock, 0 end
local now = tonumber(last) + 1
redis.call('HLEN', index)
redis.call('LLEN', audit)
held = redis.call('HGET', rows, id) or ''
if redis.sha1hex(held) ~= expected then return 'changed' end
local total = (tonumber(redis.call('GET', octets)) or 0) - #held + #row
if row == '' then
  redis.call('HDEL', rows, id)
else
  if held == '' and redis.call('HLEN', rows) >= tonumber(ARGV[5]) then return 'many' end
  if total > tonumber(ARGV[6]) then return 'large' end
  redis.call('HSET', rows, id, row)
end
redis.call('SET', version, string.format('%s %.0f %s', born, now, clock))
if row == '' then
  redis.call('HDEL', index, id)
else
  redis.call('HSET', index, id, string.format('%.0f %.0f', now, #row))
end
redis.call('SET', octets, string.format('%.0f', math.max(total, 0)))
redis.call('LPUSH', audit, entry)
redis.call('LTRIM', audit, 0, tonumber(ARGV[7]) - 1)
return 'done'
"""

# No more of a row is read than the index says it has, whatever is there: false for any other.
_READ: Final = """
local found = {}
for i = 1, #ARGV, 2 do
  local long = redis.call('HSTRLEN', KEYS[1], ARGV[i])
  found[#found + 1] = long == tonumber(ARGV[i + 1]) and redis.call('HGET', KEYS[1], ARGV[i])
end
return found
"""


class ManyOverrides(Exception):
    """There is no room for the override; the text says what is full."""


class ChangedMeanwhile(Exception):
    """Somebody else has changed the override since it was read."""


@dataclass(frozen=True, slots=True)
class Row:
    """An override as it is kept: who set it, and when (Unix seconds)."""

    override: Override
    updated_at: float
    updated_by: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One change: `before` and `after` are the override's members, None where there was none.

    The text of a robots.txt is not among them, but its digest and its octets.
    """

    at: float
    by: str
    id: str
    before: Mapping[str, object] | None
    after: Mapping[str, object] | None


class Version(NamedTuple):
    """Which change of the whole was the last: when the first was (microseconds), its number, when it was."""

    born: int
    number: int
    at: int

    def follows(self, other: "Version") -> bool:
        """Whether this is that one, or may have come of it by changes alone: else something was lost."""
        return self == other or (self.born == other.born and self.number > other.number)


@dataclass(frozen=True, slots=True)
class Place:
    """What the index says of a row."""

    version: int
    octets: int


class RedisOverrides:
    """The overrides that all processes share. Whatever cannot be had raises StoreDown."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._client = calls.client

    async def version(self) -> Version | None:
        """The version of the whole: it counts every change, and is None where there has never been one."""
        data = await self._calls.read(_VERSION, lambda: self._client.getrange(_VERSION, 0, LONGEST_VERSION))
        written = _WRITTEN_VERSION.fullmatch(data) if isinstance(data, bytes) else None
        return None if written is None else Version(*map(int, written.groups()))

    async def index(self) -> Mapping[str, Place]:
        """Where each row stands, by id; what is not ours is left out, and so is what is beyond the limits."""
        length = await self._calls.read(_INDEX, lambda: self._client.hlen(_INDEX))
        if not isinstance(length, int) or length > 2 * COUNT_LIMIT:
            return {}
        data = await self._calls.read(
            _INDEX, lambda: cast("Awaitable[dict[bytes, bytes]]", self._client.hgetall(_INDEX))
        )
        places: dict[str, Place] = {}
        room = OCTETS_LIMIT
        for id_, place in _pairs(data):
            if place.octets <= min(room, ROW_LIMIT) and len(places) < COUNT_LIMIT:
                places[id_] = place
                room -= place.octets
        return places

    async def rows(self, places: Mapping[str, Place]) -> Mapping[str, Row | None]:
        """The rows of these places; None for one that has changed since, or that is not ours."""
        found: dict[str, Row | None] = {}
        for ids in _portions(places):
            asked = [str(word) for id_ in ids for word in (id_, places[id_].octets)]
            data = await self._calls.read(_ROWS, partial(self._client.eval, _READ, 1, _ROWS, *asked))
            values = data if isinstance(data, list) and len(data) == len(ids) else [None] * len(ids)
            found.update((id_, _decode(id_, value)) for id_, value in zip(ids, values, strict=True))
        return found

    async def put(self, override: Override, by: str, at: float) -> bool:
        """Set the override, and enter it into the audit; whether it is a new one.

        Nothing is written where it stands as it is. Raises ManyOverrides, and ChangedMeanwhile where others keep
        changing it.
        """
        held, row = await self._held(override.id)
        if row is not None and row.override == override:
            return False
        await self._change(override.id, held, row, Row(override, at, by), by, at)
        return row is None

    async def remove(self, id_: str, by: str, at: float) -> bool:
        """Remove the override; whether there was one."""
        held, row = await self._held(id_)
        if held == b"":
            return False
        await self._change(id_, held, row, None, by, at)
        return True

    async def audit(self, start: int, count: int) -> Sequence[Entry]:
        """So many changes, newest first, from the one that `start` newer ones precede."""
        data = await self._calls.read(
            _AUDIT, lambda: cast("Awaitable[list[bytes]]", self._client.lrange(_AUDIT, start, start + count - 1))
        )
        entries = map(_decode_entry, data if isinstance(data, list) else [])
        return [entry for entry in entries if entry is not None]

    async def _held(self, id_: str) -> tuple[bytes, Row | None]:
        data = await self._calls.read(_ROWS, lambda: cast("Awaitable[bytes | None]", self._client.hget(_ROWS, id_)))
        return (data, _decode(id_, data)) if isinstance(data, bytes) else (b"", None)

    async def _change(self, id_: str, held: bytes, before: Row | None, after: Row | None, by: str, at: float) -> None:
        entry = _encode_entry(Entry(at, by, id_, _summary(before), _summary(after)))
        data = b"" if after is None else _encode(after)
        digest = hashlib.sha1(held, usedforsecurity=False).hexdigest()
        limits = (str(COUNT_LIMIT), str(OCTETS_LIMIT), str(AUDIT_LIMIT))
        # The client takes octets as arguments, and its annotation says texts.
        values: list[Any] = [*_KEYS, id_, digest, data, entry, *limits]
        said = await self._calls.write(_KEYS[0], lambda: self._client.eval(_CHANGE, len(_KEYS), *values))
        match said:
            case b"done":
                return
            case b"changed":
                raise ChangedMeanwhile(f"The override {id_!r} was changed by somebody else at the same time.")
            case b"many":
                raise ManyOverrides(f"There are {COUNT_LIMIT} overrides, and that is as many as there may be.")
            case b"large":
                raise ManyOverrides(f"All overrides together would have more than {OCTETS_LIMIT} octets.")
            case _:
                raise StoreDown(f"the keys of the overrides, {_ROWS} and its like, hold something else")


def _portions(places: Mapping[str, Place]) -> Sequence[Sequence[str]]:
    portions: list[list[str]] = []
    room = 0
    for id_, place in places.items():
        if not portions or place.octets > room or len(portions[-1]) >= _ROWS_AT_ONCE:
            portions.append([])
            room = _READ_AT_ONCE
        portions[-1].append(id_)
        room -= place.octets
    return portions


def _pairs(data: object) -> list[tuple[str, Place]]:
    pairs = []
    for key, value in data.items() if isinstance(data, dict) else ():
        words = value.split(b" ") if isinstance(value, bytes) and len(value) <= 40 else ()
        if isinstance(key, bytes) and key.isascii() and len(words) == 2 and all(word.isdigit() for word in words):
            pairs.append((key.decode(), Place(*map(int, words))))
    return pairs


def _encode(row: Row) -> bytes:
    members = {**write_override(row.override), "updated_at": row.updated_at, "updated_by": row.updated_by}
    return json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()


def _decode(id_: str, data: object) -> Row | None:
    members = _decode_object(data, ROW_LIMIT)
    if members is None:
        return None
    at, by = members.pop("updated_at", None), members.pop("updated_by", None)
    if not _is_instant(at) or not _is_name(by):
        return None
    try:
        return Row(read_override(id_, members), at, by)
    except BadOverride:
        return None


def _summary(row: Row | None) -> dict[str, object] | None:
    if row is None:
        return None
    members = write_override(row.override)
    action = row.override.action
    if isinstance(action, Replace):
        body = action.access.body
        members["robots"] = f"sha256:{hashlib.sha256(body).hexdigest()}, {len(body)} octets"
    return members


def _encode_entry(entry: Entry) -> bytes:
    members = {"at": entry.at, "by": entry.by, "id": entry.id, "before": entry.before, "after": entry.after}
    return json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()


def _decode_entry(data: object) -> Entry | None:
    members = _decode_object(data, _ENTRY_LIMIT)
    if members is None:
        return None
    at, by, id_, before, after = [members.get(name) for name in ("at", "by", "id", "before", "after")]
    if not _is_instant(at) or not _is_name(by) or not _is_name(id_):
        return None
    if not isinstance(before, dict | None) or not isinstance(after, dict | None):
        return None
    return Entry(at, by, id_, before, after)


def _decode_object(data: object, limit: int) -> dict[str, Any] | None:
    if not isinstance(data, bytes) or len(data) > limit:
        return None
    try:
        members = json.loads(data)
        json.dumps(members, ensure_ascii=False).encode()  # refuses a lone surrogate, which no answer could show
    except (ValueError, RecursionError):
        return None
    return members if isinstance(members, dict) else None


def _is_instant(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= END_OF_TIME


def _is_name(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= _BY_LIMIT and value.isascii() and value.isprintable()
