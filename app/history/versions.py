"""The versions of an origin's robots.txt, and when each was in use; no I/O and no clock.

Every instant is whole Unix seconds. The current version is only in the snapshot, which says since when: a file that
never changes has no history. A version is written when another content is found, or when it is purged.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, TypeAlias

from app.cache import codec
from app.cache.content import digest
from app.cache.freshness import DAY, KEEP, Failing, Snapshot
from app.robots.access import Successful

VERSIONS = 20
"""How many versions of an origin are kept; the oldest goes first."""

BYTES = 640 * 1024
"""Bytes of all versions as stored; the oldest is dropped first. Any single file fits, however badly it compresses."""

EXPIRY = 90 * DAY
"""Seconds after which a history is gone to which nothing was added: a version is kept so long after it has ended."""

_MARK: Final = b"H\x01"

TAGGED: Final = len(_MARK) + 8
"""How many bytes at the beginning differ from one write to another."""

_HEAD: Final = struct.Struct(">32sQQI")
_END_OF_TIME: Final = 253_402_300_799  # the last second of the year 9999: a later one has no date to show


@dataclass(frozen=True, slots=True)
class Version:
    """A content of an origin's robots.txt, or what was found in its place, and when fetches found it first and last.

    `digest` is that of `content`. `packed` holds the snapshot that `read` gives.
    """

    digest: bytes
    first_seen: int
    last_seen: int
    packed: bytes

    @property
    def id(self) -> str:
        """The digest's first 16 hexadecimal digits."""
        return self.digest.hex()[:16]

    def read(self) -> Snapshot | None:
        """What the last fetch found, dated to the first; None where the digest does not match."""
        snapshot = codec.decode(self.packed)
        if snapshot is None or digest(snapshot.access) != self.digest:
            return None
        return replace(snapshot, fetched_at=float(self.first_seen), since=None)


History: TypeAlias = tuple[Version, ...]
"""Versions in the order they were held in; no two neighbours have the same content."""


def version_of(snapshot: Snapshot) -> Version:
    """The version that a snapshot holds; packing it takes some milliseconds where the file is large."""
    first_seen, last_seen = int(snapshot.held_since), int(snapshot.fetched_at)
    packed = codec.encode(Snapshot(snapshot.access, first_seen, snapshot.final_url, failing=_own_failing(snapshot)))
    return Version(digest(snapshot.access), first_seen, last_seen, packed)


def add(history: History, versions: Iterable[Version], now: float) -> History:
    """The history with these versions in any order, within VERSIONS and BYTES; adding one twice has no effect.

    Where stretches overlap, which is when processes did not know of each other, the one that began last counts: one
    that lies within another divides it. An instant ahead of `now` (a clock was set back) counts as `now`.
    """
    latest = int(now)
    stretches = [
        replace(it, first_seen=min(it.first_seen, latest), last_seen=min(it.last_seen, latest))
        for it in (*history, *versions)
    ]
    # By digest where they begin at once, so that what is written twice, in other orders, comes to the same.
    stretches.sort(key=lambda it: (it.first_seen, it.digest, -it.last_seen))
    joined: list[Version] = []
    for version in _side_by_side(stretches):
        if joined and joined[-1].digest == version.digest:
            joined[-1] = replace(joined[-1], last_seen=version.last_seen)
        else:
            joined.append(version)
    return _bounded(joined)


def with_current(history: History, held: Snapshot, now: float) -> History:
    """The history with the current version, which is not stored in it, as its last."""
    version = version_of(held)
    versions = add(history, [version], now)
    if versions and versions[-1].digest == version.digest:
        return versions
    # Others are said to have been seen later: by a clock that was ahead, or by who did not know what the fleet holds.
    at = max((it.last_seen for it in versions), default=min(version.last_seen, int(now)))
    return (*versions, replace(version, first_seen=at, last_seen=at))


def version_at(history: History, at: float) -> Version | None:
    """The version in use at this instant: the last one seen by then, if that was at most KEEP before."""
    version = next((version for version in reversed(history) if version.first_seen <= at), None)
    return version if version is not None and at <= version.last_seen + KEEP else None


def write(history: History, tag: bytes) -> bytes:
    """The history as bytes that `read` reads; `tag`, 8 bytes, makes this write differ from all others."""
    parts = [_MARK, tag]
    for version in history:
        parts.append(_HEAD.pack(version.digest, version.first_seen, version.last_seen, len(version.packed)))
        parts.append(version.packed)
    return b"".join(parts)


def read(data: bytes) -> History:
    """Parse what `write` wrote; a value that is damaged, foreign or too large is an empty history."""
    if not data.startswith(_MARK) or len(data) > BYTES:
        return ()
    versions: list[Version] = []
    at = TAGGED
    while at < len(data) and len(versions) < VERSIONS:
        if len(data) - at < _HEAD.size:
            return ()
        name, first_seen, last_seen, size = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        versions.append(Version(name, first_seen, last_seen, data[at : at + size]))
        at += size
    times = [at for version in versions for at in (version.first_seen, version.last_seen)]
    ordered = times == sorted(times) and all(one.digest != other.digest for one, other in pairwise(versions))
    return tuple(versions) if at == len(data) and ordered and max(times, default=0) <= _END_OF_TIME else ()


def _own_failing(snapshot: Snapshot) -> Failing | None:
    # A copy that stands in was found all the same; a failure is nothing without its run of failures.
    return None if isinstance(snapshot.access, Successful) else snapshot.failing


def _side_by_side(stretches: Iterable[Version]) -> Iterator[Version]:
    """The same without overlaps, of stretches in the order they begin in."""
    under: list[Version] = []  # those that are not over, each covered by the next
    covered = 0  # the first instant that is not covered yet
    for top in (*stretches, None):
        while under:
            shown = under[-1]
            # The first instant is its own, also where another begins with it.
            until = shown.last_seen if top is None else min(shown.last_seen, max(shown.first_seen, top.first_seen - 1))
            if covered <= until:
                yield replace(shown, first_seen=covered, last_seen=until)
                covered = until + 1
            if until < shown.last_seen:
                break
            under.pop()
        if top is not None:
            under.append(top)
            covered = top.first_seen


def _bounded(versions: list[Version]) -> History:
    kept = versions[-VERSIONS:]
    sizes = [_HEAD.size + len(version.packed) for version in kept]
    size = TAGGED + sum(sizes)
    for first, freed in enumerate(sizes):
        if size <= BYTES:
            return tuple(kept[first:])
        size -= freed
    return ()
