"""Parse parameters into the types of the core. An invalid value raises Problem, which names it."""

import re
from collections.abc import Sequence
from datetime import datetime

from app.agents.directory import AgentDirectory, UnknownCategory, UnknownProfile
from app.api.instants import rfc3339
from app.api.problems import bad_value
from app.origin import BadUrl, Origin, Target, read_target
from app.robots.agents import Agent, BadAgent, first_of
from app.robots.dialects import DIALECTS, Dialect

# RFC 3339 5.6. An unescaped `+` in a query string decodes to a space, so a space before the offset stands for `+`.
_INSTANT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]{1,9})?([Zz]|[+ -][0-9]{2}:[0-9]{2})"
)


def target_from(url: str, parameter: str = "url") -> Target:
    """The target of a URL."""
    try:
        return read_target(url)
    except BadUrl as error:
        raise bad_value(parameter, url, str(error)) from None


def file_origin_from(url: str, profile: str | None, known: AgentDirectory, agent: Agent | None = None) -> Origin:
    """The origin of a URL with the fetch profile of that name; with the agent's, if there is one, for None."""
    origin = target_from(url).origin
    if profile is None:
        return origin.with_profile(None if agent is None else agent.profile)
    try:
        return origin.with_profile(known.profile(profile))
    except UnknownProfile as error:
        raise bad_value("profile", profile, str(error)) from None


def agent_from(names: Sequence[str], known: AgentDirectory, parameter: str = "agent") -> Agent:
    """One agent; several names make one agent that is looked up by each in order."""
    if len(names) == 1:
        return _agent(names[0], known, parameter)
    return first_of([_agent(name, known, parameter) for name in names])


def agents_from(name: str, known: AgentDirectory, parameter: str) -> Sequence[Agent]:
    """One agent, or all known crawlers of a category for `@category`."""
    try:
        return [_agent(token, known, parameter) for token in known.expand(name)]
    except UnknownCategory as error:
        raise bad_value(parameter, name, str(error)) from None


def _agent(name: str, known: AgentDirectory, parameter: str) -> Agent:
    try:
        return known.read(name)
    except BadAgent as error:
        raise bad_value(parameter, name, str(error)) from None


def dialect_from(name: str | None, agent: Agent, parameter: str = "dialect") -> Dialect:
    """The dialect of that name, or the agent's own for None (spec Q6)."""
    return DIALECTS[agent.dialect] if name is None else dialect_named(name, parameter)


def dialect_named(name: str, parameter: str = "dialect") -> Dialect:
    """The dialect of that name."""
    dialect = DIALECTS.get(name)
    if dialect is None:
        raise bad_value(parameter, name, f"Unknown dialect {name[:100]!r}. Choose one of: {', '.join(DIALECTS)}.")
    return dialect


def instant_from(text: str | None, parameter: str = "at") -> datetime | None:
    """Parse an RFC 3339 instant between the years 1970 and 9998; None for None."""
    at = None if text is None else read_instant(text)
    if at is None and text is not None:
        detail = f"{text[:100]!r} is not an RFC 3339 instant between 1970 and 9998, such as 2026-11-21T18:30:00Z."
        raise bad_value(parameter, text, detail)
    return at


def read_instant(text: str) -> datetime | None:
    """The RFC 3339 instant; None if the text is not one between the years 1970 and 9998."""
    written = _INSTANT.fullmatch(text)
    if written is None:
        return None
    date, clock, _, zone = written.groups()
    try:
        at = datetime.fromisoformat(f"{date}T{clock}{zone.upper().replace(' ', '+')}")
    except ValueError:
        return None
    return at if 1970 <= at.year <= 9998 else None


def past_from(text: str | None, now: datetime, parameter: str = "as_of") -> datetime | None:
    """Parse an RFC 3339 instant that is not in the future; None for None."""
    at = instant_from(text, parameter)
    if at is not None and at > now:
        raise bad_value(parameter, text, f"{text!r} is in the future; the service's time is {rfc3339(now)}.")
    return at
