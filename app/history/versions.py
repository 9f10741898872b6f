"""The versions of an origin's robots.txt, and when each was in use; no I/O and no clock.

Every instant is in whole Unix seconds. The rule of what was in use is in app.history.periods. The current version is
only in the snapshot, with its beginning: a file that never changes has no history. A version is added when other
content is found, or when the file is purged. Neighbours with the same effect are one period, with the text of the last:
a comment that changes at each fetch costs no version.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Final, NamedTuple, TypeAlias

import msgspec

from app.cache import codec
from app.cache.freshness import DAY, KEEP, Failing, Snapshot
from app.history.periods import Period, after_own_fetches
from robots_core.content import digest, id_of
from robots_core.diff.effect import effect
from robots_core.robots.access import Cause, Successful, Unreachable

VERSIONS = 20
"""How many versions of an origin are kept; the oldest is dropped first.

Versions that only callers sent take half of them if the service found as many itself, and likewise of HISTORY_BYTES.
"""

HISTORY_BYTES = 640 * 1024
"""Bytes of all versions as stored; the oldest is dropped first. Any single file fits, even uncompressed."""

HISTORY_EXPIRY = 90 * DAY
"""Seconds after the last addition for which a history is kept, and so each version after it has ended."""

_MARK: Final = b"H\x02"

TAGGED: Final = len(_MARK) + 8
"""How many bytes at the beginning identify a write."""

FAILURE_DIGESTS: Final = frozenset({digest(Unreachable(Cause.TIMEOUT)), digest(Unreachable(Cause.CHALLENGE))})
"""The digests of all failures."""

_GAP: Final = bytes(32)
"""The digest of a version that stands for copies that were dropped; it cannot be read."""

_OVERHEAD: Final = 64
"""Bytes of a stored version, at most, besides its packed snapshot."""


class Version(NamedTuple):
    """One content of an origin's robots.txt, or the lack of a file, and when fetches found it first and last.

    `digest` is from robots_core.content. `packed` is the encoded snapshot that `read` returns.
    """

    digest: Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
    first_seen: codec.WholeSeconds
    last_seen: codec.WholeSeconds
    packed: bytes

    @property
    def id(self) -> str:
        """The digest's first 16 hexadecimal digits."""
        return id_of(self.digest)

    @property
    def own_until(self) -> int | None:
        """When the service itself last found it; None if only callers did."""
        if self.digest == _GAP:
            return None
        facts = codec.read_facts(self.packed)
        return self.last_seen if facts is None else facts.own_seen(self.first_seen, self.last_seen)

    def read(self) -> Snapshot | None:
        """The snapshot of the last fetch, dated to the first one; None if it cannot be read or the digest differs."""
        snapshot = codec.decode(self.packed)
        if snapshot is None or digest(snapshot.access) != self.digest:
            return None
        return replace(snapshot, fetched_at=float(self.first_seen), since=None)


History: TypeAlias = tuple[Version, ...]
"""Versions in the order of their use; no two neighbours have the same content, or the same effect."""

_DECODER: Final = msgspec.msgpack.Decoder(Annotated[History, msgspec.Meta(max_length=VERSIONS)])


def version_of(snapshot: Snapshot) -> Version:
    """The version of a snapshot; encoding it takes some milliseconds if the file is large."""
    first_seen, last_seen = int(snapshot.held_since), int(snapshot.fetched_at)
    own = Snapshot(
        snapshot.access,
        first_seen,
        snapshot.final_url,
        failing=_own_failing(snapshot),
        ingested=snapshot.ingested,
        own_until=snapshot.own_until,
    )
    packed = codec.encode(own)
    return Version(digest(snapshot.access), first_seen, last_seen, packed)


def add(history: History, versions: Iterable[Version], now: float) -> History:
    """The history with these versions in any order, within VERSIONS and HISTORY_BYTES; adding one twice has no effect.

    Periods overlap if processes did not know of each other. Then the one that began last counts, and one within another
    divides that, except for a copy between two fetches of the service that agree: see app.history.periods. An instant
    after `now` (a clock was set back) counts as `now`. To compare effects takes some milliseconds if the files are
    large.
    """
    latest, added = int(now), tuple(versions)
    periods = [
        it._replace(first_seen=min(it.first_seen, latest), last_seen=min(it.last_seen, latest))
        for it in (*history, *added)
    ]
    new = {it.digest for it in added}  # stored neighbours are known to differ

    def one_period(before: Version, version: Version) -> bool:
        return (before.digest in new or version.digest in new) and _same_effect(before, version)

    return _bounded(in_order(periods, one_period))


