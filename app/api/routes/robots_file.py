"""`/v1/robots`: get, refresh or purge the cached file of an origin, or send one that the caller fetched."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Final, Literal, TypeAlias

from fastapi import Depends, Query, Request, Response
from pydantic_core import to_json

from app.api.answers.answer_caching import NOT_MODIFIED, NotModifiedResponse, if_none_match
from app.api.answers.file_schema import (
    FactsOut,
    IngestedOut,
    RobotsFileOut,
    content_type_of,
    facts_out,
    ingested_out,
)
from app.api.answers.http_caching import NO_STORE
from app.api.answers.serialize import robots_out
from app.api.caller import caller_of
from app.api.json_bodies import SMALL_BODY, in_parser
from app.api.middleware.auth import admin, ingest
from app.api.parameters import MaxAge, OriginUrl, Profile, Wait, file_origin_from
from app.api.problems import Problem, documented
from app.api.routing import api_router
from app.api.services import services_of
from app.api.trials.observation import ObservationIn, read_observation
from app.decisions.evaluate import CachedFile
from app.decisions.question import AGENTS, WAIT, AgentText, DialectName, agent_from, dialect_from
from robots_core.file_json import file_json
from robots_core.origin import Origin
from robots_core.robots.agents import STAR, Agent, read_agent
from robots_core.robots.dialects import Dialect

router = api_router("files")

Form: TypeAlias = Literal["json", "text", "facts"]

AS_TEXT: Final[Mapping[int | str, dict[str, Any]]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string", "description": "With as=text: the file."}}}}
}
"""The response to `as=text`, for the OpenAPI document."""

# The bytes are untrusted: a browser must show them as text, whatever they look like, and run nothing.
_TEXT_ONLY = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox"}

ANY_AGENT = read_agent(STAR)
"""The agent that reads the file if none is named."""


@router.get(
    "/v1/robots",
    response_model=RobotsFileOut | FactsOut,
    responses={**AS_TEXT, **NOT_MODIFIED, **documented(404, 422, 503)},
)
async def robots(
    request: Request,
    url: OriginUrl,
    as_: Annotated[
        Form,
        Query(alias="as", description="text: the file as received; facts: only those of the fetch."),
    ] = "json",
    agent: Annotated[
        list[AgentText] | None,
        Query(min_length=1, max_length=AGENTS, description="The agent that `reader` is about, as in GET /v1/allowed."),
    ] = None,
    dialect: Annotated[
        DialectName | None, Query(description="Reads the file; by default the agent's own, or rfc9309.")
    ] = None,
    profile: Profile = None,
    max_age: MaxAge = None,
    wait: Wait = WAIT,
) -> Response:
    """Get the cached robots.txt of the URL's origin; fetch it if none is cached."""
    services = services_of(request)
    known = services.agents()
    reader = None if agent is None else agent_from(agent, known)
    origin = file_origin_from(url, profile, known, reader)
    reads = dialect_from(dialect, reader or ANY_AGENT)
    file = await services.decider.files.get(origin, max_age=max_age, wait=wait, caller=caller_of(request.scope).id)
    if as_ == "text" and file.robots is None:
        raise _no_file(origin, file)
    tag = services.caching.tags.of_file(request.scope["query_string"], file)
    named, now = if_none_match(request.scope), services.now().timestamp()
    lifetime = NO_STORE if tag is None else services.caching.of_file(file.cached, now, max_age)
    if tag is None or lifetime == NO_STORE:
        return await _answer(request, as_, origin, file, reads, reader)
    if named is not None and tag.matches(named):
        return NotModifiedResponse(tag, lifetime)
    response = await _answer(request, as_, origin, file, reads, reader)
    response.headers.update({"Cache-Control": lifetime, "ETag": tag.field.decode("ascii")})
    return response


async def _answer(
    request: Request, form: Form, origin: Origin, file: CachedFile, dialect: Dialect, reader: Agent | None
) -> Response:
    match form:
        case "facts":
            return Response(facts_out(origin, file).model_dump_json(), media_type="application/json")
        case "text" if file.robots is not None:
            return text_response(file.robots.body)
    facts = robots_out(origin, file.cached)
    if file.robots is None:
        whole = RobotsFileOut(robots=facts, version=file.version, dialect=dialect.name)
        return Response(whole.model_dump_json(), media_type="application/json")
    body, site = file.robots.body, origin.with_profile(None).key
    work = partial(file_json, truncated=file.robots.scan.truncated)
    arguments = body, dialect.name, reader, content_type_of(file), site
    found = await services_of(request).long_work.run(request, len(body), work, *arguments)
    head = to_json({"robots": facts, "version": file.version, "dialect": dialect.name})
    return Response(head[:-1] + b"," + found[1:], media_type="application/json")


@router.post("/v1/robots/refresh", dependencies=[Depends(admin)], responses={**documented(403, 422, 503)})
async def refresh(request: Request, url: OriginUrl, profile: Profile = None) -> FactsOut:
    """Fetch the robots.txt of the URL's origin again, even if the cached copy is fresh, for all processes.

    For operators. The answer holds the facts of the fetch. 503 means that the fetch queue is full.
    """
    services = services_of(request)
    origin = file_origin_from(url, profile, services.agents())
    return facts_out(origin, await services.decider.files.refresh(origin, caller_of(request.scope).id))


@router.put("/v1/robots", responses={**documented(403, 413, 422, 503)})
async def ingested(
    request: Request,
    sender: Annotated[str, Depends(ingest)],
    url: OriginUrl,
    observation: ObservationIn,
    profile: Profile = None,
) -> IngestedOut:
    """Take the robots.txt of the URL's origin that the caller fetched itself, as if this service had fetched it then.

    For API keys with the scope `ingest`, and operators. A later fetch goes before an earlier one, whoever made it.
    """
    services = services_of(request)
    origin = file_origin_from(url, profile, services.agents())
    fetched, at = await in_parser(observation.size > SMALL_BODY, read_observation, observation, origin, services.now())
    file, in_use = await services.decider.files.ingest(origin, fetched, at, sender)
    return ingested_out(origin, file, fetched, at, in_use=in_use)


@router.delete(
    "/v1/robots",
    status_code=204,
    dependencies=[Depends(admin)],
    responses={**documented(403, 422, 503)},
)
async def purge(request: Request, url: OriginUrl, profile: Profile = None) -> Response:
    """Purge the cached robots.txt of the URL's origin from all processes; its history stays.

    For operators. 503 means that the store is unavailable, and only this process has purged its copy. It tells the
    others once the store is back, unless it stops before; so repeat the request, which does no harm.
    """
    services = services_of(request)
    await services.decider.files.purge(file_origin_from(url, profile, services.agents()))
    return Response(status_code=204)


def _no_file(origin: Origin, file: CachedFile) -> Problem:
    facts = robots_out(origin, file.cached)
    outcome = facts.outcome or "pending"
    reason = f" ({facts.cause})" if facts.cause else f" (status {facts.status})" if facts.status else ""
    return Problem("no-file", f"No file is cached for {origin.key}: its robots.txt is {outcome}{reason}.")


def text_response(body: bytes) -> Response:
    """A robots.txt as received, byte for byte."""
    return Response(body, media_type="text/plain", headers=_TEXT_ONLY)
