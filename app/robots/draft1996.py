"""The draft of 1996: records parted by blank lines, the first that fits, the first rule that fits (spec E)."""

from collections.abc import Sequence

from app.robots.agents import Agent
from app.robots.compiled.patterns import PrefixIndex
from app.robots.compiled.rules import in_file_order
from app.robots.dialect import Dialect
from app.robots.document import Grammar, Group
from app.robots.matcher import Ruleset
from app.robots.paths import draft_pattern, draft_subject
from app.robots.selection import FirstRecord


def compile_rules(groups: Sequence[Group]) -> Ruleset:
    """The record's rules in file order; an empty one is none, and `*` and `$` are characters (spec E6, E7)."""
    return Ruleset(*in_file_order(groups, draft_pattern), draft_subject, PrefixIndex)


def names_of(agent: Agent) -> tuple[str, ...]:
    """The draft knows no fall-backs (spec E2)."""
    return agent.names


DRAFT1996 = Dialect(
    name="draft1996",
    grammar=Grammar(tolerant=False, blank_ends_record=True),
    select=FirstRecord,
    compile=compile_rules,
    tokens=names_of,
    forbidden_closes=True,
)