def in_order(
    periods: Iterable[Version], one_period: Callable[[Version, Version], bool] = lambda _before, _version: False
) -> list[Version]:
    """The periods without overlaps; neighbours with the same content, or that are `one_period`, are joined."""
    # Of those that began in one second, the one that lasted longest was the last; by digest, so that the order of
    # additions does not matter.
    ordered = sorted(periods, key=_order)
    if any(other.first_seen <= one.last_seen for one, other in pairwise(ordered)):
        named = (Period(it.first_seen, it.last_seen, it.own_until, it.digest in FAILURE_DIGESTS, it) for it in ordered)
        counted = (it.of._replace(first_seen=it.first_seen, last_seen=it.last_seen) for it in after_own_fetches(named))
        ordered = sorted(counted, key=_order)
    joined: list[Version] = []
    for version in _without_overlaps(ordered):
        before = joined[-1] if joined else None
        if before is not None and (before.digest == version.digest or one_period(before, version)):
            joined[-1] = _joined(before, version)
        else:
            joined.append(version)
    return joined


def is_new(history: History, ended: Snapshot) -> bool:
    """Whether adding the version that ended with this snapshot adds a period of other content to the history."""
    name, last_seen = digest(ended.access), int(ended.fetched_at)
    if len(history) == VERSIONS and last_seen < history[0].first_seen:
        return False  # it would be the first to be dropped
    # The period of this content, or of one with its effect, that was found before the version ended, if it is stored.
    stored = [version for version in history if version.first_seen <= last_seen]
    same = [version for version in stored if version.digest == name]
    if not same:
        own = effect(ended.access)
        same = [version for version in stored if _effect_of(version) == own]
    return not same or same[-1].last_seen < int(ended.held_since)


def with_current(history: History, current: Snapshot, now: float) -> History:
    """The history with the current version, which is not stored in it, as its last."""
    version = version_of(current)
    versions = add(history, [version], now)
    if versions and versions[-1].digest == version.digest:
        return versions
    if (
        len(versions) > 1
        and versions[-2].digest == version.digest
        and versions[-2].first_seen == versions[-1].first_seen
    ):
        *earlier, own, ended = versions  # both were found within one second, and the current one is the last
        last_seen = max(ended.last_seen, min(version.last_seen, int(now)))
        return (*earlier, ended._replace(last_seen=ended.first_seen), own._replace(last_seen=last_seen))
    # Others have later instants: from a clock that was ahead, or from a process that did not know the fleet's snapshot.
    at = max((it.last_seen for it in versions), default=min(version.last_seen, int(now)))
    return (*versions, version._replace(first_seen=at, last_seen=at))


def version_at(history: History, at: float) -> Version | None:
    """The version in use at this instant: the last one seen by then, if that was at most KEEP before and is kept."""
    version = next((version for version in reversed(history) if version.first_seen <= at), None)
    if version is None or version.digest == _GAP:
        return None
    return version if at <= version.last_seen + KEEP else None


def write(history: History, tag: bytes) -> bytes:
    """The history as bytes that `read` reads; `tag`, 8 bytes, makes this write differ from all others."""
    return _MARK + tag + msgspec.msgpack.encode(history)


def read(data: bytes) -> History:
    """Read what `write` wrote; a value that is damaged, foreign or too large is an empty history."""
    if not data.startswith(_MARK) or len(data) > HISTORY_BYTES:
        return ()
    try:
        versions = _DECODER.decode(data[TAGGED:])
    except (ValueError, RecursionError):
        return ()
    times = [at for version in versions for at in (version.first_seen, version.last_seen)]
    ordered = times == sorted(times) and all(one.digest != other.digest for one, other in pairwise(versions))
    return versions if ordered else ()


def _same_effect(one: Version, other: Version) -> bool:
    found = _effect_of(one)
    return found is not None and found == _effect_of(other)


def _effect_of(version: Version) -> bytes | None:
    snapshot = version.read()
    return None if snapshot is None else effect(snapshot.access)


