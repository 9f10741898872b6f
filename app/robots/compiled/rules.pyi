from collections.abc import Iterable
from typing import final

from app.robots.compiled.lines import Group
from app.robots.compiled.spelling import Speller
from app.robots.compiled.texts import Texts
from app.robots.syntax import Directive

@final
class Rules:
    """Rules in order of precedence, kept as places in their groups; one may have two patterns, and counts as two.

    Directives and patterns are made anew for whoever asks. 4 octets are kept of each, and as many of each group.
    """

    def __len__(self) -> int: ...
    def __getitem__(self, place: int) -> tuple[Directive, str]:
        """The rule that stands there, and the pattern that it is matched by there."""

    def told(self, places: list[int], limit: int) -> tuple[list[tuple[Directive, str]], int]:
        """Those at `places`, which ascend, each rule once, where it comes first: so many, and how many there are."""

def in_file_order(groups: Iterable[Group], spell: Speller) -> tuple[Rules, Texts]:
    """The groups' rules as they stand, and their values as `spell` has them; an empty one is none (spec B11, E7).

    OverflowError where there are more of them than any file has.
    """

def longest_first(groups: Iterable[Group], spell: Speller, index_page: bytes | None = None) -> tuple[Rules, Texts]:
    """The longest rule wins, of those as long an Allow, of those the first (RFC 9309 2.2.2); empty ones are none.

    An Allow whose last segment begins with `index_page` also stands for its directory, and nothing below (spec D10).
    """
