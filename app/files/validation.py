"""Clear error messages about invalid values, from pydantic's errors, and about unknown names."""

import re
from collections.abc import Collection
from difflib import get_close_matches

from pydantic_core import ErrorDetails

NAME_LIMIT = 64
"""Characters of a name that are compared and quoted."""

_SIMILAR = 0.6
"""The least ratio of difflib at which one name may be meant by another: `ats` is one of `at`, `x` is not."""

_BETWEEN_WORDS = re.compile(r"[^a-z0-9]+")


def shown(value: object) -> str:
    """A value as error messages quote it: at most 61 characters."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer with too many digits, or deeply nested tables
        return f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:60] + "…"


def message(error: ErrorDetails) -> str:
    """What is wrong with a value, to follow it in a sentence: `expected a valid number`."""
    return error["msg"].removeprefix("Value error, ").replace("Input should be", "expected", 1)


def unknown_name(kind: str, name: str, known: Collection[str]) -> str:
    """What is wrong with a name that is not one of the known ones, as sentences: `Unknown member 'ulr'. Did you ...`.

    `kind` says what is named. Case, brackets and what stands between words do not count: `max-age` means `max_age`.
    """
    text = f"Unknown {kind} {name[:NAME_LIMIT]!r}."
    if not known:
        return f"{text} There are no {kind}s here."
    near = get_close_matches(_BETWEEN_WORDS.sub("_", name[:NAME_LIMIT].lower()).strip("_"), known, 1, _SIMILAR)
    return f"{text} Did you mean {near[0]!r}?" if near else f"{text} The {kind}s are {', '.join(known)}."
