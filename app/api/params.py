"""Parameters read at the door: text in, the types of the core out, or the problem that names the value."""

import re
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache

from app.api.problems import bad_value
from app.api.serialize import rfc3339
from app.origin import BadUrl, Target, read_target
from app.robots.agents import Agent, BadAgent, first_of, read_agent
from app.robots.dialects import DIALECTS, Dialect

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
    if len(names) == 1:
        return _agent(names[0], parameter)
    return first_of([_agent(name, parameter) for name in names])


def _agent(name: str, parameter: str) -> Agent:
    try:
        return _known_agent(name) if len(name) <= _LONGEST_KNOWN else read_agent(name)
    except BadAgent as error:
        raise bad_value(parameter, name, str(error)) from None


_KNOWN_AGENTS = 4096
_LONGEST_KNOWN = 256
"""So many names of agents, of so many characters at most, are kept with what they mean: 6 MB at most."""

# A fleet has few names, and reading one that is a whole User-Agent costs more than the decision.
_known_agent = lru_cache(_KNOWN_AGENTS)(read_agent)


def dialect_from(name: str | None, agent: Agent, parameter: str = "dialect") -> Dialect:
    """The dialect of that name, or the agent's own if none is named (spec Q6)."""
    return DIALECTS[agent.dialect] if name is None else dialect_named(name, parameter)


def dialect_named(name: str, parameter: str = "dialect") -> Dialect:
    """The dialect of that name."""
    dialect = DIALECTS.get(name)
    if dialect is None:
        raise bad_value(parameter, name, f"Unknown dialect {name[:100]!r}. Choose one of: {', '.join(DIALECTS)}.")
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


def past_from(text: str | None, now: datetime, parameter: str = "as_of") -> datetime | None:
    """An RFC 3339 instant that is not still to come, or None where none is given."""
    at = instant_from(text, parameter)
    if at is not None and at > now:
        raise bad_value(parameter, text, f"{text!r} is still to come: it is {rfc3339(now)} now")
    return at
