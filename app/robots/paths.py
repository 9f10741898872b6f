"""Paths and patterns brought to one spelling, and matched (RFC 9309 2.2.2, 2.2.3, spec D, E3, K8 to K11).

Both sides are one character per octet, as in `syntax`. Every dialect has a pair of functions here: one for the
subject, the URL's path and query, and one for a rule's pattern. What either returns is ASCII.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_HEX = "0123456789ABCDEFabcdef"

# Every escape in any case of its digits, and every octet that must be one.
_UPPER = {f"%{high}{low}": f"%{high}{low}".upper() for high in _HEX for low in _HEX}
_DECODED = _UPPER | {
    written: chr(int(written[1:], 16)) for written in _UPPER if chr(int(written[1:], 16)) in _UNRESERVED
}
_BLANK = {chr(octet): f"%{octet:02X}" for octet in range(0x21)}
_FOREIGN = {chr(octet): f"%{octet:02X}" for octet in range(0x80, 0x100)}
_LITERAL = {"*": "%2A", "$": "%24"}
# The 1996 draft decodes everything but %2F, which equals only itself: it becomes a character no octet can be.
_SLASH_ESCAPE = "\u0100"
_OCTETS = {written: chr(int(written[1:], 16)) for written in _UPPER} | {
    written: _SLASH_ESCAPE for written in _UPPER if written.upper() == "%2F"
}
_GEN_DELIMS = {":": "%3A", "/": "%2F", "?": "%3F", "#": "%23", "[": "%5B", "]": "%5D", "@": "%40"}


def _speller(characters: dict[str, str], escapes: dict[str, str], *, urls: bool = False) -> Callable[[str], str]:
    """What rewrites escapes by one table and single characters by another; most texts have neither and stay.

    With `urls` it is given what callers write, any text; without, one character per octet.
    """
    # No escape is rewritten to a character of the other table, so the order is free; in this one, what is written
    # second is not read again.
    escape = re.compile(_any_of([written for written, meant in escapes.items() if written != meant]))
    spelling = [characters.get(chr(octet), chr(octet)) for octet in range(0x100)].__getitem__
    # What makes another character of every odd one: whether there is one is seen sooner so than by any search.
    other = next(octet for octet in range(0x80) if chr(octet) not in characters)
    marked = bytes(other if chr(octet) in characters else octet for octet in range(0x100))

    def spell(text: str) -> str:
        if urls and not text.isascii():
            text = text.encode("utf-8", "surrogatepass").decode("latin-1")
        if escapes and "%" in text:
            text = escape.sub(lambda found: escapes[found[0]], text)
        if characters and (octets := text.encode("latin-1")).translate(marked) != octets:
            text = "".join(map(spelling, octets))
        return text

    return spell


def _any_of(escapes: Sequence[str]) -> str:
    """A regular expression for these escapes: by their first digit, so that it is short."""
    seconds: dict[str, str] = {}
    for written in escapes:
        seconds[written[1]] = seconds.get(written[1], "") + written[2]
    return "%(?:" + "|".join(f"{first}[{digits}]" for first, digits in seconds.items()) + ")" if seconds else "(?!)"


_spell_rfc_pattern = _speller(_FOREIGN | {"$": "%24"}, _DECODED)
_query_delims = _speller(_GEN_DELIMS, {})

rfc_subject = _speller(_BLANK | _FOREIGN | _LITERAL, _DECODED, urls=True)
"""Unreserved escapes decoded, all else encoded, `*` and `$` too: in a URL they are characters (spec K8)."""


def rfc_pattern(value: str) -> str:
    """As the subject, but `*` stays a wildcard, a final `$` an anchor, and blanks stay as they are (spec K9)."""
    return _spell_rfc_pattern(value[:-1]) + "$" if value.endswith("$") else _spell_rfc_pattern(value)


google_subject = _speller(_BLANK | _FOREIGN, _UPPER, urls=True)
"""Escapes in upper case, blanks and non-ASCII encoded, nothing decoded (spec D4c, K8)."""

google_pattern = _speller(_FOREIGN, _UPPER)
"""Escapes in upper case, non-ASCII encoded, nothing decoded (spec D4c, K9)."""

glob_subject = _speller(_BLANK | _FOREIGN, _DECODED, urls=True)
"""As `rfc_subject`, but `*` and `$` stay: a 2.0 pattern can name them (spec F11)."""

glob_pattern = _speller(_FOREIGN, _DECODED)
"""Unreserved escapes decoded and non-ASCII encoded before the glob is read (spec F11)."""

draft_subject = _speller({}, _OCTETS, urls=True)
"""Every escape decoded to its octet but %2F, which equals only itself (spec E3)."""

draft_pattern = _speller({}, _OCTETS)
"""As the subject: a rule of the draft is the beginning of a path, to the letter (spec E3)."""


def query_escaped(text: str) -> str:
    """A normalised path or pattern with the general delimiters of its query escaped (RFC 9309 figure 4, spec X5)."""
    path, mark, query = text.partition("?")
    escaped = _query_delims(query)
    return text if escaped is query else path + mark + escaped


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
