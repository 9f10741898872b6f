"""Spans for tests of the archive, and what the index has of them."""

import hashlib

import pytest

from app.cache.freshness import Failing, Snapshot
from app.history.archive import writer
from app.history.archive.archive import Archive
from app.history.archive.files import ArchiveFiles
from app.history.archive.span import span_of
from robots_core.origin import Origin
from robots_core.robots.access import Access, Blocked, Cause, Successful, Unavailable, Unreachable

SITE = Origin("https", "www.example.com", 443)
BOT = SITE.with_profile("bot")
A, B = (Successful(200, f"User-agent: *\nDisallow: /{name}\n".encode(), content_type="text/plain") for name in "ab")
DOWN = Unreachable(Cause.SERVER_ERROR, 503)
NOW = 1_790_000_000


def found(access: Access, at: float) -> Snapshot:
    failing = Failing(at, at, 1, access) if isinstance(access, Unreachable) else None
    return Snapshot(access, at, failing=failing)


def write(archive: Archive, *snapshots: Snapshot, origin: Origin = SITE, process: str = "p") -> None:
    archive.write([span_of(origin, snapshot) for snapshot in snapshots], process, "2026-09-21")


def limit(
    patch: pytest.MonkeyPatch, *, waiting: int | None = None, every: float = 0.001, copy_wait: float | None = None
) -> None:
    """Let less wait for a writer, and let it write more often."""
    for name, value in (("WAITING_ARCHIVE_BYTES", waiting), ("ARCHIVE_EVERY", every), ("COPY_WAIT", copy_wait)):
        if value is not None:
            patch.setattr(writer, name, value)


def origins(files: ArchiveFiles) -> set[str]:
    """What names the origins in the index."""
    return {name.split("/")[2] for name in files.names("index")}


def folder_name(origin: Origin) -> str:
    """What names an origin in the index."""
    return hashlib.sha256(origin.key.encode()).hexdigest()


def index_of(files: ArchiveFiles) -> dict[str, list[bytes]]:
    return {name: sorted(line.data for line in files.lines(name)) for name in files.names("index")}


ACCESSES: list[Access] = [
    A,
    Successful(200, b"", content_type=None),
    Successful(206, b"a" * 1000, truncated=True),
    Unavailable(404),
    Unavailable(301, Cause.REDIRECT_LOOP),
    DOWN,
    Blocked("::1"),
]
