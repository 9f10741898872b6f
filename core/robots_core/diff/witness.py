"""Draw paths from the patterns of rules: one that a pattern matches, and one that goes on behind its end."""

import re
from collections.abc import Iterable, Iterator
from itertools import count
from string import ascii_lowercase, digits
from typing import Final, NamedTuple

from robots_core.robots.lines import Key

_ESCAPED = {byte: f"%{byte:02X}" for byte in (*range(0x21), *range(0x7F, 0x100))}
_GLOB = re.compile(r"\\(.)|\[[!^].[^]]{0,100}\]|\[(.)[^]]{0,100}\]|([*?])", re.DOTALL)
_STARS: Final = re.compile(r"\*+")


class Pattern(NamedTuple):
    """The pattern of a rule, as written, and whether it is one of Robot-version 2.0."""

    key: Key
    text: str
    version_2: bool

    @property
    def ends(self) -> bool:
        """Whether it may match a path and not what the path goes on with."""
        return self.version_2 or self.text.endswith("$")


def filler(patterns: Iterable[Pattern]) -> str:
    """What stands for a wildcard: a sign that no pattern has, so that none matches because of it; else several."""
    text = "\n".join(pattern.text for pattern in patterns).lower()
    unused = (sign for sign in ("x", *ascii_lowercase, *digits) if sign not in text)
    return next(unused, "") or next(word for word in (f"x{number}q" for number in count()) if word not in text)


def witness(pattern: str, *, glob: bool = False, literal: bool = False, fill: str = "x") -> str | None:
    """A path that the pattern of a rule matches; None if it begins with neither `/` nor `*` and so matches none.

    `glob`: the pattern is one of version 2.0; `literal`: it has no wildcards (spec E6). `fill` stands for a wildcard
    and for a negated set of characters.
    """
    if literal:
        text = pattern
    elif glob:
        text = _GLOB.sub(lambda found: found[1] or found[2] or ("" if found[3] == "*" else fill), pattern)
    else:
        # A letter for a star, since "//" can have a meaning of its own.
        text = _STARS.sub(fill, pattern.removesuffix("$").strip("*"))
    if pattern.startswith("*") and not literal and not text.startswith("/"):
        text = "/" + text
    return text.translate(_ESCAPED) if text.startswith("/") else None


def drawn(pattern: Pattern, *, literal: bool, fill: str) -> Iterator[str]:
    """The paths of a pattern: at its end and, where it need not match there, behind it.

    One of version 2.0 also has those of dialects that do not know that version.
    """
    at_end = [witness(pattern.text, literal=literal, fill=fill)]
    if pattern.version_2:
        at_end.append(witness(pattern.text, glob=True, fill=fill))
    for path in at_end:
        if path is not None:
            yield path
            if pattern.ends and not literal:
                yield path + fill


def composed(wild: Pattern, other: Pattern, fill: str) -> Iterator[str]:
    """Paths that both patterns match, that of the other one within the first star; and those with more behind."""
    head, star, tail = wild.text.partition("*")
    within = witness(other.text, glob=other.version_2, fill=fill)
    rest = witness("/" + tail.lstrip("*"), glob=wild.version_2, fill=fill)
    if not star or within is None or rest is None or other.ends:
        return
    if within.startswith((head or "/").translate(_ESCAPED)):
        yield (path := within + fill + rest[1:])
        yield path + fill
