"""`GET /v1/allowed`: may this agent fetch this URL now, over the file that is held."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.api.problems import documented
from app.api.reading import agent_from, dialect_from, instant_from, target_from
from app.api.shapes import AnswerOut
from app.api.wire import answer_out
from app.decide import Decider, Question

router = APIRouter(tags=["decisions"])


@router.get("/v1/allowed", response_model=AnswerOut, responses={**documented(422, 503)})
async def allowed(
    request: Request,
    url: Annotated[str, Query(description="The page's URL, absolute, http or https, at most 16 KiB.")],
    agent: Annotated[
        list[str],
        Query(
            min_length=1,
            max_length=16,
            description="A product token or a whole User-Agent header; given several times, the first with a group.",
        ),
    ],
    dialect: Annotated[str | None, Query(description="rfc9309, google, seznam, draft1996 or v2; by agent.")] = None,
    at: Annotated[str | None, Query(description="RFC 3339 instant that rates are asked for; now.")] = None,
    max_age: Annotated[float | None, Query(ge=0, le=1e9, description="Seconds: the oldest copy that will do.")] = None,
    wait: Annotated[float, Query(ge=0, le=60, description="Seconds that a cold fetch may hold the answer.")] = 10.0,
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
    decider: Decider = request.app.state.decider
    answer = answer_out(await decider.ask(question), explained=explain)
    content = answer.model_dump_json(exclude=None if explain else {"explanation"})
    return Response(content, media_type="application/json")
