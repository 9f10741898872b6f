"""The record of a dialect."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from robots_core.robots.agents import Agent
from robots_core.robots.groups import Grammar, Groups, Selector
from robots_core.robots.patterns import Compile
from robots_core.robots.rates import PLAIN_RATES, RatePolicy


def chain_of(agent: Agent) -> tuple[str, ...]:
    """The tokens by which groups are looked up: the agent's own, then its fallbacks (spec C6)."""
    return agent.chain


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one kind of robot parses and applies a robots.txt.

    `token` is a groups.token_pattern. `tokens` returns the tokens by which groups are looked up, in order.
    `forbidden_closes`: 401 and 403 disallow the whole site (spec A13). `like`: a dialect with the same letters, tokens
    and rules for files without Robot-version; both share the rules of a file in which they find the same groups.
    """

    name: str
    grammar: Grammar
    token: re.Pattern[str]
    select: Callable[[Groups], Selector]
    compile: Compile
    tokens: Callable[[Agent], tuple[str, ...]] = chain_of
    rates: RatePolicy = PLAIN_RATES
    forbidden_closes: bool = False
    like: "Dialect | None" = None
