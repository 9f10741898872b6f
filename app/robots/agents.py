"""Agents: a product token or a whole User-Agent header, and the tokens by which its groups are looked up."""

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any

from app.robots.user_agent import TOKEN, Named, named_in

AGENT_LIMIT = 2048
"""Characters of the longest agent that is read."""

STAR = "*"

MAX_KEY_CHARS = 64
"""Characters of the longest product token that a key of the store holds as it is; a longer one becomes its SHA-256."""


class BadAgent(ValueError):
    """An agent without a product token; the text names the value."""


@dataclass(frozen=True, slots=True)
class Agent:
    """A crawler. `token` is as given or as in the table; `chain` has the lower-case tokens to look up, in order.

    `names` are the crawlers that it stands for, in order, for dialects without chains (spec E2).

    `obeys_star` is False for the few crawlers that only a group with their own name binds (spec C7). `dialect` and
    `recheck` are its dialect and its recheck model. `star_delay`: its own group inherits the Crawl-delay of `*` if it
    has none (spec C12). `crawl_delay`: whether it obeys Crawl-delay, None if unknown. `profile` is the fetch profile
    that files are fetched with for it, None for the default. `unnamed`: it was read from a header that names no
    crawler, so the token is a guess (spec C13).
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
    crawl_delay: bool | None = None
    profile: str | None = None
    unnamed: bool = False


def agent_key(token: str) -> str:
    """The key of a product token in the store; tokens are compared without case (RFC 9309 2.2.1)."""
    key = token.lower()
    return key if len(key) <= MAX_KEY_CHARS else hashlib.sha256(key.encode()).hexdigest()


def read_agent(text: str, known: Mapping[str, Agent] | None = None) -> Agent:
    """The agent that a token or a User-Agent header names (spec C13). Raises BadAgent if it has no token.

    `known` has the known crawlers by lower-case token; by default those of agents.toml.
    """
    text = text.strip()
    if len(text) > AGENT_LIMIT:
        raise BadAgent(f"the agent {text[:80] + '…'!r} is {len(text)} characters long; at most {AGENT_LIMIT} are read")
    if text == STAR:
        return Agent(STAR, (STAR,), ())
    known = known_agents() if known is None else known
    named = Named(text) if TOKEN.fullmatch(text) else named_in(text, known)
    if named is None:
        raise BadAgent(
            f"the agent {text!r} holds no product token outside comments and addresses:"
            " letters, digits, '-' or '_', as in 'ExampleBot/1.0'"
        )
    lowered = named.token.lower()
    return known.get(lowered) or Agent(named.token, (lowered,), (lowered,), unnamed=named.unnamed)


def first_of(agents: Sequence[Agent]) -> Agent:
    """Several agents as one, looked up in order: the first with a group wins (RFC 9309 2.2.1, spec C6)."""
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
        crawl_delay=first.crawl_delay,
        profile=first.profile,
        unnamed=any(agent.unnamed for agent in agents),
    )


@cache
def known_agents() -> Mapping[str, Agent]:
    """The crawlers of agents.toml by lower-case token."""
    return read_table({token: row for _, token, row in agent_rows()})


@cache
def agent_rows() -> Sequence[tuple[str, str, Mapping[str, Any]]]:
    """The rows of agents.toml with operator and token, merged with the operator's defaults."""
    text = files("app.robots").joinpath("agents.toml").read_text(encoding="utf-8")
    return [
        (operator, token, {**{name: value for name, value in table.items() if name != "agents"}, **row})
        for operator, table in tomllib.loads(text).items()
        for token, row in table["agents"].items()
    ]


_FIELDS: Mapping[str, type] = {
    "chain": list,
    "star": bool,
    "dialect": str,
    "recheck": str,
    "policy": bool,
    "exempt": bool,
    "star_delay": bool,
    "crawl_delay": bool,
    # Only for app/agents; no decision needs them.
    "category": str,
    "documentation": str,
    "source": str,
    "source_date": date,
}
_DIALECTS = frozenset({"rfc9309", "google", "seznam"})
_RECHECKS = frozenset({"rfc9309", "seznam"})


def read_table(table: Mapping[str, object]) -> Mapping[str, Agent]:
    """Read a table of crawlers. Raises ValueError, which names the crawler and the invalid field."""
    return {token.lower(): _read_row(token, row) for token, row in table.items()}


def _read_row(token: str, table: object) -> Agent:
    if not TOKEN.fullmatch(token) or not isinstance(table, dict):
        raise ValueError(f"the crawler {token!r} is not a table named by a product token")
    row: dict[str, Any] = table
    for field, value in row.items():
        if field not in _FIELDS:
            raise ValueError(f"the crawler {token!r} has a field {field!r}; the fields are {', '.join(_FIELDS)}")
        if not isinstance(value, _FIELDS[field]):
            raise ValueError(
                f"the crawler {token!r} has {field} = {value!r}, which is not of type {_FIELDS[field].__name__}"
            )
    chain: list[object] = [token, *row.get("chain", ())]
    if not all(isinstance(name, str) and TOKEN.fullmatch(name) for name in chain):
        raise ValueError(f"the crawler {token!r} has chain = {row['chain']!r}, which is not a list of product tokens")
    dialect, recheck = row.get("dialect", "rfc9309"), row.get("recheck", "rfc9309")
    if dialect not in _DIALECTS or recheck not in _RECHECKS:
        raise ValueError(f"the crawler {token!r} has an unknown dialect or recheck: {dialect!r}, {recheck!r}")
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
        crawl_delay=row.get("crawl_delay"),
    )
