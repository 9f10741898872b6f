"""Paths and patterns brought to one spelling (RFC 9309 2.2.2, 2.2.3, spec D, E3, K8 to K11).

Both sides are one character per octet, as in `syntax`. Every dialect has a pair of functions here: one for the
subject, the URL's path and query, and one for a rule's pattern. What either returns is ASCII.
"""

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
