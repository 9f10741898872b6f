"""Overrides in Redis or Valkey: one hash of rows, and the list of who changed what; nothing there is trusted.

The hash holds a row per override, and beside them the version of the whole, the bytes of all rows, and the ids that
were changed last. It is one key, so that no part of it can be lost without the rest: an index that is evicted while
its rows stay, or the other way round, would open what an operator has closed. A process that knows a version asks for
the rows that have changed since, and for all of them only where the list of changes does not reach so far back.
"""

import hashlib
import json
import re
from collections.abc import Awaitable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeGuard, cast

from app.overrides.table import END_OF_TIME, BadOverride, Override, Replace, read_override, write_override
from app.redis.guarded_client import GuardedClient, StoreDown

COUNT_LIMIT = 10_000
"""How many overrides there may be."""

BYTES_LIMIT = 16 * 1024 * 1024
"""Bytes of all overrides together, as stored."""

ROW_LIMIT = 4 * 1024 * 1024
"""Bytes of the longest row that is read back: a robots.txt at its limit, escaped as JSON."""

AUDIT_LIMIT = 1000
"""How many changes are remembered."""

LONGEST_VERSION = 50
"""Bytes of a version as stored."""

LONGEST_LOG = 4096
"""Bytes of the ids that were changed last."""

_READ_AT_ONCE, _ROWS_AT_ONCE = 1024 * 1024, 200
"""Bytes and rows that one call asks for: more would take longer than a call may."""

_ROWS, _AUDIT = "robots:{overrides}:rows", "robots:{overrides}:audit"
_VERSION, _BYTES, _LOG = ":version", ":octets", ":log"
"""Fields of the hash that are not rows; an id has no colon."""

_META: Final = frozenset({_VERSION, _BYTES, _LOG})
_NOTHING: Final = hashlib.sha1(b"", usedforsecurity=False).hexdigest()
_WRITTEN_VERSION: Final = re.compile(rb"([0-9]{1,17}) ([0-9]{1,12}) ([0-9]{1,17})")
_ENTRY_LIMIT = 16 * 1024
_BY_LIMIT = 100

# KEYS: the hash and the audit. ARGV: the id, the SHA-1 of the row that is to be replaced, the new row ("" to remove
# it), the entry for the audit, and the limits. What was decided on the strength of the old row is carried out only
# where it is still there.
_CHANGE: Final = f"""
local rows, audit = KEYS[1], KEYS[2]
local id, expected, row, entry = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
-- A script that fails undoes nothing: whatever may fail, for a key of another type, is asked before the first write.
-- A version is when the first was told, the number of this one, and when it was: so that a store that lost everything,
-- or the last of it, never comes to tell the same again for something else.
local time = redis.call('TIME')
local clock = time[1] .. string.format('%06d', tonumber(time[2]))
local written = redis.call('HGET', rows, '{_VERSION}') or ''
local born, last = nil, nil
if #written <= {LONGEST_VERSION} then born, last = string.match(written, '^(%d+) (%d+) %d+$') end
if not last or #last > 11 then born, last = clock, 0 end
local log = last == 0 and '' or redis.call('HGET', rows, '{_LOG}') or ''
local now = tonumber(last) + 1
redis.call('LLEN', audit)
local held = redis.call('HGET', rows, id) or ''
if redis.sha1hex(held) ~= expected then return 'changed' end
local total, count = tonumber(redis.call('HGET', rows, '{_BYTES}')), 0
for _, name in ipairs({{'{_VERSION}', '{_BYTES}', '{_LOG}'}}) do count = count - redis.call('HEXISTS', rows, name) end
count = count + redis.call('HLEN', rows)
if not total then
  total = 0
  for _, name in ipairs(redis.call('HKEYS', rows)) do total = total + redis.call('HSTRLEN', rows, name) end
end
total = total - #held + #row
if row == '' then
  redis.call('HDEL', rows, id)
else
  if held == '' and count >= tonumber(ARGV[5]) then return 'many' end
  if total > tonumber(ARGV[6]) then return 'large' end
  redis.call('HSET', rows, id, row)
end
log = id .. ' ' .. log
if #log > {LONGEST_LOG} then log = string.match(string.sub(log, 1, {LONGEST_LOG}), '^(.*) ') end
redis.call('HSET', rows, '{_VERSION}', string.format('%s %.0f %s', born, now, clock),
  '{_BYTES}', string.format('%.0f', math.max(total, 0)), '{_LOG}', log)
redis.call('LPUSH', audit, entry)
redis.call('LTRIM', audit, 0, tonumber(ARGV[7]) - 1)
return 'done'
"""

# ARGV: bytes that may be returned, bytes of the longest value that is ours, and fields. The values of the first fields,
# as many as there is room for and one at least; "" for one that is longer than any of ours, false for none.
_READ: Final = """
local found, room, longest = {}, tonumber(ARGV[1]), tonumber(ARGV[2])
for i = 3, #ARGV do
  local long = redis.call('HSTRLEN', KEYS[1], ARGV[i])
  if long > longest then
    found[#found + 1] = ''
  else
    if #found > 0 and long > room then break end
    found[#found + 1] = redis.call('HGET', KEYS[1], ARGV[i])
    room = room - long
  end
end
return found
"""

