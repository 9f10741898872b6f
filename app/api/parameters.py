"""Query parameters that name an origin's file and say how it is fetched; `app.decisions.question` has a question's."""

from typing import Annotated

from fastapi import Query

from app.api.problems import bad_value
from app.decisions.question import AGENTS, MAX_AGE_LIMIT, MAX_AGE_TEXT, WAIT_LIMIT, AgentText, UrlText, target_from
from robots_core.agents.directory import AgentDirectory, UnknownProfile
from robots_core.origin import Origin
from robots_core.robots.agents import Agent

OriginUrl = Annotated[UrlText, Query(description="Any URL of the origin, absolute, http or https.")]
Profile = Annotated[
    str | None,
    Query(description="A fetch profile of AGENTS_FILE, or `default`; by default that of the agent."),
]
ProfileAgents = Annotated[
    list[AgentText] | None,
    Query(min_length=1, max_length=AGENTS, description="The agent whose fetch profile is meant; see GET /v1/allowed."),
]
MaxAge = Annotated[float | None, Query(ge=0, le=MAX_AGE_LIMIT, description=MAX_AGE_TEXT)]
Wait = Annotated[float, Query(ge=0, le=WAIT_LIMIT, description="Seconds that the answer may wait for a fetch.")]


def file_origin_from(url: str, profile: str | None, known: AgentDirectory, agent: Agent | None = None) -> Origin:
    """The origin of a URL with the fetch profile of that name; with the agent's, if there is one, for None."""
    origin = target_from(url).origin
    if profile is None:
        return origin.with_profile(None if agent is None else agent.profile)
    try:
        return origin.with_profile(known.profile(profile))
    except UnknownProfile as error:
        raise bad_value("profile", profile, str(error)) from None
