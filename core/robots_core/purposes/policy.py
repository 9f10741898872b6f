"""The purposes that callers may have, and their policy about them."""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

Purpose: TypeAlias = Literal["search", "ai-input", "ai-train"]
"""What a page is wanted for: a search index, the input of an AI system that answers, or the training of one."""

PURPOSES: Final[tuple[Purpose, ...]] = get_args(Purpose)


class UnknownPurpose(ValueError):
    """A purpose that is not one of PURPOSES; the message names it and them."""

    def __init__(self, name: object) -> None:
        super().__init__(f"{str(name)[:100]!r} is not a purpose; choose from {', '.join(PURPOSES)}")


class PurposePolicy(NamedTuple):
    """The purposes that pages are wanted for, in the order of PURPOSES.

    With `enforce`, a page whose site refuses one of them may not be fetched.
    """

    purposes: tuple[Purpose, ...] = ()
    enforce: bool = False


def read_purposes(names: Sequence[object]) -> tuple[Purpose, ...]:
    """The purposes with these names, each once, in the order of PURPOSES; raises UnknownPurpose."""
    for name in names:
        if name not in PURPOSES:
            raise UnknownPurpose(name)
    return tuple(purpose for purpose in PURPOSES if purpose in names)
