"""`GET /v1/agents`: the crawlers that are known by name."""

from dataclasses import dataclass, field, fields
from datetime import date
from typing import Annotated

from fastapi import Query, Request
from pydantic import BaseModel, ConfigDict

from app.api.problems import bad_value, documented
from app.api.routing import api_router
from app.api.services import services_of
from robots_core.agents.directory import (
    AgentCategory,
    AgentDirectory,
    AgentFacts,
    KnownAgent,
    UnknownCategory,
    read_category,
)
from robots_core.robots.agents import AgentRow, says

router = api_router("decisions")


@dataclass(frozen=True, kw_only=True)
class _Token:
    token: str


@dataclass(frozen=True, kw_only=True)
class KnownAgentOut(AgentRow, AgentFacts, _Token):  # JSON has the members of the last base first
    """A crawler that is known by name, and how its questions are decided if they name no dialect."""

    own: bool = field(default=False, metadata=says("Whether the row is the operator's own, from AGENTS_FILE."))
    source: str | None = field(
        default=None,
        metadata=says(
            "What the row rests on, by its key in docs/reference/robots-spec.md; null for a row of AGENTS_FILE."
        ),
    )
    source_date: date | None = field(default=None, metadata=says("As of which day; null for a row of AGENTS_FILE."))


class AgentsOut(BaseModel):
    """Known crawlers, by operator."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

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
    rows = ((AgentRow, known.agent), (AgentFacts, known))
    said = {it.name: getattr(row, it.name) for kind, row in rows for it in fields(kind)}
    return KnownAgentOut(
        token=known.agent.token, own=known.own, source=known.source, source_date=known.source_date, **said
    )
