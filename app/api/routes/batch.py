"""`POST /v1/allowed`: many questions in one request, as one JSON object or as a stream of lines."""

from collections.abc import Sized
from functools import partial
from typing import Annotated

from fastapi import Body, Request, Response
from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from app.api.answers.encoding import BY_RULE
from app.api.answers.schema import AnswerOut, ProblemOut, SelectedOut
from app.api.caller import caller_of
from app.api.item_results import encode_result, holding, read_fields
from app.api.json_array import array_response
from app.api.json_bodies import RequestModel, body_of, validated
from app.api.middleware.answer_room import held_answers
from app.api.parameters import query_of
from app.api.problems import Problem, documented
from app.api.questions import asking, question_of, read_all, read_sharing
from app.api.routes.allowed import ALLOWED_PATH
from app.api.routing import DirectRoute, api_router, documented_as
from app.api.services import services_of
from app.api.stream import LINES, AnswerLines, has_lines
from app.decisions.answer_all import Answering, answer_all
from app.decisions.evaluate import Decision
from app.decisions.question import WAIT, MaxAge, QuestionIn, Wait
from app.decisions.shared_answers import Sharing
from app.loop.work_turns import YieldBudget

ITEMS = 1000
"""Items of the largest batch."""

router = api_router("decisions", DirectRoute)


class BatchIn(RequestModel):
    """Questions, and defaults for their `max_age` and `wait`. All waits count from the start of the batch."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)

    # Items are validated one by one, so that a bad one fails alone. The route checks their number.
    items: Annotated[list[SkipValidation[QuestionIn]], Field(json_schema_extra={"maxItems": ITEMS})]
    max_age: MaxAge | None = Field(None, description="Maximum age of copies in seconds; older ones are fetched again.")
    wait: Wait = Field(WAIT, description="Seconds that the answers may wait for fetches.")


class BatchQuery(BaseModel):
    """What the answers have."""

    fields: str | None = Field(
        None,
        description="Members that the answers shall have, such as `verdict,rule,rate`; by default all of them.",
        json_schema_extra={"pattern": "^{0}(?:,{0})*$".format(f"(?:{'|'.join(AnswerOut.model_fields)})")},
    )


class FailedOut(BaseModel):
    """A problem in place of an item's answer; an answer has no member `problem`."""

    problem: ProblemOut


class BatchOut(BaseModel):
    """An answer for every item, in the order of the items."""

    answers: list[AnswerOut | FailedOut | SelectedOut]


@router.post(
    ALLOWED_PATH,
    response_model=BatchOut,
    responses={**documented(413, 422)},
    # Of a body and an answer of two media types, generated clients make types that fit neither: lines are in the text.
    dependencies=[documented_as(BatchQuery), documented_as(BatchIn, Body())],
)
async def batch(request: Request) -> Response:
    """Answer every item as `GET /v1/allowed` would. A bad item fails alone, with a problem in its place.

    With `fields`, answers have only these members. Sent as `application/x-ndjson`, items are lines, in any number, and
    so are answers. Each is sent as soon as it and those before it are ready, so read answers while you send items.
    """
    query = BatchQuery.model_validate(query_of(request, BatchQuery.model_fields))
    fields = read_fields(query.fields)
    services = services_of(request)
    encode = partial(services.encoder.encode, fields=fields)
    if has_lines(request.scope):
        budget = await services.turns.first()
        answering = partial(Answering, services.decider, budget=budget)
        # The known crawlers may change while the stream lasts.
        return AnswerLines(answering, lambda item: question_of(item, asking(request)), encode, budget)

    async def answered(budget: YieldBudget) -> list[bytes]:
        items = validated(BatchIn, await body_of(request))
        few(items.items, f", or any number as {LINES}")
        caller_of(request.scope).charge(len(items.items) - 1)
        asks = asking(request, items.max_age, items.wait)
        results = [b""] * len(items.items)
        hold = holding(encode, held_answers(request.scope))

        def take(number: int, result: Decision | Exception) -> None:
            results[number] = encode_result(result, hold)

        if fields is not None and BY_RULE.issuperset(fields):
            sharing = Sharing(",".join(fields), results)
            questions = read_sharing(items.items, asks, sharing)
            await answer_all(services.decider, questions, take, budget, sharing)
        else:
            questions = read_all(items.items, partial(question_of, asking=asks))
            await answer_all(services.decider, questions, take, budget)
        return results

    return await array_response(request, "answers", answered)


def few(items: Sized, otherwise: str = "") -> None:
    """Check the number of items. Raises Problem, which says what may be sent `otherwise`."""
    if len(items) > ITEMS:
        detail = f"The batch has {len(items)} items; send at most {ITEMS}{otherwise}."
        raise Problem("too-many-items", detail, parameter="items", value=len(items))
