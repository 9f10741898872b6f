"""`GET /v1/allowed`: may this agent fetch this URL now, over the file that is held."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.api.middleware.http_caching import cache_control
from app.api.parameters import AGENTS, WAIT, At, MaxAge, PageUrl, Wait
from app.api.params import agent_from, dialect_from, instant_from, past_from, target_from
from app.api.problems import documented
from app.api.schemas.answers import AnswerOut
from app.api.serialize import answer_out
from app.api.services import services_of
from app.evaluate import Question

PATH = "/v1/allowed"
router = APIRouter(tags=["decisions"])


@router.get(PATH, response_model=AnswerOut, responses={**documented(404, 422, 503)})
async def allowed(
    request: Request,
    url: PageUrl,
    agent: Annotated[
        list[str],
        Query(
            min_length=1,
            max_length=AGENTS,
            description="A product token or a whole User-Agent header; given several times, the first with a group.",
        ),
    ],
    dialect: Annotated[str | None, Query(description="rfc9309, google, seznam, draft1996 or v2; by agent.")] = None,
    at: At = None,
    as_of: Annotated[
        str | None,
        Query(description="RFC 3339 instant: as it was then, rates too; what is known of it answers, with no fetch."),
    ] = None,
    max_age: MaxAge = None,
    wait: Wait = WAIT,
    explain: Annotated[bool, Query(description="Tell every rule that matched, and how the group was found.")] = False,
) -> Response:
    """Whether `agent` may fetch `url` now, what decided, and how fast it may go."""
    who = agent_from(agent)
    question = Question(
        target=target_from(url),
        agent=who,
        dialect=dialect_from(dialect, who),
        at=instant_from(at),
        max_age=max_age,
        wait=wait,
    )
    decider = services_of(request).decider
    renderer = services_of(request).renderer
    past = past_from(as_of, services_of(request).now())
    answer = await (decider.decide(question) if past is None else decider.decide_as_of(question, past))
    rendered = renderer.render(answer)
    content = answer_out(answer, explained=True).model_dump_json() if explain else rendered.text
    headers = {"Cache-Control": cache_control(answer, rendered.until)}
    return Response(content, media_type="application/json", headers=headers)
