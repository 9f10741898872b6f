"""What the dialects differ in, as one record."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from app.robots.agents import Agent
from app.robots.groups import Grammar, Groups, Selector
from app.robots.patterns import Compile
from app.robots.rates import PLAIN_RATES, RatePolicy


def chain_of(agent: Agent) -> tuple[str, ...]:
    """The tokens that a group is looked up by: the agent's own, then those it falls back to (spec C6)."""
    return agent.chain


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one kind of robot reads the file.

    `token` finds product tokens (groups.token_pattern). `tokens` are what groups are
    looked up by, in order. `forbidden_closes`: 401 and 403 close the whole site (spec A13).
    """

    name: str
    grammar: Grammar
    token: re.Pattern[str]
    select: Callable[[Groups], Selector]
    compile: Compile
    tokens: Callable[[Agent], tuple[str, ...]] = chain_of
    rates: RatePolicy = PLAIN_RATES
    forbidden_closes: bool = False
