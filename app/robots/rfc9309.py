"""RFC 9309: tokens of letters, digits, `-` and `_`; the longest rule wins; escapes compared as RFC 3986 means them."""

from collections.abc import Sequence

from app.robots.compiled.patterns import PatternIndex
from app.robots.compiled.rules import longest_first
from app.robots.dialect import Dialect
from app.robots.document import Grammar, Group
from app.robots.matcher import Ruleset
from app.robots.paths import query_escaped, rfc_pattern, rfc_subject
from app.robots.selection import MergedGroups, token_cut

cut = token_cut("A-Za-z0-9_-")


def compile_rules(groups: Sequence[Group]) -> Ruleset:
    """The groups' rules by spec D: an empty one is none, and one that starts with neither `/` nor `*` never matches."""
    return Ruleset(*longest_first(groups, rfc_pattern), rfc_subject, PatternIndex, query_escaped)


RFC9309 = Dialect(
    name="rfc9309",
    grammar=Grammar(),
    select=lambda groups: MergedGroups(groups, cut),
    compile=compile_rules,
)
