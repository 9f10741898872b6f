"""`POST /v1/allowed`: many questions in one request, as one JSON object or as a stream of lines."""

import asyncio
import time
from collections.abc import Mapping
from typing import Annotated, TypeAlias

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field, SkipValidation
from starlette.types import Scope

from app.api.batch_items import (
    ItemIn,
    ItemResult,
    after_waiting,
    answer_to,
    answers_about_past,
    encode_item,
    question_of,
)
from app.api.disconnect import while_connected
from app.api.json_array import array_response
from app.api.json_bodies import RequestModel, body_of, validated
from app.api.middleware.auth import charge
from app.api.parameters import MAX_AGE_LIMIT, WAIT, WAIT_LIMIT
from app.api.problems import Problem, documented
from app.api.purposes import caller_policy
from app.api.routes.allowed import PATH
from app.api.schemas.answers import AnswerOut, ProblemOut
from app.api.services import Services, services_of
from app.api.stream import LINES, AnswerLines
from app.decide import BatchMemo, Decider
from app.error_values import as_value
from app.evaluate import Decision, Question
from app.origin import Origin
from app.purposes.policy import PurposePolicy
from app.yield_budget import YieldBudget

ITEMS = 1000
"""Items of the largest batch."""

router = APIRouter(tags=["decisions"])

_Group: TypeAlias = list[tuple[int, Question]]
"""Questions about one origin, with the numbers of their items."""


class BatchIn(RequestModel):
    """Questions, and defaults for their `max_age` and `wait`. All waits count from the start of the batch."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)

    # Items are validated one by one, so that a bad one fails alone. The route checks their number.
    items: Annotated[list[SkipValidation[ItemIn]], Field(json_schema_extra={"maxItems": ITEMS})]
    max_age: float | None = Field(
        None, ge=0, le=MAX_AGE_LIMIT, description="Maximum age of copies in seconds; older ones are fetched again."
    )
    wait: float = Field(WAIT, ge=0, le=WAIT_LIMIT, description="Seconds that the answers may wait for fetches.")


class FailedOut(BaseModel):
    """A problem in place of an item's answer; an answer has no member `problem`."""

    problem: ProblemOut


class BatchOut(BaseModel):
    """An answer for every item, in the order of the items."""

    answers: list[AnswerOut | FailedOut]


def streams(scope: Scope) -> bool:
    """Whether the request's body is a stream of lines."""
    if scope["path"] != PATH or scope["method"] != "POST":
        return False
    content_type: bytes = next((value for name, value in scope["headers"] if name == b"content-type"), b"")
    return content_type.partition(b";")[0].strip().lower() == LINES.encode()


# The route reads the body itself, so this describes it for OpenAPI; `openapi` adds the models.
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
    """Answer every item as `GET /v1/allowed` would. A bad item fails alone, with a problem in its place.

    As `application/x-ndjson`, items and answers are lines, in any number. Each answer is sent as soon as it and those
    before it are ready, so read answers while you send items.
    """
    services, policy = services_of(request), caller_policy(request)
    decider, encoder = services.decider, services.encoder
    if streams(request.scope):
        return AnswerLines(decider, encoder, services.agents, services.now, policy)
    items = _read(await body_of(request))
    charge(request, len(items.items) - 1)
    results = await while_connected(request.receive, _answers(services, items, policy))
    return await array_response("answers", (encode_item(result, encoder) for result in results))


def _read(body: object) -> BatchIn:
    batch = validated(BatchIn, body)
    count = len(batch.items)
    if count > ITEMS:
        detail = f"The batch has {count} items; send at most {ITEMS}, or any number as {LINES}."
        raise Problem(422, "too-many-items", detail, parameter="items", value=count)
    return batch


async def _answers(services: Services, batch: BatchIn, policy: PurposePolicy) -> list[ItemResult]:
    """The result of every item, in the order of the items."""
    decider, known = services.decider, services.agents()
    begun = time.monotonic()
    results: list[ItemResult | None] = []
    hot: list[Decision] = []
    memo: BatchMemo = {}
    cold: dict[tuple[Origin, bool], _Group] = {}  # by origin, and whether it is about the past
    budget = YieldBudget()
    for number, item in enumerate(batch.items):
        answer: ItemResult | None
        try:
            question = question_of(item, known, services.now, batch.max_age, batch.wait, policy)
        except Problem as problem:
            answer = as_value(problem)
        else:
            answer = decider.decide_if_cached(question, memo)
            if answer is None:
                cold.setdefault((question.origin, question.as_of is not None), []).append((number, question))
            else:
                hot.append(answer)
        results.append(answer)
        if budget.is_over():
            await budget.next()
            memo.clear()
    decider.count(hot)
    if cold:
        await _answer_cold(decider, cold, begun, results, budget)
    return [result for result in results if result is not None]


async def _answer_cold(
    decider: Decider,
    cold: Mapping[tuple[Origin, bool], _Group],
    begun: float,
    results: list[ItemResult | None],
    budget: YieldBudget,
) -> None:
    """Set the results of questions that need the store or a fetch.

    Each origin has a task of its own, so that none waits for one that does not answer. The fetch queue bounds what runs
    at once.
    """
    async with asyncio.TaskGroup() as tasks:
        for (_, is_past), group in cold.items():
            if is_past:
                tasks.create_task(_answer_past(decider, group, results))
            else:
                tasks.create_task(_answer_present(decider, group, begun, results, budget))
            await asyncio.sleep(0)  # let it begin, and others run, before the next one


async def _answer_present(
    decider: Decider, group: _Group, begun: float, results: list[ItemResult | None], budget: YieldBudget
) -> None:
    """Set the results of questions about one origin. All origins share the `budget`: each may have few questions."""
    for number, question in group:
        results[number] = await answer_to(decider, after_waiting(question, begun))
        if budget.is_over():  # after the first question, the file is in memory and nothing awaits
            await budget.next()


async def _answer_past(decider: Decider, group: _Group, results: list[ItemResult | None]) -> None:
    """Set the results of questions about the past of one origin."""
    answers = await answers_about_past(decider, [question for _, question in group])
    for (number, _), answer in zip(group, answers, strict=True):
        results[number] = answer
