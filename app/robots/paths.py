"""Paths and patterns brought to one spelling, and matched (RFC 9309 2.2.2, 2.2.3, spec D, E3, K8 to K11).

Both sides are one character per octet, as in `syntax`. Every dialect has a pair of functions here: one for the
subject, the URL's path and query, and one for a rule's pattern. What either returns is ASCII.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.robots.compiled.spelling import Speller

_UNRESERVED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"

# What becomes of octets, and of octets that are escaped.
_UPPER = {octet: f"%{octet:02X}" for octet in range(0x100)}
_DECODED = _UPPER | {octet: chr(octet) for octet in _UNRESERVED}
_BLANK = {octet: _UPPER[octet] for octet in range(0x21)}
_FOREIGN = {octet: _UPPER[octet] for octet in range(0x80, 0x100)}
_LITERAL = {octet: _UPPER[octet] for octet in b"*$"}
_GEN_DELIMS = {octet: _UPPER[octet] for octet in b":/?#[]@"}
# The 1996 draft decodes everything but %2F, which equals only itself: it becomes a character no octet can be.
_OCTETS = {octet: chr(octet) for octet in range(0x100)} | {ord("/"): "\u0100"}

rfc_subject = Speller(_BLANK | _FOREIGN | _LITERAL, _DECODED, urls=True)
"""Unreserved escapes decoded, all else encoded, `*` and `$` too: in a URL they are characters (spec K8)."""

rfc_pattern = Speller(_FOREIGN | {ord("$"): "%24"}, _DECODED, final="$")
"""As the subject, but `*` stays a wildcard, a final `$` an anchor, and blanks stay as they are (spec K9)."""

google_subject = Speller(_BLANK | _FOREIGN, _UPPER, urls=True)
"""Escapes in upper case, blanks and non-ASCII encoded, nothing decoded (spec D4c, K8)."""

google_pattern = Speller(_FOREIGN, _UPPER)
"""Escapes in upper case, non-ASCII encoded, nothing decoded (spec D4c, K9)."""

glob_subject = Speller(_BLANK | _FOREIGN, _DECODED, urls=True)
"""As `rfc_subject`, but `*` and `$` stay: a 2.0 pattern can name them (spec F11)."""

glob_pattern = Speller(_FOREIGN, _DECODED)
"""Unreserved escapes decoded and non-ASCII encoded before the glob is read (spec F11)."""

draft_subject = Speller({}, _OCTETS, urls=True)
"""Every escape decoded to its octet but %2F, which equals only itself (spec E3)."""

draft_pattern = Speller({}, _OCTETS)
"""As the subject: a rule of the draft is the beginning of a path, to the letter (spec E3)."""

query_escaped = Speller(_GEN_DELIMS, {}, after="?")
"""A normalised path or pattern with the general delimiters of its query escaped (RFC 9309 figure 4, spec X5)."""


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
        segments = self.segments
        first, last = segments[0], segments[-1]
        if not subject.startswith(first):
            return False
        at = len(first)
        if len(segments) == 1:
            return not self.anchored or len(subject) == at
        if len(segments) > 2:
            for segment in segments[1:-1]:
                at = subject.find(segment, at)
                if at < 0:
                    return False
                at += len(segment)
        if self.anchored:
            return len(subject) - len(last) >= at and subject.endswith(last)
        return subject.find(last, at) >= 0
