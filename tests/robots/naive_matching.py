"""Reference matching: patterns and percent-escapes by their definitions, byte by byte."""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Final, TypeAlias

HEX: Final = b"0123456789abcdefABCDEF"
UNRESERVED: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
BLANK: Final = bytes(range(0x21))
FOREIGN: Final = bytes(range(0x80, 0x100))

Rule: TypeAlias = tuple[bool, str]
"""Whether the rule is an Allow, and its pattern."""

Decide: TypeAlias = Callable[[Sequence[Rule], str], int | None]
"""Returns the index of the rule that decides for a normalised path, or None."""


def tokens(text: bytes) -> Iterator[tuple[bool, int]]:
    """Whether it is an escape, and its byte; a `%` that two hex digits do not follow is a byte."""
    at = 0
    while at < len(text):
        digits = text[at + 1 : at + 3]
        escaped = text[at : at + 1] == b"%" and len(digits) == 2 and digits[0] in HEX and digits[1] in HEX
        yield escaped, int(digits, 16) if escaped else text[at]
        at += 3 if escaped else 1


def spelt(text: bytes, *, encoded: Collection[int], decoded: Collection[int] = b"") -> bytes:
    """Encode the bytes in `encoded`, and decode escapes of the bytes in `decoded` (RFC 3986 6.2.2)."""
    return b"".join(
        b"%%%02X" % byte if (escaped and byte not in decoded) or (not escaped and byte in encoded) else bytes([byte])
        for escaped, byte in tokens(text)
    )


def rfc_subject(text: bytes) -> bytes:
    """Spec K8."""
    return spelt(text, encoded=BLANK + FOREIGN + b"*$", decoded=UNRESERVED)


def rfc_pattern(text: bytes) -> bytes:
    """Spec K9."""
    stem = text.removesuffix(b"$")
    return spelt(stem, encoded=FOREIGN + b"$", decoded=UNRESERVED) + text[len(stem) :]


def google_subject(text: bytes) -> bytes:
    """Spec K8."""
    return spelt(text, encoded=BLANK + FOREIGN)


def google_pattern(text: bytes) -> bytes:
    """Spec K9."""
    return spelt(text, encoded=FOREIGN)


def glob_subject(text: bytes) -> bytes:
    """Spec F11."""
    return spelt(text, encoded=BLANK + FOREIGN, decoded=UNRESERVED)


def glob_pattern(text: bytes) -> bytes:
    """Spec F11."""
    return spelt(text, encoded=FOREIGN, decoded=UNRESERVED)


def draft_text(text: bytes) -> list[int]:
    """Spec E3: bytes, with 256 for `%2F`."""
    return [256 if escaped and byte == 0x2F else byte for escaped, byte in tokens(text)]


def query_form(text: str) -> str:
    """A pattern or path whose query has its general delimiters encoded (spec X5)."""
    path, mark, query = text.partition("?")
    return path + mark + "".join(f"%{ord(it):02X}" if it in ":/?#[]@" else it for it in query)


def reachable(pattern: str, subject: str) -> bool:
    """Whether a pattern of version 1 matches, by the set of positions after each of its bytes (spec K11)."""
    places = {0}
    for at, byte in enumerate(pattern):
        if byte == "$" and at == len(pattern) - 1:
            return len(subject) in places
        if byte == "*":
            places = set(range(min(places), len(subject) + 1))
        else:
            places = {place + 1 for place in places if subject[place : place + 1] == byte}
        if not places:
            return False
    return True


def matches(pattern: str, subject: str) -> bool:
    """The same for long paths: each segment is matched at its leftmost position, which leaves most for the others."""
    anchored = pattern.endswith("$")
    head, *texts = pattern.removesuffix("$").split("*")
    if not texts:
        return subject == head if anchored else subject.startswith(head)
    if not subject.startswith(head):
        return False
    at, last = len(head), texts.pop()
    for text in texts:
        at = subject.find(text, at) + len(text)
        if at < len(text):
            return False
    return subject.endswith(last) and len(subject) - len(last) >= at if anchored else subject.find(last, at) >= 0


def matches_in_either_form(pattern: str, subject: str) -> bool:
    """Spec X5."""
    return matches(pattern, subject) or matches(query_form(pattern), query_form(subject))


OCTET: Final = 0xDC00
"""The surrogate of a zero byte: an escape that writes no character is the surrogate of its byte (PEP 383)."""


