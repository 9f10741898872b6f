"""Google: as its published parser reads; escapes are compared as written, index pages are their directory (spec D)."""

from collections.abc import Sequence

from app.robots.compiled.patterns import PatternIndex
from app.robots.compiled.rules import longest_first
from app.robots.dialect import Dialect
from app.robots.document import Grammar, Group
from app.robots.matcher import Ruleset
from app.robots.paths import google_pattern, google_subject
from app.robots.rates import NO_RATES
from app.robots.selection import MergedGroups, token_cut

cut = token_cut("A-Za-z_-")

INDEX_PAGE = b"index.htm"
"""What the name of an index page begins with: an Allow of one is matched by its directory, too (spec D10)."""


def compile_rules(groups: Sequence[Group]) -> Ruleset:
    """The groups' rules, and for an Allow of an index page the directory it is the index of."""
    return Ruleset(*longest_first(groups, google_pattern, INDEX_PAGE), google_subject, PatternIndex)


GOOGLE = Dialect(
    name="google",
    grammar=Grammar(),
    select=lambda groups: MergedGroups(groups, cut),
    compile=compile_rules,
    rates=NO_RATES,
)
