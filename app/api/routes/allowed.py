"""`GET /v1/allowed`: may this agent fetch this URL now, by the file of its origin."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field, ValidationError

from app.api.middleware.http_caching import cache_control
from app.api.parameters import AGENTS, MOST_AGE, MOST_WAIT, WAIT
from app.api.params import agent_from, dialect_from, instant_from, past_from, target_from
from app.api.problems import documented, invalid
from app.api.schemas.answers import AnswerOut
from app.api.serialize import answer_out
from app.api.services import services_of
from app.evaluate import Question

PATH = "/v1/allowed"


class AllowedQuery(BaseModel):
    """The parameters, as FastAPI documents them and `read_query` reads them."""

    url: str = Field(description="The page's URL, absolute, http or https, at most 16 KiB.")
    agent: list[str] = Field(
        min_length=1,
        max_length=AGENTS,
        description="A product token or a whole User-Agent header; given several times, the first with a group.",
    )
    dialect: str | None = Field(None, description="rfc9309, google, seznam, draft1996 or v2; by agent.")
    at: str | None = Field(None, description="RFC 3339 instant that rates are asked for; now.")
    as_of: str | None = Field(
        None,
        description="RFC 3339 instant: as it was then, rates too; what is known of it answers, with no fetch.",
    )
    max_age: float | None = Field(None, ge=0, le=MOST_AGE, description="Seconds: the oldest copy that will do.")
    wait: float = Field(WAIT, ge=0, le=MOST_WAIT, description="Seconds that a cold fetch may hold the answer.")
    explain: bool = Field(False, description="Tell every rule that matched, and how the group was found.")


def read_query(request: Request) -> AllowedQuery:
    """Read the parameters; of one that is repeated the last counts, but for `agent`. Raises Problem."""
    parameters = request.query_params
    values: dict[str, object] = dict(parameters)
    if "agent" in values:
        values["agent"] = parameters.getlist("agent")
    try:
        return AllowedQuery.model_validate(values)
    except ValidationError as error:
        raise invalid([{**one, "loc": ("query", *one["loc"])} for one in error.errors()]) from None


class QueryRoute(APIRoute):
    """Calls `allowed` with its query. FastAPI's way to do so takes longer than the decision, and only documents it."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of a request."""
        return handle


async def handle(request: Request) -> Response:
    """Answer a request."""
    return await allowed(request, read_query(request))


router = APIRouter(tags=["decisions"], route_class=QueryRoute)


@router.get(PATH, response_model=AnswerOut, responses={**documented(404, 422, 503)})
async def allowed(request: Request, query: Annotated[AllowedQuery, Query()]) -> Response:
    """Whether `agent` may fetch `url` now, what decided, and how fast it may go."""
    services = services_of(request)
    agent = agent_from(query.agent)
    question = Question(
        target=target_from(query.url),
        agent=agent,
        dialect=dialect_from(query.dialect, agent),
        at=instant_from(query.at),
        max_age=query.max_age,
        wait=query.wait,
    )
    decider = services.decider
    as_of = None if query.as_of is None else past_from(query.as_of, services.now())
    decision = await (decider.decide(question) if as_of is None else decider.decide_as_of(question, as_of))
    if query.explain:
        content = answer_out(decision, explained=True).model_dump_json().encode()
    else:
        content = services.encoder.encode(decision)
    return Response(content, media_type="application/json", headers={"Cache-Control": cache_control(decision)})
