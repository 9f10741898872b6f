from collections.abc import Iterable, Sequence
from typing import final, overload

@final
class Texts(Sequence[str]):
    """Texts side by side in one piece of memory: a `str` is made of the one that somebody asks for.

    4 octets are kept of each beside its UTF-8. OverflowError where all of them have 4 GiB or more.
    """

    def __init__(self, texts: Iterable[str]) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
