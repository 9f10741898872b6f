"""`GET /v1/agents`: the crawlers that are known by name."""

from typing import Annotated

from fastapi import Query, Request
from pydantic import BaseModel, Field

from app.agents.directory import AgentCategory, AgentDirectory, KnownAgent, UnknownCategory, read_category
from app.api.problems import bad_value, documented
from app.api.routing import api_router
from app.api.services import services_of

router = api_router("decisions")


class KnownAgentOut(BaseModel):
    """A crawler that is known by name, and how its questions are decided if they name no dialect."""

    token: str
    operator: str | None = Field(description="Who operates it; null where AGENTS_FILE does not say.")
    category: AgentCategory
    documentation: str | None = Field(description="The operator's page about it.")
    crawl_delay: bool | None = Field(description="Whether it obeys Crawl-delay; null where that is not known.")
    dialect: str
    recheck: str = Field(description="The recheck model: rfc9309 or seznam.")
    profile: str | None = Field(description="The fetch profile that files are fetched with; null for the default.")
    chain: list[str] = Field(description="The tokens that its group is looked up by, in order.")
    star: bool = Field(description="Whether the group for * binds it.")
    policy: bool = Field(description="A token to state a preference with: nothing fetches under this name.")
    exempt: bool = Field(description="Its operator says that it does not, or not always, ask robots.txt.")
    own: bool = Field(description="Whether the row is the operator's own, from AGENTS_FILE.")
    source: str | None = Field(
        description="What the row rests on, by its key in docs/reference/robots-spec.md; null for a row of AGENTS_FILE."
    )
    source_date: str | None = Field(description="As of which day; null for a row of AGENTS_FILE.")


class AgentsOut(BaseModel):
    """Known crawlers, by operator."""

    agents: list[KnownAgentOut]


@router.get("/v1/agents", responses={**documented(422)})
async def agents(
    request: Request,
    category: Annotated[
        str | None, Query(description=f"Only these: {', '.join(AgentCategory)}.", examples=["ai-training"])
    ] = None,
) -> AgentsOut:
    """List the crawlers that are known by name; all others are read as RFC 9309 and looked up by their own token."""
    services = services_of(request)
    try:
        return agents_out(services.agents(), category)
    except UnknownCategory as error:
        raise bad_value("category", category, str(error)) from None


def agents_out(directory: AgentDirectory, category: str | None) -> AgentsOut:
    """The known crawlers, all or of one category. Raises UnknownCategory."""
    known = directory.rows if category is None else directory.of(read_category(category))
    return AgentsOut(agents=list(map(_known_agent_out, known)))


def _known_agent_out(known: KnownAgent) -> KnownAgentOut:
    agent = known.agent
    return KnownAgentOut(
        token=agent.token,
        operator=known.operator,
        category=known.category,
        documentation=known.documentation,
        crawl_delay=agent.crawl_delay,
        dialect=agent.dialect,
        recheck=agent.recheck,
        profile=agent.profile,
        chain=list(agent.chain),
        star=agent.obeys_star,
        policy=agent.policy,
        exempt=agent.exempt,
        own=known.own,
        source=known.source,
        source_date=None if known.source_date is None else known.source_date.isoformat(),
    )
