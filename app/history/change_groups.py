"""Groups of consumers of the change feed: a change is leased to one caller of a group until it is acknowledged."""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from app.history.change import BYTES, Change
from app.history.redis_changes import ID_LIMIT, STREAM, ChangeId, parse_change, read_id
from app.redis.guarded_client import GuardedClient, StoreDown
from app.redis.script import Script

LEASE = 60.0
"""Seconds in which a caller has to acknowledge the changes that it was given."""

GROUPS = 50
"""Groups of the feed, at most: each takes memory for every change that it has leased."""

LEASED = 10_000
"""Changes that a group may have leased at once: ten callers with as many as one answer has."""

NAME = r"[a-z0-9][a-z0-9-]{0,63}"
"""A regular expression for the names of groups."""

OLDEST: Final = ChangeId(0)
"""Where a group begins that gets all changes of the feed."""

_NAME: Final = re.compile(NAME)
_LONGEST_NAME: Final = 64
_CONSUMER: Final = "service"
"""The name of all callers in Redis, which would keep a consumer for each name for ever."""

_LEASE, _ACKNOWLEDGE, _LIST, _DELETE = (
    Script(__package__, "stream.lua", f"{name}.lua")
    for name in ("lease_changes", "acknowledge_changes", "list_groups", "delete_group")
)


class UnknownGroup(Exception):
    """The group does not exist."""


class TooManyGroups(Exception):
    """There are already GROUPS groups."""


class ChangesMissed(Exception):
    """Changes before `oldest` were removed, and the group had not acknowledged all of them.

    `exists` is false for a new group that would begin before `oldest`. It was not made.
    """

    def __init__(self, oldest: ChangeId, *, exists: bool) -> None:
        super().__init__(str(oldest))
        self.oldest = oldest
        self.exists = exists


class GroupState(NamedTuple):
    """A group: how many changes it has not leased yet, how many it has leased, and the seconds since it last read."""

    name: str
    lag: int | None
    pending: int
    idle: float | None


class RedisChangeGroups:
    """The groups of consumers of the change feed, as consumer groups of its stream."""

    def __init__(self, redis: GuardedClient, *, lease: float = LEASE) -> None:
        self._redis = redis
        self._lease = str(int(lease * 1000))

    async def lease(
        self, group: str, count: int, begin: ChangeId | None = None, *, at_end: bool = False
    ) -> Sequence[tuple[ChangeId, Change]]:
        """Lease up to `count` changes: those whose lease has ended, then new ones.

        A group that does not exist is made if `begin` (the change after which it begins) or `at_end` (it begins with
        the next change to come) is given. Raises UnknownGroup, TooManyGroups, ChangesMissed and StoreDown.
        """
        start = "$" if at_end else "" if begin is None else str(begin)
        numbers = map(str, (count, LEASED, start, GROUPS, 2 * BYTES))
        match await _LEASE.run(self._redis, [STREAM], group, _CONSUMER, self._lease, *numbers):
            case [b"leased", *entries] if len(entries) % 2 == 0:
                return await self._readable(group, entries)
            case [b"unknown"]:
                raise UnknownGroup(group)
            case [b"full"]:
                raise TooManyGroups
            case [b"removed" | b"too old" as kind, bytes(oldest)] if id_ := _id(oldest):
                raise ChangesMissed(id_, exists=kind == b"removed")
            case other:
                raise _unexpected(other)

    async def acknowledge(self, group: str, ids: Sequence[ChangeId], missed_before: ChangeId | None = None) -> int:
        """End the leases of these changes for good; return how many of them the group had leased.

        `missed_before` is what ChangesMissed named: the group continues with that change. Raises UnknownGroup and
        StoreDown.
        """
        missed = "", ""
        if missed_before is not None and missed_before > OLDEST:
            missed = str(missed_before), str(_predecessor(missed_before))
        match await _ACKNOWLEDGE.run(self._redis, [STREAM], group, self._lease, *missed, *map(str, ids)):
            case [int(count)]:
                return count
            case []:
                raise UnknownGroup(group)
            case other:
                raise _unexpected(other)

    async def delete(self, group: str) -> bool:
        """Forget the group and its leases; return whether it existed. Raises StoreDown."""
        return bool(await _DELETE.run(self._redis, [STREAM], group))

    async def list(self) -> Sequence[GroupState]:
        """The groups by name; raises StoreDown."""
        reply = await _LIST.run(self._redis, [STREAM], _CONSUMER, str(GROUPS), str(_LONGEST_NAME))
        if not isinstance(reply, Sequence) or len(reply) % 4:
            raise _unexpected(reply)
        rows = zip(*(reply[at::4] for at in range(4)), strict=True)
        found = ((name.decode("ascii", "replace"), lag, pending, idle) for name, lag, pending, idle in rows)
        return sorted(
            GroupState(name, None if lag < 0 else lag, pending, None if idle < 0 else idle / 1000)
            for name, lag, pending, idle in found
            if _NAME.fullmatch(name)
        )

    async def _readable(self, group: str, entries: Sequence[Any]) -> Sequence[tuple[ChangeId, Change]]:
        """The changes among the entries. Other entries are acknowledged, or they would be leased again for ever."""
        found: list[tuple[ChangeId, Change]] = []
        unreadable: list[ChangeId] = []
        for name, text in zip(entries[::2], entries[1::2], strict=True):
            id_, change = _id(name), parse_change(text)
            if id_ is not None and change is not None:
                found.append((id_, change))
            elif id_ is not None:
                unreadable.append(id_)
        if unreadable:
            await self.acknowledge(group, unreadable)
        return found


def _predecessor(id_: ChangeId) -> ChangeId:
    milliseconds, number = id_
    return ChangeId(milliseconds, number - 1) if number else ChangeId(milliseconds - 1, ID_LIMIT - 1)


def _id(text: bytes) -> ChangeId | None:
    return read_id(text.decode("ascii", "replace"))


def _unexpected(reply: object) -> StoreDown:
    return StoreDown(f"The store answered a script with {reply!r:.100}.")
