"""Entity tags (RFC 9110 8.8.3): that of an answer is made from the answer, that of a file from the facts of its fetch.

They are weak: `robots.age`, `robots.source` and `robots.recheck_at` may differ between two answers with one tag, so
their bytes differ although their meaning does not. (Under a recheck model that counts visits, each question moves the
recheck.) All processes with the same release, settings and files compute the same tag.
"""

from collections.abc import Callable
from hashlib import blake2b
from typing import Final, NamedTuple

from app import __version__
from app.cache.freshness import Snapshot, State
from app.decisions.evaluate import CachedFile
from robots_core.agents.directory import AgentDirectory
from robots_core.content import digest
from robots_core.robots.access import Successful, Unreachable

VOLATILE: Final = frozenset({"age", "source", "recheck_at"})
"""Members of `robots` that a tag leaves out."""

_WEAK: Final = b"W/"


class EntityTag(NamedTuple):
    """The value of an ETag field."""

    field: bytes

    def matches(self, if_none_match: bytes) -> bool:
        """Whether the value of an If-None-Match names this tag, or any (RFC 9110 13.1.2, by weak comparison)."""
        # The opaque part has neither quote nor comma, so that with its quotes it is found only as a member of the list.
        return self.field.removeprefix(_WEAK) in if_none_match or if_none_match.strip() == b"*"


def content_digest(*parts: bytes) -> bytes:
    """A digest of these parts, whose lengths count."""
    found = blake2b(digest_size=12)
    for part in parts:
        found.update(b"%d:" % len(part) + part)
    return found.digest()


def tag_of(*parts: bytes) -> EntityTag:
    """The tag of what consists of these parts."""
    return EntityTag(b'%s"%s"' % (_WEAK, content_digest(*parts).hex().encode("ascii")))


class FileTags:
    """The tags of answers about files, which need not be encoded for them."""

    def __init__(self, known: Callable[[], AgentDirectory]) -> None:
        self._known = known

    def of_file(self, asked: bytes, file: CachedFile) -> EntityTag | None:
        """The tag of the answer to the query string `asked`; None if it must not be stored."""
        snapshot, freshness = file.cached.snapshot, file.cached.freshness
        if file.revision is None or snapshot is None or freshness is None or freshness.state is not State.FRESH:
            return None
        if isinstance(snapshot.access, Unreachable):
            return None
        facts = (__version__, self._known().digest, _facts_of(snapshot), freshness.stale)
        return tag_of(asked, repr(facts).encode("utf-8", "surrogatepass"))


def _facts_of(snapshot: Snapshot) -> tuple[object, ...]:
    """What answers say about a fetch."""
    access = snapshot.access
    found = (access.status, access.content_type, digest(access)) if isinstance(access, Successful) else access
    return (found, snapshot.fetched_at, snapshot.final_url, snapshot.failing)
