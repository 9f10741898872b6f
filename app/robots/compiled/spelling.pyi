from collections.abc import Callable, Iterable, Sequence

from app.robots.matcher import Index
from app.robots.syntax import Directive, Key

class Speller:
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

def spelled(
    groups: Iterable[Iterable[Directive]],
    spell: Speller,
    also: Callable[[Directive, str], str | None] | None = None,
) -> tuple[list[Directive], list[str]]: ...
def by_length(rules: list[Directive], patterns: list[str], key: Key) -> tuple[list[Directive], list[str]]: ...

class Decider:
    subject: Callable[[str], str]
    def __init__(
        self,
        patterns: list[str],
        subject: Callable[[str], str],
        index: Callable[[Sequence[str]], Index],
        form: Speller | None = None,
    ) -> None: ...
    def first(self, path: str) -> int: ...
    def places(self, path: str) -> list[int]: ...
