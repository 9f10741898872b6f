"""Who is asking: a product token or a whole User-Agent header, reduced to the tokens its groups are looked up by."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

AGENT_LIMIT = 2048
"""Characters of the longest agent that is read."""

STAR = "*"

_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
# A name is tried from its first character only, and given up at its end: from each of them, it would be quadratic.
_PRODUCT = re.compile(r"(?<![A-Za-z0-9_-])([A-Za-z0-9_-]++)/")
# What browsers put in front for old times' sake: no crawler's own name.
_COMPATIBILITY = frozenset(
    {"mozilla", "applewebkit", "khtml", "gecko", "chrome", "chromium", "safari", "version", "firefox"}
)


class BadAgent(ValueError):
    """An agent in which no product token can be found; the text names the value."""


@dataclass(frozen=True, slots=True)
class Agent:
    """A crawler: `token` as given or as the table spells it, `chain` the lower-case tokens to look for, in order.

    `names` are the crawlers this stands for, most wanted first, where a reader knows no chains (spec E2).

    `obeys_star` is False for the few that only a group with their own name binds (spec C7). `dialect` is who reads
    the file as this crawler does, `recheck` its recheck model. `star_delay`: the Crawl-delay of `*` binds it also
    beside a group of its own (spec C12).
    """

    token: str
    names: tuple[str, ...]
    chain: tuple[str, ...]
    obeys_star: bool = True
    dialect: str = "rfc9309"
    recheck: str = "rfc9309"
    star_delay: bool = False
    policy: bool = False
    exempt: bool = False


def read_agent(text: str) -> Agent:
    """The agent that a token or a User-Agent header names (spec C13); BadAgent where there is no token in it."""
    text = text.strip()
    if len(text) > AGENT_LIMIT:
        raise BadAgent(f"the agent {text[:80] + '…'!r} is {len(text)} characters long; at most {AGENT_LIMIT} are read")
    if text == STAR:
        return Agent(STAR, (STAR,), ())
    known = known_agents()
    if any(mark in text for mark in "/ ("):
        named = [known[word] for word in map(str.lower, _TOKEN.findall(text)) if word in known]
        if named:
            return max(named, key=lambda agent: len(agent.token))
        products = (product for product in _PRODUCT.findall(text) if product.lower() not in _COMPATIBILITY)
        text = next(products, text)
    token = _TOKEN.match(text)
    if token is None:
        raise BadAgent(
            f"the agent {text!r} holds no product token: letters, digits, '-' or '_', as in 'ExampleBot/1.0'"
        )
    lowered = token[0].lower()
    return known.get(lowered) or Agent(token[0], (lowered,), (lowered,))


def first_of(agents: Sequence[Agent]) -> Agent:
    """Several agents as one that is looked up in order: the first with a group wins (RFC 9309 2.2.1, spec C6)."""
    first, *others = agents
    if not others:
        return first
    chain = dict.fromkeys(token for agent in agents for token in agent.chain)
    return Agent(
        token=first.token,
        names=tuple(name for agent in agents for name in agent.names),
        chain=tuple(chain),
        obeys_star=any(agent.obeys_star for agent in agents),
        dialect=first.dialect,
        recheck=first.recheck,
        star_delay=first.star_delay,
        policy=first.policy,
        exempt=first.exempt,
    )


@cache
def known_agents() -> Mapping[str, Agent]:
    """The crawlers of agents.toml by lower-case token."""
    text = files("app.robots").joinpath("agents.toml").read_text(encoding="utf-8")
    return read_table(tomllib.loads(text))


_FIELDS: Mapping[str, type] = {
    "chain": list,
    "star": bool,
    "dialect": str,
    "recheck": str,
    "policy": bool,
    "exempt": bool,
    "star_delay": bool,
}
_DIALECTS = frozenset({"rfc9309", "google", "seznam"})
_RECHECKS = frozenset({"rfc9309", "seznam"})


def read_table(table: Mapping[str, object]) -> Mapping[str, Agent]:
    """Check a table of crawlers; ValueError names the crawler and the field that cannot be read."""
    return {token.lower(): _read_row(token, row) for token, row in table.items()}


def _read_row(token: str, table: object) -> Agent:
    if not _TOKEN.fullmatch(token) or not isinstance(table, dict):
        raise ValueError(f"the crawler {token!r} is no table named by a product token")
    row: dict[str, Any] = table
    for field, value in row.items():
        if field not in _FIELDS:
            raise ValueError(f"the crawler {token!r} has a field {field!r}; the fields are {', '.join(_FIELDS)}")
        if not isinstance(value, _FIELDS[field]):
            raise ValueError(f"the crawler {token!r} has {field} = {value!r}, which is no {_FIELDS[field].__name__}")
    chain: list[object] = [token, *row.get("chain", ())]
    if not all(isinstance(name, str) and _TOKEN.fullmatch(name) for name in chain):
        raise ValueError(f"the crawler {token!r} has chain = {row['chain']!r}, which is no list of product tokens")
    dialect, recheck = row.get("dialect", "rfc9309"), row.get("recheck", "rfc9309")
    if dialect not in _DIALECTS or recheck not in _RECHECKS:
        raise ValueError(f"the crawler {token!r} has dialect {dialect!r} and recheck {recheck!r}: not both are known")
    return Agent(
        token=token,
        names=(token.lower(),),
        chain=tuple(str(name).lower() for name in chain),
        obeys_star=row.get("star", True),
        dialect=dialect,
        recheck=recheck,
        star_delay=row.get("star_delay", False),
        policy=row.get("policy", False),
        exempt=row.get("exempt", False),
    )
