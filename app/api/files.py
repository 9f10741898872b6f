"""`GET /v1/robots`: the file that is held for an origin, its facts, and what is wrong with it."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from app.api.problems import Problem, documented
from app.api.reading import target_from
from app.api.shapes import FileOut
from app.api.wire import file_out, robots_out
from app.decide import Decider
from app.robots.access import Successful

router = APIRouter(tags=["files"])

# The raw bytes are somebody else's: a browser is to show them as text, whatever they look like, and run nothing.
RAW_HEADERS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox"}


@router.get("/v1/robots", response_model=FileOut, responses={**documented(404, 422, 503)})
async def robots(
    request: Request,
    url: Annotated[str, Query(description="Any URL of the origin, absolute, http or https.")],
    as_: Annotated[Literal["json", "text"], Query(alias="as", description="text: the bytes as they came.")] = "json",
    max_age: Annotated[float | None, Query(ge=0, le=1e9, description="Seconds: the oldest copy that will do.")] = None,
    wait: Annotated[float, Query(ge=0, le=60, description="Seconds that a cold fetch may hold the answer.")] = 10.0,
) -> Response:
    """What is held of the robots.txt of that URL's origin; it is fetched where nothing is."""
    origin = target_from(url).origin
    decider: Decider = request.app.state.decider
    file = await decider.hold(origin, max_age=max_age, wait=wait)
    if as_ == "json":
        return Response(file_out(origin, file).model_dump_json(), media_type="application/json")
    snapshot = file.held.snapshot
    if snapshot is None or not isinstance(snapshot.access, Successful):
        facts = robots_out(origin, file.held)
        found = facts.outcome or "pending"
        because = f" ({facts.cause})" if facts.cause else f" (status {facts.status})" if facts.status else ""
        raise Problem(404, "no-file", f"No file is held for {origin.key}: its robots.txt is {found}{because}.")
    return Response(snapshot.access.body, media_type="text/plain", headers=RAW_HEADERS)
