from typing import final

@final
class Speller:
    """What rewrites octets by one table and the escapes of octets by another, and gives all else back as it is.

    `octets` and `escapes` say what becomes of which octet, and of its escape in either case of its digits: one to three
    characters up to U+FFFF. What they put in is not read again. With `urls` any text is taken, and stands for its
    octets in UTF-8; without, one of a character per octet. `after`: only what follows the first such octet is
    rewritten; `final`: an octet that stays where it is the last.

    A text that needs no rewriting is returned itself. Takes time by the text's length alone.
    """

    def __init__(
        self,
        octets: dict[int, str],
        escapes: dict[int, str],
        *,
        urls: bool = False,
        after: str | None = None,
        final: str | None = None,
    ) -> None: ...
    def __call__(self, text: str) -> str: ...
