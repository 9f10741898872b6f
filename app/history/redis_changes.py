"""The feed of changes: a stream in Redis or Valkey, to which each change is added once for the whole fleet."""

import asyncio
import re
from collections.abc import Sequence
from hashlib import blake2s
from typing import Final, NamedTuple, TypeAlias

from pydantic import ValidationError

from app.cache.freshness import Snapshot
from app.history.change import CHANGE_BYTES, Change, change_of
from app.store.guarded_client import GuardedClient, UnexpectedReply
from app.store.script import Script
from robots_core.content import digest
from robots_core.origin import Origin

CHANGES_LENGTH = 50_000
"""Changes that the stream keeps, unless set otherwise."""

AGAIN = 3600
"""Seconds in which the same change of the same origin is not added again.

A process that is killed after it added a change, and before it wrote the history, leaves that to another process.
"""

CHANGES_STREAM: Final = "robots:{changes}"
"""The key of the stream."""

_ID_LIMIT: Final = 2**64  # the milliseconds and the number of an id are less

_ID = re.compile(r"[0-9]{1,20}(?:-[0-9]{1,20})?")

_ADD: Final = Script.load(__package__, "add_change.lua")
_READ: Final = Script.load(__package__, "read_changes.lua", LONGEST=2 * CHANGE_BYTES)


class ChangeId(NamedTuple):
    """The id of a change: milliseconds (Unix) by the store's clock, and a number within them. Ids grow."""

    milliseconds: int
    number: int = 0

    def __str__(self) -> str:
        return f"{self.milliseconds}-{self.number}"


def read_id(text: str) -> ChangeId | None:
    """The id that a caller or the store wrote; None if it is not one."""
    if not _ID.fullmatch(text):
        return None
    parts = [int(part) for part in text.split("-")]
    return ChangeId(*parts) if max(parts) < _ID_LIMIT else None


class Since(NamedTuple):
    """A position in time (Unix milliseconds); 0 is before all changes."""

    milliseconds: int


OLDEST: Final = Since(0)

Position: TypeAlias = ChangeId | Since
"""What a reader continues after: the last change that it has read, or an instant."""


class ChangesMissed(Exception):
    """The feed may lack changes after the reader's position.

    They were removed, or the feed is another one: the store was emptied, or restored from a copy, or it failed over to
    a server that had less. `oldest` is the id of the oldest change that the feed has; None if it has none.
    """

    def __init__(self, oldest: ChangeId | None) -> None:
        super().__init__(str(oldest))
        self.oldest = oldest


class Page(NamedTuple):
    """Changes in their order, what to continue after, and the id of the newest change that the feed has, if any."""

    changes: Sequence[tuple[ChangeId, Change]]
    last: Position
    newest: ChangeId | None


class RedisChanges:
    """The stream `robots:{changes}` of at most about `length` changes; with 0 none is added."""

    def __init__(self, redis: GuardedClient, *, length: int = CHANGES_LENGTH, forbidden: bool = False) -> None:
        """`forbidden`: whether a 401 or 403 closes a site, see judge."""
        self._redis = redis
        self._length = length
        self._forbidden = forbidden

    async def add(self, origin: Origin, before: Snapshot, after: Snapshot | None) -> None:
        """Add the change from one version to the next, unless another process just did. Raises StoreDown."""
        if self._length == 0:
            return
        # In a thread, since it compares two files.
        change = await asyncio.to_thread(change_of, origin, before, after, forbidden=self._forbidden)
        text = change.model_dump_json()
        keys = CHANGES_STREAM, f"{CHANGES_STREAM}:{_fingerprint(origin, before, after)}"
        arguments = str(AGAIN), str(self._length), text
        await _ADD.run(self._redis, keys, *arguments)

    async def read(self, after: Position, count: int) -> Page:
        """Up to `count` changes after the position; raises ChangesMissed and StoreDown.

        An id has to be that of a change that the feed has. A feed that is begun again has other ids, even if they are
        greater, since they have the time in them.
        """
        start = after if isinstance(after, ChangeId) else ChangeId(after.milliseconds)
        reply = await _READ.run(self._redis, [CHANGES_STREAM], str(start), str(count))
        match reply:
            case [int(known), bytes(oldest), bytes(newest), int(removed), list(rows)]:
                pass
            case _:
                raise UnexpectedReply(reply)
        first = _read_id_of(oldest)
        passed = removed and first is not None and start < first
        if not known and (isinstance(after, ChangeId) or (passed and after != OLDEST)):
            raise ChangesMissed(first)
        found: list[tuple[ChangeId, Change]] = []
        last = after
        for row in rows:
            match row:
                case [bytes(id_), bytes(text)]:
                    read = _read_id_of(id_)
                case _:
                    raise UnexpectedReply(row)
            if read is None:
                continue
            last = read
            change = _parse(text)
            if change is not None:
                found.append((read, change))
        return Page(found, last, _read_id_of(newest))

    async def newest(self) -> ChangeId | None:
        """The id of the newest change; None if the feed has none. Raises StoreDown."""
        reply = await self._redis.command(CHANGES_STREAM, "XREVRANGE", CHANGES_STREAM, "+", "-", "COUNT", 1)
        match reply:
            case None | []:  # the key has another type, or no change
                return None
            case [[bytes(id_), _]]:
                return _read_id_of(id_)
            case _:
                raise UnexpectedReply(reply)


def _read_id_of(text: bytes) -> ChangeId | None:
    return read_id(text.decode("ascii", "replace"))


def _fingerprint(origin: Origin, before: Snapshot, after: Snapshot | None) -> str:
    """The same in all processes for one change, and another one when the same contents follow each other again."""
    following = b"%d" % int(before.held_since)
    if after is not None:
        following = digest(after.access) + b"%d" % int(after.held_since)
    return blake2s(b"\0".join([origin.key.encode(), digest(before.access), following]), digest_size=16).hexdigest()


def _parse(text: bytes) -> Change | None:
    """The change that an entry has; None if it is not one."""
    try:
        return Change.model_validate_json(text)
    except ValidationError:
        return None
