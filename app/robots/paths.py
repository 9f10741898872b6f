"""Paths and patterns brought to one spelling, and matched (RFC 9309 2.2.2, 2.2.3, spec D, E3, K8 to K11).

Both sides are one character per octet, as in `syntax`. Every dialect has a pair of functions here: one for the
subject, the URL's path and query, and one for a rule's pattern. What either returns is ASCII.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_HEX = "0123456789ABCDEFabcdef"

# One table lookup per odd spot: every escape in any case of its digits, and every octet that must be one.
_UPPER = {f"%{high}{low}": f"%{high}{low}".upper() for high in _HEX for low in _HEX}
_ENCODED = {chr(octet): f"%{octet:02X}" for octet in (*range(0x21), *range(0x80, 0x100))}
_DECODED = _UPPER | {
    written: chr(int(written[1:], 16)) for written in _UPPER if chr(int(written[1:], 16)) in _UNRESERVED
}
_LITERAL = {"*": "%2A", "$": "%24"}
# The 1996 draft decodes everything but %2F, which equals only itself: it becomes a character no octet can be.
_SLASH_ESCAPE = "\u0100"
_OCTETS = {written: chr(int(written[1:], 16)) for written in _UPPER} | {
    written: _SLASH_ESCAPE for written in _UPPER if written.upper() == "%2F"
}
_GEN_DELIMS = {":": "%3A", "/": "%2F", "?": "%3F", "#": "%23", "[": "%5B", "]": "%5D", "@": "%40"}


def _replacer(odd: str, table: dict[str, str]) -> Callable[[str], str]:
    pattern = re.compile(odd)

    def replace(text: str) -> str:
        return pattern.sub(lambda found: table[found[0]], text) if pattern.search(text) else text

    return replace


_ESCAPE = "%[0-9A-Fa-f]{2}"
_rfc_subject = _replacer(rf"{_ESCAPE}|[\x00-\x20\x80-\xff]|[*$]", _DECODED | _ENCODED | _LITERAL)
_rfc_pattern = _replacer(rf"{_ESCAPE}|[\x80-\xff]|\$(?!\Z)", _DECODED | _ENCODED | _LITERAL)
_google_subject = _replacer(rf"{_ESCAPE}|[\x00-\x20\x80-\xff]", _UPPER | _ENCODED)
_google_pattern = _replacer(rf"{_ESCAPE}|[\x80-\xff]", _UPPER | _ENCODED)
_glob_subject = _replacer(rf"{_ESCAPE}|[\x00-\x20\x80-\xff]", _DECODED | _ENCODED)
_glob_pattern = _replacer(rf"{_ESCAPE}|[\x80-\xff]", _DECODED | _ENCODED)
_draft_octets = _replacer(_ESCAPE, _OCTETS)
_query_delims = _replacer(r"[:/?#\[\]@]", _GEN_DELIMS)


def octets(path: str) -> str:
    """A URL's path as the caller wrote it, one character per octet of its UTF-8."""
    return path if path.isascii() else path.encode("utf-8", "surrogatepass").decode("latin-1")


def rfc_subject(path: str) -> str:
    """Unreserved escapes decoded, all else encoded, `*` and `$` too: in a URL they are characters (spec K8)."""
    return _rfc_subject(octets(path))


def rfc_pattern(value: str) -> str:
    """As the subject, but `*` stays a wildcard, a final `$` an anchor, and blanks stay as they are (spec K9)."""
    return _rfc_pattern(value)


def google_subject(path: str) -> str:
    """Escapes in upper case, blanks and non-ASCII encoded, nothing decoded (spec D4c, K8)."""
    return _google_subject(octets(path))


def google_pattern(value: str) -> str:
    """Escapes in upper case, non-ASCII encoded, nothing decoded (spec D4c, K9)."""
    return _google_pattern(value)


def glob_subject(path: str) -> str:
    """As `rfc_subject`, but `*` and `$` stay: a 2.0 pattern can name them (spec F11)."""
    return _glob_subject(octets(path))


def glob_pattern(value: str) -> str:
    """Unreserved escapes decoded and non-ASCII encoded before the glob is read (spec F11)."""
    return _glob_pattern(value)


def draft_subject(path: str) -> str:
    """Every escape decoded to its octet but %2F, which equals only itself (spec E3)."""
    return _draft_octets(octets(path))


draft_pattern = _draft_octets


def query_escaped(text: str) -> str:
    """A normalised path or pattern with the general delimiters of its query escaped (RFC 9309 figure 4, spec X5)."""
    path, mark, query = text.partition("?")
    return path + mark + _query_delims(query) if mark else text


@dataclass(frozen=True, slots=True)
class Wildcard:
    """A pattern with `*` and a final `$`, cut at its stars: `segments` must follow one another (spec D2, D3).

    Matching takes each segment at its first place after the one before: a later place could only leave less for the
    rest. So it costs one search per segment, and no pattern makes it go back.
    """

    segments: tuple[str, ...]
    anchored: bool

    @property
    def pieces(self) -> tuple[str, ...]:
        """Texts that every subject it matches holds."""
        return self.segments

    @classmethod
    def of(cls, pieces: Sequence[str], *, anchored: bool) -> "Wildcard":
        """What stands between stars; a run of stars is one star, and an empty last piece a final star."""
        first, *rest = pieces
        return cls((first, *filter(None, rest[:-1]), *rest[-1:]), anchored)

    @classmethod
    def read(cls, pattern: str) -> "Wildcard":
        """A normalised pattern of version 1.0."""
        anchored = pattern.endswith("$")
        return cls.of((pattern[:-1] if anchored else pattern).split("*"), anchored=anchored)

    def matches(self, subject: str) -> bool:
        first = self.segments[0]
        if not subject.startswith(first):
            return False
        if len(self.segments) == 1:
            return not self.anchored or len(subject) == len(first)
        at = len(first)
        for segment in self.segments[1:-1]:
            at = subject.find(segment, at)
            if at < 0:
                return False
            at += len(segment)
        last = self.segments[-1]
        if self.anchored:
            return len(subject) - len(last) >= at and subject.endswith(last)
        return subject.find(last, at) >= 0
