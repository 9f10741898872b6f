"""`GET /v1/allowed`: whether an agent may fetch a URL now, according to the file of its origin."""

from fastapi import Request, Response
from pydantic import Field

from app.api.answers.answer_caching import NOT_MODIFIED, NotModifiedResponse, if_none_match
from app.api.answers.answer_tags import EntityTag
from app.api.answers.http_caching import NO_STORE
from app.api.answers.schema import AnswerOut
from app.api.parameters import read_query
from app.api.problems import documented
from app.api.questions import asking
from app.api.routing import DirectRoute, api_router, documented_as
from app.api.services import services_of
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
    dependencies=[documented_as(AllowedQuery)],
)
async def allowed(request: Request) -> Response:
    """Decide whether `agent` may fetch `url` now: what decided, and how fast it may fetch."""
    services, query = services_of(request), read_query(request, AllowedQuery)
    decision = await services.decider.decide(query.question(asking(request)))
    lifetime = services.caching.of_decision(decision)
    if lifetime == NO_STORE:
        return _Encoded(services.encoder.encode(decision, explained=query.explain), lifetime, None)
    content, tag = services.encoder.encode_tagged(decision, explained=query.explain)
    named = if_none_match(request.scope)
    if named is not None and tag.matches(named):
        return NotModifiedResponse(tag, lifetime)
    return _Encoded(content, lifetime, tag)


class _Encoded(Response):
    """A response whose body is encoded and whose headers are known, which saves Response's passes over them."""

    def __init__(self, content: bytes, cached: str, tag: EntityTag | None) -> None:
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
