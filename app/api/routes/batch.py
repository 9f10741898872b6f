"""`POST /v1/allowed`: many questions in one request, as one JSON object, or as lines without an end."""

import asyncio
import time
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field, SkipValidation
from starlette.types import Scope

from app.api.batch_items import Found, ItemIn, after_waiting, answer_to, encode_item, question_of
from app.api.disconnect import while_connected
from app.api.json_array import array_response
from app.api.json_bodies import RequestModel, body_of, validated
from app.api.middleware.auth import charge
from app.api.parameters import MOST_AGE, MOST_WAIT, WAIT
from app.api.problems import Problem, documented
from app.api.routes.allowed import PATH
from app.api.schemas.answers import AnswerOut, ProblemOut
from app.api.services import services_of
from app.api.stream import LINES, AnswerLines
from app.decide import BatchMemo, Decider
from app.evaluate import Decision, Question
from app.origin import Origin
from app.yield_budget import YieldBudget

ITEMS = 1000
"""Items of the largest batch."""

ORIGINS_AT_ONCE = 64
"""So many origins that have to be asked, or looked up, a batch asks at once."""

router = APIRouter(tags=["decisions"])


class BatchIn(RequestModel):
    """Questions, and the `max_age` and `wait` of those that say none; `wait` is the time that the batch may take."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)

    # Each is read by itself, so that a bad one fails alone; how many there are is counted for the same reason.
    items: Annotated[list[SkipValidation[ItemIn]], Field(json_schema_extra={"maxItems": ITEMS})]
    max_age: float | None = Field(None, ge=0, le=MOST_AGE, description="Seconds: the oldest copies that will do.")
    wait: float = Field(WAIT, ge=0, le=MOST_WAIT, description="Seconds that cold fetches may hold the answers.")


class FailedOut(BaseModel):
    """In the place of the answer to an item that has none; an answer has no member `problem`."""

    problem: ProblemOut


class BatchOut(BaseModel):
    """An answer for every item, in the order of the items."""

    answers: list[AnswerOut | FailedOut]


def streams(scope: Scope) -> bool:
    """Whether the request's body is lines, which may be as many as they like."""
    if scope["path"] != PATH or scope["method"] != "POST":
        return False
    content_type: bytes = next((value for name, value in scope["headers"] if name == b"content-type"), b"")
    return content_type.partition(b";")[0].strip().lower() == LINES.encode()


# FastAPI reads no body here, and has to be told of it; `openapi` tells it what the models are.
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/BatchIn"}},
            LINES: {"schema": {"$ref": "#/components/schemas/ItemIn"}},
        },
    }
}
_LINE = {"anyOf": [{"$ref": f"#/components/schemas/{model.__name__}"} for model in (AnswerOut, FailedOut)]}


@router.post(
    PATH,
    response_model=BatchOut,
    responses={200: {"content": {LINES: {"schema": _LINE}}}, **documented(413, 422)},
    openapi_extra=_BODY,
)
async def batch(request: Request) -> Response:
    """Answer every item as `GET /v1/allowed` would; a bad one fails alone, with its problem in its place.

    As `application/x-ndjson`, items and answers are lines, without a limit to their number: each answer is sent as
    soon as it and those before it are known, so read them while you send.
    """
    decider = services_of(request).decider
    encoder = services_of(request).encoder
    if streams(request.scope):
        return AnswerLines(decider, encoder)
    asked = _read(await body_of(request))
    charge(request, len(asked.items) - 1)
    found = await while_connected(request.receive, _answers(decider, asked))
    return await array_response("answers", (encode_item(one, encoder) for one in found))


def _read(said: object) -> BatchIn:
    asked = validated(BatchIn, said)
    count = len(asked.items)
    if count > ITEMS:
        detail = f"The batch has {count} items; {ITEMS} at most are answered, and any number as {LINES}."
        raise Problem(422, "too-many-items", detail, parameter="items", value=count)
    return asked


async def _answers(decider: Decider, batch: BatchIn) -> list[Found]:
    """The answer to each item, in their order."""
    begun = time.monotonic()
    found: list[Found | None] = []
    hot: list[Decision] = []
    seen: BatchMemo = {}
    cold: dict[Origin, list[tuple[int, Question]]] = {}
    stretch = YieldBudget()
    for place, item in enumerate(batch.items):
        answer: Found | None
        try:
            question = question_of(item, batch.max_age, batch.wait)
        except Problem as problem:
            answer = problem
        else:
            answer = decider.decide_if_cached(question, seen)
            if answer is None:
                cold.setdefault(question.target.origin, []).append((place, question))
            else:
                hot.append(answer)
        found.append(answer)
        if stretch.is_over():
            await stretch.next()
            seen.clear()
    decider.count(hot)
    if cold:
        groups = iter(cold.values())

        async def work() -> None:
            for group in groups:  # each worker takes the next origin when it is free
                for place, question in group:
                    found[place] = await answer_to(decider, after_waiting(question, begun))
                    if stretch.is_over():  # what memory has by now is answered without a break
                        await stretch.next()

        async with asyncio.TaskGroup() as workers:
            for _ in range(min(ORIGINS_AT_ONCE, len(cold))):
                workers.create_task(work())
    return [answer for answer in found if answer is not None]
