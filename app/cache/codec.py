"""Encode snapshots for the store, and decode them. The bytes are not trusted.

The format is a two-byte mark, then one Zstandard frame: a line of JSON with the facts, then the body as it is.

Two releases share a store during a rolling upgrade, so each reads what the other writes. A reader ignores members and
trailing list items that it does not know, and gives missing ones their default. A writer adds members, and never
removes or redefines one; where an older reader would misread the rest, it raises `min_version`, and older releases
treat the value as a miss.
"""

from typing import Annotated, Final, TypeAlias, assert_never

import msgspec

from app.cache.compression import compress, decompress, first_line
from app.cache.freshness import Failing, First, Snapshot
from robots_core.dates import END_OF_TIME
from robots_core.robots.access import (
    BODY_LIMIT,
    DETAIL_LIMIT,
    Access,
    Blocked,
    Cause,
    Successful,
    Unavailable,
    Unreachable,
    Validators,
)
from robots_core.times import LONGEST_DELTA

FACTS_LIMIT = 1024 * 1024
"""Bytes of the longest line of facts that is read; the fetch bounds header fields far below."""

ENCODED_LIMIT = (BODY_LIMIT + 1 + FACTS_LIMIT) * 257 // 256 + 64
"""Bytes of the longest encoding that is read; compression adds at most 1/256 to incompressible data."""

VERSION = 1
"""The version that this release reads; a value whose `min_version` is higher is a miss."""

_MARK = b"R\x02"
_BODY_LIMIT = BODY_LIMIT + 1  # see readable_part
_PLAIN_LIMIT = FACTS_LIMIT + _BODY_LIMIT + 1


_Status: TypeAlias = Annotated[int, msgspec.Meta(ge=100, le=999)]
_Time: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=END_OF_TIME)]
WholeSeconds: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=int(END_OF_TIME))]


class _Successful(msgspec.Struct, array_like=True, tag="successful"):
    status: _Status
    truncated: bool
    content_type: str | None


class _Unavailable(msgspec.Struct, array_like=True, tag="unavailable"):
    status: _Status
    cause: Cause | None


class _Unreachable(msgspec.Struct, array_like=True, tag="unreachable"):
    """The failure is that of `failing`."""


class _Blocked(msgspec.Struct, array_like=True, tag="blocked"):
    address: str


_StoredAccess: TypeAlias = _Successful | _Unavailable | _Unreachable | _Blocked


class SnapshotFacts(msgspec.Struct, omit_defaults=True):
    """The facts of a fetch, all but the body, as they are stored."""

    access: _StoredAccess
    fetched_at: _Time
    final_url: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    lifetime: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_DELTA)] | None = None
    failing: Failing | None = None
    since: WholeSeconds | None = None
    ingested: str | None = None
    own_until: WholeSeconds | None = None
    min_version: Annotated[int, msgspec.Meta(ge=0, le=VERSION)] = VERSION

    def own_seen(self, first: int, last: int) -> int | None:
        """When the service itself last found a version that was in use from `first` to `last`, in whole seconds.

        None if only callers found it.
        """
        if self.ingested is None:
            return last
        return None if self.own_until is None or self.own_until < first else min(self.own_until, last)

    def snapshot(self, body: bytes) -> Snapshot | None:
        """The snapshot with these facts and this body; None if they contradict each other."""
        failing = self.failing
        access = _access(self.access, body, failing)
        if access is None or (self.since is not None and self.since > self.fetched_at):
            return None
        if failing is not None and not _is_plausible(failing):
            return None
        return Snapshot(
            access,
            self.fetched_at,
            self.final_url,
            Validators(self.etag, self.last_modified),
            self.lifetime,
            failing,
            self.since,
            self.ingested,
            self.own_until,
        )


_FACTS: Final = msgspec.json.Decoder(SnapshotFacts)


def encode(snapshot: Snapshot) -> bytes:
    """The snapshot as bytes that `decode` reads."""
    return _MARK + compress(plain(snapshot))


def plain(snapshot: Snapshot) -> bytes:
    """The content of the compressed part: a line of JSON with the facts, then the body."""
    body = snapshot.access.body if isinstance(snapshot.access, Successful) else b""
    return msgspec.json.encode(facts_of(snapshot)) + b"\n" + body


def facts_of(snapshot: Snapshot) -> SnapshotFacts:
    """The facts of the fetch that found the snapshot."""
    return SnapshotFacts(
        _write_access(snapshot.access),
        snapshot.fetched_at,
        snapshot.final_url,
        snapshot.validators.etag,
        snapshot.validators.last_modified,
        snapshot.lifetime,
        snapshot.failing,
        snapshot.since,
        snapshot.ingested,
        snapshot.own_until,
    )


def decode(data: bytes) -> Snapshot | None:
    """The snapshot in these bytes; None if they are damaged, foreign, too large or need a later release."""
    if len(data) > ENCODED_LIMIT or not data.startswith(_MARK):
        return None
    try:
        line, newline, body = decompress(data[len(_MARK) :], _PLAIN_LIMIT).partition(b"\n")
        if not newline or len(line) > FACTS_LIMIT or len(body) > _BODY_LIMIT:
            return None
        return _FACTS.decode(line).snapshot(body)
    except (ValueError, RecursionError):
        return None


def read_facts(data: bytes) -> SnapshotFacts | None:
    """The facts of an encoded snapshot, whose body stays compressed; None if they cannot be read."""
    try:
        return _FACTS.decode(first_line(data[len(_MARK) :], FACTS_LIMIT)) if data.startswith(_MARK) else None
    except (ValueError, RecursionError):
        return None


def _write_access(access: Access) -> _StoredAccess:
    match access:
        case Successful(status, _, truncated, content_type):
            return _Successful(status, truncated, content_type)
        case Unavailable(status, cause):
            return _Unavailable(status, cause)
        case Unreachable():
            return _Unreachable()
        case Blocked(address):
            return _Blocked(address)
        case unknown:
            assert_never(unknown)


def _access(stored: _StoredAccess, body: bytes, failing: Failing | None) -> Access | None:
    match stored:
        case _Successful():
            return Successful(stored.status, body, stored.truncated, stored.content_type)
        case _Unreachable() if failing is not None and not body:
            return failing.failure
        case _Unavailable() if failing is None and not body:
            return Unavailable(stored.status, stored.cause)
        case _Blocked() if failing is None and not body:
            return Blocked(stored.address)
        case _:
            return None


def _is_plausible(failing: Failing) -> bool:
    """Whether its values are within their bounds; their types are known to be right."""
    first = failing.first or First(failing.since, failing.failure)
    if failing.attempts < 1 or not all(0 <= at <= END_OF_TIME for at in (failing.since, failing.last_at, first.at)):
        return False
    return all(
        (failure.status is None or 100 <= failure.status <= 999)
        and (failure.retry_after or 0) >= 0
        and len(failure.detail or "") <= DETAIL_LIMIT
        for failure in (failing.failure, first.failure)
    )
