"""Seznam, and `v2`: RFC 9309's rules, groups that a rate line closes, and the whole-URL globs of Robot-version 2.0."""

from collections.abc import Sequence

from app.robots.compiled.globs import GlobIndex
from app.robots.compiled.rules import longest_first
from app.robots.dialect import Dialect
from app.robots.document import Grammar, Group
from app.robots.matcher import Ruleset
from app.robots.paths import glob_pattern, glob_subject
from app.robots.rates import SEZNAM_RATES
from app.robots.rfc9309 import compile_rules as compile_version_1
from app.robots.rfc9309 import cut
from app.robots.selection import MergedGroups


def compile_rules(groups: Sequence[Group]) -> Ruleset:
    """Groups of version 2.0 by spec F10 to F13, others as RFC 9309: selection never mixes the two (spec K6)."""
    if not groups[0].version_2:
        return compile_version_1(groups)
    return Ruleset(*longest_first(groups, glob_pattern), glob_subject, GlobIndex)


_GRAMMAR = Grammar(members_end_run=True)

SEZNAM = Dialect(
    name="seznam",
    grammar=_GRAMMAR,
    select=lambda groups: MergedGroups(groups, cut, prefer_version_2=True),
    compile=compile_rules,
    rates=SEZNAM_RATES,
)

V2 = Dialect(
    name="v2",
    grammar=_GRAMMAR,
    select=lambda groups: MergedGroups(groups, cut, prefer_version_2=True),
    compile=compile_rules,
)
