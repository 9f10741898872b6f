from collections.abc import Callable

from app.robots.compiled.rules import Rules
from app.robots.compiled.spelling import Speller
from app.robots.compiled.texts import Texts
from app.robots.matcher import Index

class Decider:
    """Rules in order of precedence, asked with paths as callers write them.

    `subject` spells a path; `index` makes of patterns what tells the first that matches a subject. `form`, where there
    is one, spells what follows a `?`: a pattern then also matches where both sides do when they are spelt so, too. It
    is asked of ASCII alone.
    """

    def __init__(
        self,
        rules: Rules,
        patterns: Texts,
        subject: Callable[[str], str],
        index: Callable[[Texts], Index],
        form: Speller | None = None,
    ) -> None:
        """`patterns` are those of `rules`, place by place."""

    @property
    def rules(self) -> Rules: ...
    @property
    def subject(self) -> Callable[[str], str]: ...
    def __len__(self) -> int:
        """How many patterns there are."""

    def first(self, path: str) -> int:
        """The place of the first pattern that matches `path`; the number of patterns where none does."""

    def places(self, path: str) -> list[int]:
        """The places of all patterns that match `path`, ascending."""
