"""Parameters read at the door: text in, the types of the core out, or the problem that names the value."""

import re
from collections.abc import Sequence
from datetime import datetime

from app.api.problems import bad_value
from app.origin import BadUrl, Target, read_target
from app.robots.agents import Agent, BadAgent, first_of, read_agent
from app.robots.dialect import Dialect
from app.robots.dialects import DIALECTS

# RFC 3339 5.6; a `+` that came through a query string unescaped is a blank, and means only one thing there.
_INSTANT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]{1,9})?([Zz]|[+ -][0-9]{2}:[0-9]{2})"
)


def target_from(url: str, parameter: str = "url") -> Target:
    """The target of a URL."""
    try:
        return read_target(url)
    except BadUrl as error:
        raise bad_value(parameter, url, str(error)) from None


def agent_from(names: Sequence[str], parameter: str = "agent") -> Agent:
    """One agent, or several as one that is looked up in order."""
    agents = []
    for name in names:
        try:
            agents.append(read_agent(name))
        except BadAgent as error:
            raise bad_value(parameter, name, str(error)) from None
    return first_of(agents)


def dialect_from(name: str | None, agent: Agent, parameter: str = "dialect") -> Dialect:
    """The dialect of that name, or the agent's own where none is named (spec Q6)."""
    if name is None:
        return DIALECTS[agent.dialect]
    dialect = DIALECTS.get(name)
    if dialect is None:
        raise bad_value(parameter, name, f"{name!r} is no dialect; the dialects are {', '.join(DIALECTS)}")
    return dialect


def instant_from(text: str | None, parameter: str = "at") -> datetime | None:
    """An RFC 3339 instant between the years 1970 and 9998, or None where none is given."""
    if text is None:
        return None
    written = _INSTANT.fullmatch(text)
    try:
        if written is None:
            raise ValueError
        date, clock, _, zone = written.groups()
        at = datetime.fromisoformat(f"{date}T{clock}{zone.upper().replace(' ', '+')}")
        if not 1970 <= at.year <= 9998:
            raise ValueError
    except ValueError:
        detail = f"{text[:100]!r} is no RFC 3339 instant like 2026-11-21T18:30:00Z"
        raise bad_value(parameter, text, detail) from None
    return at
