"""Google: as its published parser reads; escapes are compared as written, index pages are their directory (spec D)."""

from collections.abc import Iterator, Sequence

from app.robots.compiled.patterns import PatternIndex
from app.robots.dialect import Dialect
from app.robots.document import Grammar, Group
from app.robots.matcher import Entry, Ruleset, longest_first
from app.robots.paths import google_pattern, google_subject
from app.robots.rates import NO_RATES
from app.robots.selection import MergedGroups, token_cut
from app.robots.syntax import Directive, Key

cut = token_cut("A-Za-z_-")


def compile_rules(groups: Sequence[Group]) -> Ruleset:
    """The groups' rules, and for an Allow of an index page the directory it is the index of."""
    entries = (entry for group in groups for rule in group.rules if rule[2] for entry in _entries(rule))
    return Ruleset(longest_first(entries), google_subject, PatternIndex)


def _entries(rule: Directive) -> Iterator[Entry]:
    _, key, value = rule
    pattern = google_pattern(value)
    yield Entry(rule, pattern)
    directory, slash, page = pattern.rpartition("/")
    if key is Key.ALLOW and slash and page.startswith("index.htm"):
        yield Entry(rule, f"{directory}/$")


GOOGLE = Dialect(
    name="google",
    grammar=Grammar(),
    select=lambda groups: MergedGroups(groups, cut),
    compile=compile_rules,
    rates=NO_RATES,
)
