"""The parameters of a query that several routes share. `params` parses their values."""

from typing import Annotated

from fastapi import Query

AGENTS = 16
"""Agents that one question may name."""

WAIT, WAIT_LIMIT = 10.0, 60
"""Seconds that an answer may wait for a fetch: by default, and at most."""

MAX_AGE_LIMIT = 10**9
"""Seconds of the largest max_age."""

DIALECT_TEXT = "rfc9309, google, seznam, draft1996 or v2; by default the agent's own."
AT_TEXT = "RFC 3339 instant at which rates are evaluated; by default now."
AS_OF_TEXT = "RFC 3339 instant in the past: answer, rates included, from the version stored then; never fetch."
MAX_AGE_TEXT = "Maximum age of the copy in seconds; an older one is fetched again, but not within MIN_REFETCH_SECONDS."
WAIT_TEXT = "Seconds that the answer may wait for a fetch."
"""Descriptions of query parameters and of the members of bodies that mean the same."""

OriginUrl = Annotated[str, Query(description="Any URL of the origin, absolute, http or https.")]
Profile = Annotated[
    str | None,
    Query(description="A fetch profile of AGENTS_FILE, or `default`; by default that of the agent."),
]
ProfileAgents = Annotated[
    list[str] | None,
    Query(min_length=1, max_length=AGENTS, description="The agent whose fetch profile is meant; see GET /v1/allowed."),
]
MaxAge = Annotated[float | None, Query(ge=0, le=MAX_AGE_LIMIT, description=MAX_AGE_TEXT)]
Wait = Annotated[float, Query(ge=0, le=WAIT_LIMIT, description=WAIT_TEXT)]