@lru_cache(maxsize=4096)
def characters(text: str) -> str:
    """Normalised text in characters: the escapes of UTF-8 decoded, any other escape as one of its own (spec F11)."""
    found = ""
    for escaped, run in groupby(tokens(text.encode("latin-1")), itemgetter(0)):
        read = bytes(byte for _, byte in run)
        if escaped:
            decoded = read.decode("utf-8", "surrogateescape")
            found += "".join(chr(OCTET + ord(it)) if it.isascii() else it for it in decoded)
        else:
            found += read.decode("latin-1")
    return found


def glob_matches(pattern: str, subject: str) -> bool:
    """Whether a glob of version 2.0 matches (spec F11), by a bit set of positions after each of its tokens."""
    pattern, subject = characters(pattern), characters(subject)
    places, at = 1, 0
    while at < len(pattern) and places:
        character, at = pattern[at], at + 1
        if character == "*":
            places = (1 << len(subject) + 1) - (places & -places)
            continue
        ranges, wanted = [(place_of(character),) * 2], True
        if character == "?":
            ranges, wanted = [], False
        elif character == "[":
            negated = pattern[at : at + 1] in ("!", "^")
            end = pattern.find("]", at + negated + 1)
            if end >= 0:
                ranges, wanted = _members(pattern[at + negated : end]), not negated
                at = end + 1
        elif character == "\\" and at < len(pattern):
            ranges, at = [(place_of(pattern[at]),) * 2], at + 1
        places = (places & _places_of(frozenset(ranges), wanted, subject)) << 1
    return bool(places >> len(subject) & 1)


def place_of(character: str) -> int:
    """The place of a character in the order of ranges: escapes that write no character come last."""
    return ord(character) + (0x110000 if OCTET <= ord(character) < OCTET + 0x100 else 0)


@lru_cache(maxsize=4096)
def _places_of(ranges: frozenset[tuple[int, int]], wanted: bool, subject: str) -> int:
    taken = {it: any(low <= place_of(it) <= high for low, high in ranges) is wanted for it in set(subject)}
    return int("".join("01"[taken[it]] for it in reversed(subject)) or "0", 2)


def _members(written: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    while written:
        last = written[2] if written[1:2] == "-" and len(written) > 2 else written[0]
        found.append((place_of(written[0]), place_of(last)))
        written = written[3:] if written[1:2] == "-" and len(written) > 2 else written[1:]
    return found


def with_directory(allows: bool, pattern: str) -> list[str]:
    """The patterns of a rule: an Allow for an index page also has its directory (spec D10)."""
    directory, slash, page = pattern.rpartition("/")
    return [pattern, f"{directory}/$"] if allows and slash and page.startswith("index.htm") else [pattern]


def longest(match: Callable[[str, str], bool], forms: Callable[[bool, str], list[str]] | None = None) -> Decide:
    """The longest rule decides; on ties Allow, then the first one (RFC 9309 2.2.2, spec D7)."""

    def decide(rules: Sequence[Rule], subject: str) -> int | None:
        found = [
            (-len(form), not allows, place)
            for place, (allows, pattern) in enumerate(rules)
            for form in (forms(allows, pattern) if forms else [pattern])
            if pattern and match(form, subject)
        ]
        return min(found)[2] if found else None

    return decide


def first_prefix(rules: Sequence[Rule], subject: str) -> int | None:
    """The first rule that is a prefix decides (spec E1)."""
    return next((at for at, (_, pattern) in enumerate(rules) if pattern and subject.startswith(pattern)), None)


def _latin(spell: Callable[[bytes], bytes]) -> Callable[[bytes], str]:
    return lambda text: spell(text).decode("latin-1")


def _draft_text(text: bytes) -> str:
    return "".join(map(chr, draft_text(text)))


DECIDE: Final[dict[str, tuple[Decide, Callable[[bytes], str], Callable[[bytes], str]]]] = {
    "rfc9309": (longest(matches_in_either_form), _latin(rfc_pattern), _latin(rfc_subject)),
    "google": (longest(matches, with_directory), _latin(google_pattern), _latin(google_subject)),
    "draft1996": (first_prefix, _draft_text, _draft_text),
    "v2": (longest(glob_matches), _latin(glob_pattern), _latin(glob_subject)),
}
"""How a dialect decides, and how it normalises patterns and paths."""
