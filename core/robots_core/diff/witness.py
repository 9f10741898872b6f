"""Draw a path from the pattern of a rule: one that the pattern matches."""

import re
from typing import NamedTuple

from robots_core.robots.lines import Key

_ESCAPED = {byte: f"%{byte:02X}" for byte in (*range(0x21), *range(0x7F, 0x100))}
_GLOB = re.compile(r"\\(.)|\[[!^].[^]]{0,100}\]|\[(.)[^]]{0,100}\]|([*?])", re.DOTALL)


class Pattern(NamedTuple):
    """The pattern of a rule, as written, and whether it is one of Robot-version 2.0."""

    key: Key
    text: str
    version_2: bool


def witness(pattern: str, *, glob: bool = False, literal: bool = False) -> str | None:
    """A path that the pattern of a rule matches; None if it begins with neither `/` nor `*` and so matches none.

    `glob`: the pattern is one of version 2.0; `literal`: it has no wildcards (spec E6). For a negated set of characters
    the path has an arbitrary one, which may be in the set.
    """
    if literal:
        text = pattern
    elif glob:
        text = _GLOB.sub(lambda found: found[1] or found[2] or ("" if found[3] == "*" else "x"), pattern)
    else:
        # A letter for a star, since "//" can have a meaning of its own.
        text = re.sub(r"\*+", "x", pattern.removesuffix("$").strip("*"))
    if pattern.startswith("*") and not literal and not text.startswith("/"):
        text = "/" + text
    return text.translate(_ESCAPED) if text.startswith("/") else None
