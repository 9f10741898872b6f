"""Google: as its published parser reads; escapes are compared as written, index pages are their directory (spec D)."""

from collections.abc import Sequence

from app.robots.compiled.patterns import PatternIndex
from app.robots.dialect import Dialect
from app.robots.document import Grammar, Group
from app.robots.matcher import Ruleset, longest_first
from app.robots.paths import google_pattern, google_subject
from app.robots.rates import NO_RATES
from app.robots.selection import MergedGroups, token_cut
from app.robots.syntax import Directive, Key

cut = token_cut("A-Za-z_-")

_ALLOW = Key.ALLOW  # looked up once, not once a rule


def compile_rules(groups: Sequence[Group]) -> Ruleset:
    """The groups' rules, and for an Allow of an index page the directory it is the index of."""
    return Ruleset(longest_first(groups, google_pattern, directory), google_subject, PatternIndex)


def directory(rule: Directive, pattern: str) -> str | None:
    """What an Allow of an index page is matched by, too: its directory, and nothing below (spec D10)."""
    if rule[1] is not _ALLOW:
        return None
    path, slash, page = pattern.rpartition("/")
    return f"{path}/$" if slash and page.startswith("index.htm") else None


GOOGLE = Dialect(
    name="google",
    grammar=Grammar(),
    select=lambda groups: MergedGroups(groups, cut),
    compile=compile_rules,
    rates=NO_RATES,
)
