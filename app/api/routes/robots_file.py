"""`/v1/robots`: the file that is held for an origin: to look at, to fetch anew, to forget."""

from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response

from app.api import raw_file
from app.api.middleware.auth import admin
from app.api.parameters import AGENTS, WAIT, MaxAge, OriginUrl, Wait
from app.api.params import agent_from, dialect_from, target_from
from app.api.problems import Problem, documented
from app.api.schemas.answers import WarningOut
from app.api.schemas.robots_file import FactsOut, RobotsFileOut, content_type_of, facts_out, held_file_texts
from app.api.serialize import robots_out, warnings_out
from app.api.services import services_of
from app.evaluate import CachedFile
from app.origin import Origin
from app.robots.access import Successful
from app.robots.agents import STAR, read_agent

router = APIRouter(tags=["files"])

ANYBODY = read_agent(STAR)
"""Who reads the file where no agent is named."""


@router.get(
    "/v1/robots",
    response_model=RobotsFileOut | FactsOut,
    responses={**raw_file.DOCUMENTED, **documented(404, 422, 503)},
)
async def robots(
    request: Request,
    url: OriginUrl,
    as_: Annotated[
        Literal["json", "text", "facts"],
        Query(alias="as", description="text: the bytes as they came; facts: those of the fetch alone."),
    ] = "json",
    agent: Annotated[
        list[str] | None,
        Query(min_length=1, max_length=AGENTS, description="For whom `reader` is told, as in GET /v1/allowed."),
    ] = None,
    dialect: Annotated[str | None, Query(description="Who reads the file: by agent, and without one rfc9309.")] = None,
    max_age: MaxAge = None,
    wait: Wait = WAIT,
) -> Response:
    """What is held of the robots.txt of that URL's origin; it is fetched where nothing is."""
    origin = target_from(url).origin
    who = None if agent is None else agent_from(agent)
    reads = dialect_from(dialect, who or ANYBODY)
    decider = services_of(request).decider
    file = await decider.get_file(origin, max_age=max_age, wait=wait)
    match as_:
        case "facts":
            return Response(facts_out(origin, file).model_dump_json(), media_type="application/json")
        case "text":
            return _text(origin, file)
        case "json":
            long_work = services_of(request).long_work
            warnings: list[WarningOut] = []
            if file.robots is not None:
                robots = file.robots
                work = partial(warnings_out, robots, content_type_of(file))
                warnings = await long_work.about_file(request, len(robots.body), work)
            return long_work.answer(lambda _allowance: held_file_texts(origin, file, reads, who, warnings))


@router.post("/v1/robots/refresh", dependencies=[Depends(admin)], responses={**documented(403, 422, 503)})
async def refresh(request: Request, url: OriginUrl) -> FactsOut:
    """Fetch the robots.txt of that URL's origin anew, however new what is held, and tell all processes.

    For operators. The answer is what the fetch found: with 503, too many others are under way.
    """
    origin = target_from(url).origin
    decider = services_of(request).decider
    return facts_out(origin, await decider.refresh(origin))


@router.delete(
    "/v1/robots",
    status_code=204,
    dependencies=[Depends(admin)],
    responses={**documented(403, 422, 503)},
)
async def purge(request: Request, url: OriginUrl) -> Response:
    """Forget what is held of that URL's origin, in all processes; its history stays.

    For operators. With 503, only this process has forgotten it: the store cannot be reached. The others are told when
    it is back, if this process is still there then; asking again does no harm.
    """
    decider = services_of(request).decider
    await decider.purge(target_from(url).origin)
    return Response(status_code=204)


def _text(origin: Origin, file: CachedFile) -> Response:
    snapshot = file.cached.snapshot
    if snapshot is None or not isinstance(snapshot.access, Successful):
        facts = robots_out(origin, file.cached)
        found = facts.outcome or "pending"
        because = f" ({facts.cause})" if facts.cause else f" (status {facts.status})" if facts.status else ""
        raise Problem(404, "no-file", f"No file is held for {origin.key}: its robots.txt is {found}{because}.")
    return raw_file.answer(snapshot.access.body)