# The names of all fields; 0 where there are more than ours could be.
_IDS: Final = "if redis.call('HLEN', KEYS[1]) > tonumber(ARGV[1]) then return 0 end return redis.call('HKEYS', KEYS[1])"


class ManyOverrides(Exception):
    """The override does not fit; the text says which limit is reached."""


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

    In place of the text of a robots.txt they have its digest and its size.
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
class State:
    """Which version the overrides have, None where none can be read, and the ids changed last, newest first.

    `lost`: there are none, and there have been some.
    """

    version: Version | None
    changed: Sequence[str]
    lost: bool

    def changed_since(self, version: Version | None) -> Sequence[str] | None:
        """The ids that have changed since that version; None where nothing tells."""
        if version is None or self.version is None or not self.version.follows(version):
            return None
        count = self.version.number - version.number
        return None if count > len(self.changed) else self.changed[:count]


class RedisOverrides:
    """The overrides that all processes share. Whatever cannot be had raises StoreDown."""

    def __init__(self, redis: GuardedClient) -> None:
        self._redis = redis
        self._client = redis.client

    async def state(self) -> State:
        """What version the overrides have, and what was changed last; raises StoreDown."""
        version, log = await self._read((_VERSION, _LOG), LONGEST_LOG)
        written = _WRITTEN_VERSION.fullmatch(version) if isinstance(version, bytes) else None
        if written is None:
            return State(None, (), lost=not await self.ids() and await self._was_changed())
        changed = log.decode("ascii", "replace").split() if isinstance(log, bytes) else ()
        return State(Version(*map(int, written.groups())), changed, lost=False)

    async def ids(self) -> Collection[str]:
        """The ids of all rows; raises StoreDown, also where there are more than could be ours."""
        limit = str(2 * COUNT_LIMIT)
        data = await self._redis.run(_ROWS, lambda: self._client.eval(_IDS, 1, _ROWS, limit))
        if data == 0:
            raise StoreDown(f"{_ROWS} has more than {limit} fields: somebody else writes there")
        names = data if isinstance(data, list) else []
        ids = [name.decode() for name in names if isinstance(name, bytes) and name.isascii()]
        return [id_ for id_ in ids if id_ not in _META]

    async def rows(self, ids: Collection[str]) -> Mapping[str, Row | None]:
        """The rows of these ids, without those that are not there; None for one that is not ours; raises StoreDown."""
        found: dict[str, Row | None] = {}
        left, room = list(dict.fromkeys(ids))[: 2 * COUNT_LIMIT], BYTES_LIMIT
        while left and room > 0:
            values = await self._read(left[:_ROWS_AT_ONCE], ROW_LIMIT)
            for id_, value in zip(left, values, strict=False):
                if isinstance(value, bytes):
                    room -= len(value)
                    found[id_] = _decode(id_, value)
            left = left[len(values) :]
        return found

    async def _read(self, fields: Sequence[str], longest: int) -> Sequence[object]:
        """The values of the first of these fields, one at least; None for none."""
        arguments = (str(_READ_AT_ONCE), str(longest), *fields)
        data = await self._redis.run(_ROWS, lambda: self._client.eval(_READ, 1, _ROWS, *arguments))
        return data if isinstance(data, list) and data else [None] * len(fields)

    async def _was_changed(self) -> bool:
        """Whether the audit knows of a change."""
        length = await self._redis.run(_AUDIT, lambda: self._client.llen(_AUDIT))
        return isinstance(length, int) and length > 0

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
        data = await self._redis.run(
            _AUDIT, lambda: cast("Awaitable[list[bytes]]", self._client.lrange(_AUDIT, start, start + count - 1))
        )
        entries = map(_decode_entry, data if isinstance(data, list) else [])
        return [entry for entry in entries if entry is not None]

    async def _held(self, id_: str) -> tuple[bytes, Row | None]:
        data = await self._redis.run(_ROWS, lambda: cast("Awaitable[bytes | None]", self._client.hget(_ROWS, id_)))
        return (data, _decode(id_, data)) if isinstance(data, bytes) else (b"", None)

    async def _change(self, id_: str, held: bytes, before: Row | None, after: Row | None, by: str, at: float) -> None:
        entry = _encode_entry(Entry(at, by, id_, _summary(before), _summary(after)))
        data = b"" if after is None else _encode(after)
        digest = hashlib.sha1(held, usedforsecurity=False).hexdigest()
        limits = (str(COUNT_LIMIT), str(BYTES_LIMIT), str(AUDIT_LIMIT))
        # The client accepts bytes, which its annotations do not say.
        values: list[Any] = [_ROWS, _AUDIT, id_, digest, data, entry, *limits]
        said = await self._redis.run(_ROWS, lambda: self._client.eval(_CHANGE, 2, *values))
        match said:
            case b"done":
                return
            case b"changed":
                raise ChangedMeanwhile(f"The override {id_!r} was changed by somebody else at the same time.")
            case b"many":
                raise ManyOverrides(f"There are {COUNT_LIMIT} overrides, and that is as many as there may be.")
            case b"large":
                raise ManyOverrides(f"All overrides together would have more than {BYTES_LIMIT} bytes.")
            case _:
                raise StoreDown(f"the keys of the overrides, {_ROWS} and its like, hold something else")


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
