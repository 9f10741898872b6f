"""`GET /v1/allowed`: whether an agent may fetch a URL now, according to the file of its origin."""

from fastapi import Request, Response
from pydantic import Field
from starlette.types import Scope

from app.api.answer_caching import (
    NOT_MODIFIED,
    REPEATED_OVERHEAD,
    Condition,
    NotModifiedResponse,
    RepeatedQuestion,
    if_none_match,
)
from app.api.answer_tags import AnswerTag
from app.api.middleware.auth import caller_of
from app.api.problems import documented
from app.api.questions import asking, caller_policy, read_query
from app.api.routing import DirectRoute, api_router, parameters_of
from app.api.schemas.answers import AnswerOut
from app.api.serialize import answer_out
from app.api.services import Services, services_of
from app.evaluate import Question
from app.question import QuestionIn

ALLOWED_PATH = "/v1/allowed"


class AllowedQuery(QuestionIn):
    """The parameters."""

    explain: bool = Field(False, description="Include every rule that matched, and how the group was found.")


router = api_router("decisions", DirectRoute)


@router.get(
    ALLOWED_PATH,
    response_model=AnswerOut,
    responses={**NOT_MODIFIED, **documented(404, 422, 503)},
    openapi_extra=parameters_of(AllowedQuery),
)
async def allowed(request: Request) -> Response:
    """Decide whether `agent` may fetch `url` now: what decided, and how fast it may fetch."""
    services, scope = services_of(request), request.scope
    named = if_none_match(scope)
    if named is None:
        query = read_query(request, AllowedQuery)
        return await _answer(services, scope, query.question(asking(request)), None, explain=query.explain)
    # A cache asks the same question again and again; reading it would be half of the cost of a 304.
    known, key = services.agents(), (scope["query_string"], caller_policy(request))
    repeated = services.caching.repeated.get(key)
    if repeated is None or repeated.known is not known:
        query = read_query(request, AllowedQuery)
        repeated = RepeatedQuestion(known, query.question(asking(request)), query.explain)
        services.caching.repeated.put(key, repeated, 4 * len(key[0]) + REPEATED_OVERHEAD)
    question = repeated.question._replace(caller=caller_of(scope))
    return await _answer(services, scope, question, named, explain=repeated.explain)


async def _answer(
    services: Services, scope: Scope, question: Question, named: bytes | None, *, explain: bool
) -> Response:
    condition = Condition(services.caching, scope["query_string"], question, named)
    decision = await services.decider.decide_unless(question, condition)
    tag, lifetime = condition.tag, condition.lifetime
    if decision is None and tag is not None:
        return NotModifiedResponse(tag, lifetime)
    if decision is None:
        raise AssertionError("an answer that the caller lacks was not decided")
    if tag is None:
        lifetime = services.caching.of_decision(decision)
    if explain:
        content = answer_out(decision, explained=True).model_dump_json().encode()
    else:
        content = services.encoder.encode(decision)
    return _Encoded(content, lifetime, tag)


class _Encoded(Response):
    """A response whose body is encoded and whose headers are known, which saves Response's passes over them."""

    def __init__(self, content: bytes, cached: str, tag: AnswerTag | None) -> None:
        self.status_code = 200
        self.background = None
        self.body = content
        self.raw_headers = [
            (b"content-length", b"%d" % len(content)),
            (b"content-type", b"application/json"),
            (b"cache-control", cached.encode("latin-1")),
        ]
        if tag is not None:
            self.raw_headers.append((b"etag", tag.field))