def _own_failing(snapshot: Snapshot) -> Failing | None:
    # Later failures do not belong to a copy; an Unreachable access is stored with its run of failures.
    return None if isinstance(snapshot.access, Successful) else snapshot.failing


def _order(version: Version) -> tuple[int, int, bytes]:
    return version.first_seen, version.last_seen, version.digest


def _joined(before: Version, version: Version) -> Version:
    """The version with the period before it, which had the same content or effect."""
    joined = version._replace(first_seen=before.first_seen, packed=_with_first(version, before))
    own = before.own_until if version.own_until is None else None
    if own is not None and joined.own_until != own:
        snapshot = joined.read()
        if snapshot is not None:
            return joined._replace(packed=codec.encode(replace(snapshot, own_until=own)))
    return joined


def _with_first(version: Version, before: Version) -> bytes:
    """The packed snapshot of a version that a period of the same failure precedes, with the first failure of that."""
    if version.digest not in FAILURE_DIGESTS:
        return version.packed
    snapshot, earlier = version.read(), before.read()
    if snapshot is None or earlier is None or snapshot.failing is None or earlier.failing is None:
        return version.packed
    since = min(earlier.failing.since, snapshot.failing.since)
    return codec.encode(replace(snapshot, failing=replace(snapshot.failing, since=since, first=earlier.failing.first)))


def _is_copy_at_end(before: Version, version: Version) -> bool:
    """Whether only callers sent a version of the second of a fetch that ends the one before it.

    It leaves it that second: if it did not, copies could shorten what fetches confirmed, second by second.
    """
    return version.first_seen == before.last_seen and version.own_until is None and before.own_until is not None


def _without_overlaps(periods: Iterable[Version]) -> Iterator[Version]:
    """The periods, ordered by their beginning, without overlaps: each covers those that began before it."""
    covered: list[Version] = []  # those that have not ended, each covered by the next
    start = 0  # the first instant that no version was returned for
    for top in (*periods, None):
        while covered:
            last = covered[-1]
            until = last.last_seen
            if top is not None and top.first_seen <= until and not _is_copy_at_end(last, top):
                # Its first instant is its own, even if another one begins then.
                until = min(until, max(last.first_seen, top.first_seen - 1))
            if start <= until:
                yield last._replace(first_seen=start, last_seen=until)
                start = until + 1
            if until < last.last_seen:
                break
            covered.pop()
        if top is not None:
            covered.append(top)
            start = top.first_seen


def _bounded(versions: Sequence[Version]) -> History:
    kept = list(versions)
    if _fits(kept):
        return tuple(kept)
    own = {version for version in kept if version.own_until is not None}
    # Searched from the start for each version that goes: there are VERSIONS, and one or two more come at a time.
    while not _fits(kept):
        kept = _shorter(kept, own)
    return tuple(kept)


def _fits(versions: Sequence[Version], share: int = 1) -> bool:
    """Whether the versions are within the limits, or within a part of them."""
    return len(versions) <= VERSIONS // share and _size(versions) <= HISTORY_BYTES // share


def _shorter(versions: list[Version], own: Set[Version]) -> list[Version]:
    """Without the oldest version, or with less of the copies if the service found no more than its share itself."""
    found = [version for version in versions if version in own]
    if versions[0] in own and (len(found) == 1 or _fits(found, share=2)):
        of_copies = [at for at, version in enumerate(versions) if version not in own]
        if len(versions) > VERSIONS:  # two in a row become one
            dropped = next(((at, at + 2) for at in of_copies if at + 1 in of_copies), None)
        else:
            dropped = next(((at, at + 1) for at in of_copies if versions[at].packed), None)
        if dropped is not None:
            return _with_gap(versions, *dropped)
    return versions[1:]


def _with_gap(versions: list[Version], begin: int, end: int) -> list[Version]:
    """The versions with a gap in place of some, which is one with its neighbours if they are gaps."""
    while begin and versions[begin - 1].digest == _GAP:
        begin -= 1
    while end < len(versions) and versions[end].digest == _GAP:
        end += 1
    gap = Version(_GAP, versions[begin].first_seen, versions[end - 1].last_seen, b"")
    return [*versions[:begin], gap, *versions[end:]]


def _size(versions: Iterable[Version]) -> int:
    return TAGGED + sum(_OVERHEAD + len(version.packed) for version in versions)
