"""Notes: what the caller should know about an answer, beside what was asked."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from robots_core.robots.agents import Agent
from robots_core.robots.dialects import Dialect
from robots_core.robots.groups import tokens_of
from robots_core.robots.misspelt import meant_crawler

AGENT_UNNAMED: Final = "agent-unnamed"
AGENT_MISSPELT: Final = "agent-misspelt"
AGENT_NEVER_NAMED: Final = "agent-never-named"


class Note(NamedTuple):
    """`code` for programs, `message` for people."""

    code: str
    message: str


def agent_notes(agent: Agent, dialect: Dialect) -> Iterator[Note]:
    """How the agent of a question was read, where that may surprise (spec C2, C13)."""
    if agent.unnamed:
        yield Note(
            AGENT_UNNAMED,
            f"The User-Agent header names no crawler, so its first product, {agent.token}, was taken. Ask with the"
            " crawler's product token, or name it in the header as in 'ExampleBot/1.0 (+https://www.example.com/bot)'.",
        )
    elif agent.unlisted and (meant := meant_crawler(agent.token.lower())) is not None:
        yield Note(AGENT_MISSPELT, f"No crawler {agent.token} is known. Ask for {meant} if that is meant.")
    for name in agent.names:
        read = tokens_of([name.encode()], dialect.token)[0]
        if read != name:
            names = f"as {read!r}" if read else "as no name"
            yield Note(
                AGENT_NEVER_NAMED,
                f"In the dialect {dialect.name}, names have no digits: a line 'User-agent: {name}' is read {names}, so"
                f" no group of a file binds {name} by its own name. Ask by the dialect rfc9309.",
            )
