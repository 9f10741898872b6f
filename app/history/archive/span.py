"""A span of an origin's history, as a line of the archive; pure."""

from hashlib import sha256
from typing import Annotated, Final, TypeAlias

import msgspec

from app.cache import codec
from app.cache.freshness import Snapshot
from app.history.versions import Version, version_of
from robots_core.content import digest, id_of
from robots_core.origin import Origin
from robots_core.robots.access import Successful

LONGEST_LINE: Final = 256 * 1024
"""Bytes of the longest line that is read; a final URL and a Content-Type are far shorter."""

Sha256: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]


class ArchiveSpan(msgspec.Struct, frozen=True):
    """What fetches found from `first_seen` to `last_seen`, in whole Unix seconds.

    `origin` is an origin's key; `digest` is from robots_core.content, and its beginning is the version's id; `body` is
    the SHA-256 of the file's bytes in hexadecimal digits, None without a file; `facts` are those of its last fetch.
    """

    origin: str
    digest: Sha256
    body: Sha256 | None
    first_seen: codec.WholeSeconds
    last_seen: codec.WholeSeconds
    facts: codec.SnapshotFacts

    @property
    def id(self) -> str:
        """The id of the version."""
        return id_of(bytes.fromhex(self.digest))

    @property
    def own_until(self) -> int | None:
        """When the service itself last found it; None if only callers did."""
        return self.facts.own_seen(self.first_seen, self.last_seen)

    def line(self) -> bytes:
        """The span as a line of JSON, with its line break."""
        return msgspec.json.encode({"version": self.id, **msgspec.structs.asdict(self)}) + b"\n"

    def version(self, body: bytes) -> Version | None:
        """The version with this file; None if it is not the file of the span."""
        if (None if self.body is None else sha256(body).hexdigest()) != self.body:
            return None
        snapshot = self.facts.snapshot(body)
        if snapshot is None or digest(snapshot.access).hex() != self.digest:
            return None
        return version_of(snapshot)._replace(first_seen=self.first_seen, last_seen=self.last_seen)


_DECODER: Final = msgspec.json.Decoder(ArchiveSpan)


def span_of(origin: Origin, snapshot: Snapshot) -> tuple[ArchiveSpan, bytes | None]:
    """The span of a snapshot so far, and the bytes of its file."""
    access, own = snapshot.access, snapshot
    body = access.body if isinstance(access, Successful) else None
    if body is not None and snapshot.failing is not None:
        own = snapshot.without_failing() or snapshot
    name = None if body is None else sha256(body).hexdigest()
    first, last = int(snapshot.held_since), int(snapshot.fetched_at)
    return ArchiveSpan(origin.key, digest(access).hex(), name, first, last, codec.facts_of(own)), body


def read_span(line: bytes) -> ArchiveSpan | None:
    """The span in this line, None if it cannot be read."""
    try:
        span = _DECODER.decode(line) if len(line) <= LONGEST_LINE else None
    except (ValueError, RecursionError):
        return None
    return span if span is not None and span.first_seen <= span.last_seen else None
