"""The identity of a robots.txt's content, independent of when and by which fetch it was found: its version."""

from hashlib import blake2s, sha256
from typing import assert_never

from robots_core.robots.access import Access, Blocked, Cause, Successful, Unavailable, Unreachable


def same(one: Access, other: Access) -> bool:
    """Whether both have the same content: files of the same bytes have, and so have all failures."""
    return one is other or _content(one) == _content(other)


def digest(access: Access) -> bytes:
    """32 bytes, equal for equal content: the SHA-256 of a complete file, and for all else a hash of its outcome."""
    body, mark = _content(access)
    # Another hash than for files, so that no file can be crafted to look like the lack of one.
    return sha256(body).digest() if not mark else blake2s(mark.encode() + b"\0" + body).digest()


def id_of(digest: bytes) -> str:
    """The id of a version: the digest's first 16 hexadecimal digits."""
    return digest.hex()[:16]


def version_id(access: Access) -> str | None:
    """The id of the version that a fetch found; None if it failed, so that the origin said nothing."""
    return None if isinstance(access, Unreachable | Blocked) else id_of(digest(access))


def _content(access: Access) -> tuple[bytes, str]:
    """The bytes of a complete file and no mark; all else has a mark."""
    match access:
        case Successful(_, body, truncated):
            return body, "truncated" if truncated else ""
        case Unavailable(status, cause):
            if cause in (Cause.REDIRECT_LOOP, Cause.COOKIE_LOOP, Cause.REFUSED_REDIRECT):
                status = 302  # whichever redirect came last
            # The body of an error response does not count as content.
            return b"", f"unavailable {status} {None if cause is Cause.HTML_PAGE else cause}"
        case Unreachable(cause=Cause.CHALLENGE):
            return b"", "challenge"
        case Unreachable():
            return b"", "unreachable"
        case Blocked():
            return b"", "blocked"
        case unknown:
            assert_never(unknown)
