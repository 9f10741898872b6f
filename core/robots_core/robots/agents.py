"""Agents: a product token or a whole User-Agent header, and the tokens by which its groups are looked up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, Literal

from robots_core.robots.user_agent import TOKEN, Named, named_in, names_in_list

AGENT_LIMIT = 2048
"""Characters of the longest agent that is read."""

STAR = "*"

MAX_KEY_CHARS = 64
"""Characters of the longest product token that a key of the store holds as it is; a longer one becomes its SHA-256."""


class BadAgent(ValueError):
    """An agent without a product token; the text names the value."""


def says(description: str, **limits: object) -> Mapping[str, object]:
    """Metadata of a dataclass's field: what pydantic needs where it reads or documents the field."""
    return {"description": description, **limits}


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRow:
    """How a crawler reads robots.txt: what a row of agents.toml or AGENTS_FILE may say, and `GET /v1/agents` shows.

    All three follow these fields: a new one is added here alone.
    """

    chain: tuple[str, ...] = field(default=(), metadata=says("The tokens that its group is looked up by, in order."))
    star: bool = field(default=True, metadata=says("Whether the group for * binds it."))  # spec C7
    dialect: str = field(default="rfc9309", metadata=says("The dialect that it reads files by."))
    recheck: Literal["rfc9309", "seznam"] = field(default="rfc9309", metadata=says("The recheck model."))
    star_delay: bool = field(
        default=False, metadata=says("Whether its own group inherits the Crawl-delay of * if it has none.")
    )  # spec C12
    crawl_delay: bool | None = field(
        default=None, metadata=says("Whether it obeys Crawl-delay; null where that is not known.")
    )
    policy: bool = field(
        default=False, metadata=says("A token to state a preference with: nothing fetches under this name.")
    )
    exempt: bool = field(
        default=False, metadata=says("Its operator says that it does not, or not always, ask robots.txt.")
    )
    profile: str | None = field(
        default=None, metadata=says("The fetch profile that files are fetched with; null for the default.")
    )


@dataclass(frozen=True, slots=True)
class Agent(AgentRow):
    """A crawler. `token` is as given or as in the table; `chain` has the lower-case tokens to look up, its own first.

    `names` are the crawlers that it stands for, in order, for dialects without chains (spec E2). `unnamed`: it was read
    from a header that names no crawler, so the token is a guess (spec C13). `unlisted`: no table of crawlers has it.
    """

    token: str
    names: tuple[str, ...]
    unnamed: bool = False
    unlisted: bool = False

    def __hash__(self) -> int:
        return hash(self.token)


def agent_key(token: str) -> str:
    """The key of a product token in the store; tokens are compared without case (RFC 9309 2.2.1)."""
    key = token.lower()
    if len(key) <= MAX_KEY_CHARS:
        return key
    from hashlib import sha256

    return sha256(key.encode()).hexdigest()


def read_agent(text: str, known: Mapping[str, Agent] | None = None) -> Agent:
    """The agent that a token or a User-Agent header names (spec C13).

    Raises BadAgent if it has no token, or lists several known crawlers. Other names of a list are looked up in order.

    `known` has the known crawlers by lower-case token; by default those of agents.toml.
    """
    text = text.strip()
    if len(text) > AGENT_LIMIT:
        raise BadAgent(f"the agent {text[:80] + '…'!r} is {len(text)} characters long; at most {AGENT_LIMIT} are read")
    if text == STAR:
        return Agent(STAR, (STAR,))
    known = known_agents() if known is None else known
    if TOKEN.fullmatch(text):
        named: Named | None = Named(text)
    elif names := names_in_list(text, known):
        if len({name.partition("/")[0].lower() for name in names} & known.keys()) > 1:
            raise BadAgent(f"the agent {text!r} names several crawlers; give each as an agent of its own")
        return first_of([read_agent(name, known) for name in names])
    else:
        named = named_in(text, known)
    if named is None:
        raise BadAgent(
            f"the agent {text!r} holds no product token outside comments and addresses:"
            " letters, digits, '-' or '_', as in 'ExampleBot/1.0'"
        )
    lowered = named.token.lower()
    return known.get(lowered) or Agent(named.token, (lowered,), named.unnamed, unlisted=True, chain=(lowered,))


def first_of(agents: Sequence[Agent]) -> Agent:
    """Several agents as one, looked up in order: the first with a group wins (RFC 9309 2.2.1, spec C6)."""
    first, *others = agents
    if not others:
        return first
    return replace(
        first,
        names=tuple(name for agent in agents for name in agent.names),
        chain=tuple(dict.fromkeys(token for agent in agents for token in agent.chain)),
        star=any(agent.star for agent in agents),
        unnamed=any(agent.unnamed for agent in agents),
    )


def agent_of(token: str, row: Mapping[str, Any]) -> Agent:
    """The crawler with this token, whose row may have other fields, too."""
    known = {name: value for name, value in row.items() if name in _ATTRIBUTES}
    known["chain"] = tuple(dict.fromkeys(name.lower() for name in (token, *row.get("chain", ()))))
    return Agent(token, (token.lower(),), **known)


_ATTRIBUTES = frozenset(attribute.name for attribute in fields(AgentRow))


@cache
def known_agents() -> Mapping[str, Agent]:
    """The crawlers of agents.toml by lower-case token."""
    return {token.lower(): agent_of(token, row) for _, token, row in agent_rows()}


@cache
def agent_rows() -> Sequence[tuple[str, str, Mapping[str, Any]]]:
    """The rows of agents.toml with operator and token, merged with the operator's defaults. Tests check the fields."""
    # Here, since these take a third of the time that it takes to import the core.
    import tomllib
    from importlib.resources import files

    text = files("robots_core.robots").joinpath("agents.toml").read_text(encoding="utf-8")
    return [
        (operator, token, {**{name: value for name, value in table.items() if name != "agents"}, **row})
        for operator, table in tomllib.loads(text).items()
        for token, row in table["agents"].items()
    ]
