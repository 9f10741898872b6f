"""What a robots.txt says, apart from how it is written."""

import re
from hashlib import blake2s
from typing import Final

from robots_core.content import digest
from robots_core.file import File
from robots_core.robots.access import Access, Successful
from robots_core.robots.lines import MEMBER_KEYS, Form, Key, codes_of, scan

_REPORTED: Final = frozenset({Key.NOINDEX, Key.COMMENT})
_DECIDING: Final = (
    frozenset({Key.USER_AGENT, Key.ALLOW, Key.DISALLOW, Key.SITEMAP, Key.LICENSE}) | MEMBER_KEYS
) - _REPORTED
_VALUED: Final = codes_of(_DECIDING, Form)
# These end runs of User-agent lines and records in some dialects, whatever their value is.
_VALUELESS: Final = codes_of(_REPORTED, Form) + codes_of([Key.BLANK])
_KEPT: Final = re.compile(b"%s+|[%s]" % (codes_of([Key.BLANK]), re.escape(_VALUED + codes_of(_REPORTED, Form))))


def same_effect(one: File, other: File) -> bool:
    """Whether two files, or outcomes without one, differ by nothing that any dialect obeys; see `effect`."""
    return effect(one.access) == effect(other.access)


def effect(access: Access) -> bytes:
    """32 bytes, equal for files that differ by nothing that any dialect obeys: rules, rates, usage, licences, sitemaps.

    Comments, unknown lines, statements that are only reported, and the numbers of lines may differ. It takes some
    milliseconds for a large file. An outcome without a file equals only one with its digest.
    """
    if not isinstance(access, Successful):
        return digest(access)
    found = scan(access.body, truncated=access.truncated)
    positions = [line.start() for line in _KEPT.finditer(found.lines.codes)]
    codes = bytes([found.lines.codes[position] for position in positions])
    stated = [position for position, code in zip(positions, codes, strict=True) if code not in _VALUELESS]
    hashed = blake2s(b"truncated" if found.truncated else b"whole")
    hashed.update(len(codes).to_bytes(4, "big") + codes)
    hashed.update(b"".join(len(it).to_bytes(4, "big") + it for it in found.lines.values(stated)))
    return hashed.digest()
