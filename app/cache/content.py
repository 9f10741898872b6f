"""What tells one content of an origin's robots.txt from another, whenever and by whichever fetch it was found."""

from hashlib import blake2s, sha256
from typing import assert_never

from app.robots.access import Access, Blocked, Cause, Successful, Unavailable, Unreachable


def same(one: Access, other: Access) -> bool:
    """Whether both are one content. Failures are, whatever each of them was, and so are files of the same octets."""
    return one is other or _content(one) == _content(other)


def digest(access: Access) -> bytes:
    """32 octets, the same for the same content: the SHA-256 of a whole file, and for all else a hash of what it is."""
    body, mark = _content(access)
    # By another hash than a file's own, so that no file can be made to look like the lack of one.
    return sha256(body).digest() if not mark else blake2s(mark.encode() + b"\0" + body).digest()


def _content(access: Access) -> tuple[bytes, str]:
    """A whole file's octets and no mark; all else has one."""
    match access:
        case Successful(_, body, truncated):
            return body, "truncated" if truncated else ""
        case Unavailable(status, cause):
            return b"", f"unavailable {status} {cause}"
        case Unreachable(cause=Cause.CHALLENGE):
            return b"", "challenge"
        case Unreachable():
            return b"", "unreachable"
        case Blocked():
            return b"", "blocked"
        case unknown:
            assert_never(unknown)
