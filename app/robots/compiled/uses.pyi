"""Content-Usage and Content-Signal lines: what uses.pyx compiles."""

from collections.abc import Callable, Iterable

def preferences(text: str) -> dict[str, str]:
    """Category -> "y" or "n", of a structured-field dictionary (RFC 9651 3.2).

    Other values and parameters are left out; what is not well formed states nothing (spec I1e).
    """

def by_path(values: Iterable[str], spell: Callable[[str], str]) -> dict[str, dict[str, str]]:
    """Path patterns, "*" for lines without a path -> what `[path SP] preferences` state.

    A value has a path where it begins with `/` (spec I1a), which `spell` normalises. Of lines with the same path all
    count, and the one that forbids wins (spec I1c).
    """

def by_purpose(values: Iterable[str]) -> dict[str, str]:
    """`purpose=value, ...`; of a repeated purpose `no` wins, otherwise the first (spec I2)."""
