"""Names that are looked for in one text, again and again: what names.pyx compiles."""

from typing import final

@final
class Names:
    """A text in which callers' names are looked for; up to 16 KiB are kept beside it."""

    def __init__(self, text: str) -> None:
        """ValueError where a character of `text` takes more than an octet."""

    def first(self, names: tuple[str, ...]) -> str | None:
        """The first of `names` that stands anywhere in the text; None where none does.

        Whatever they are, this takes one pass over the text for each 16 of them, or 65,000 characters of them.
        """

    def find(self, name: str) -> int:
        """Where `name` first stands in the text; -1 where it does not."""
