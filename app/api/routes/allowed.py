"""`GET /v1/allowed`: whether an agent may fetch a URL now, according to the file of its origin."""

from fastapi import Request, Response
from pydantic import Field

from app.api.answers.answer_caching import (
    NOT_MODIFIED,
    REPEATED_OVERHEAD,
    NotModifiedResponse,
    RepeatedQuestion,
    if_none_match,
)
from app.api.answers.answer_tags import AnswerTag
from app.api.answers.schema import AnswerOut
from app.api.answers.serialize import answer_out
from app.api.middleware.auth import caller_of
from app.api.problems import documented
from app.api.questions import asking, caller_policy, read_query
from app.api.routing import DirectRoute, api_router, parameters_of
from app.api.services import services_of
from app.decisions.evaluate import Question
from app.decisions.question import QuestionIn

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
    named = if_none_match(request.scope)
    if named is None:
        query = read_query(request, AllowedQuery)
        return await _answer(request, query.question(asking(request)), None, explain=query.explain)
    # A cache asks the same question again and again; reading it would add a fifth to the cost of a 304.
    services = services_of(request)
    known, key = services.agents(), (request.scope["query_string"], caller_policy(request))
    repeated = services.caching.repeated.get(key)
    if repeated is None or repeated.known is not known:
        query = read_query(request, AllowedQuery)
        repeated = RepeatedQuestion(known, query.question(asking(request)), query.explain)
        services.caching.repeated.put(key, repeated, 4 * len(key[0]) + REPEATED_OVERHEAD)
    question = repeated.question._replace(caller=caller_of(request.scope))
    return await _answer(request, question, named, explain=repeated.explain)


async def _answer(request: Request, question: Question, named: bytes | None, *, explain: bool) -> Response:
    """The answer, or a 304 if it is the one that is `named`."""
    services, tagged = services_of(request), None
    started = services.decider.monotonic()
    if question.as_of is not None:
        decision = await services.decider.decide(question)
    else:
        file = await services.decider.file_for(question)
        tagged = services.caching.of_answer(request.scope["query_string"], question, file, services.now().timestamp())
        if tagged is not None and named is not None and tagged[0].matches(named):
            services.decider.note_known(file, question)
            return NotModifiedResponse(*tagged)
        decision = services.decider.decide_by(file, question, started)
    tag, lifetime = tagged or (None, services.caching.of_decision(decision))
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
