"""`GET /v1/allowed`: whether an agent may fetch a URL now, according to the file of its origin."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from app.api.middleware.http_caching import cache_control
from app.api.problems import documented
from app.api.questions import QuestionQuery, decide, read_query, route_calling
from app.api.schemas.answers import AnswerOut
from app.api.serialize import answer_out
from app.api.services import services_of

PATH = "/v1/allowed"


class AllowedQuery(QuestionQuery):
    """The parameters, which FastAPI documents and `read_query` parses."""

    explain: bool = Field(False, description="Include every rule that matched, and how the group was found.")


async def handle(request: Request) -> Response:
    """Answer a request."""
    return await allowed(request, read_query(request, AllowedQuery))


router = APIRouter(tags=["decisions"], route_class=route_calling(handle))


@router.get(PATH, response_model=AnswerOut, responses={**documented(404, 422, 503)})
async def allowed(request: Request, query: Annotated[AllowedQuery, Query()]) -> Response:
    """Decide whether `agent` may fetch `url` now: what decided, and how fast it may fetch."""
    decision = await decide(request, query)
    if query.explain:
        content = answer_out(decision, explained=True).model_dump_json().encode()
    else:
        content = services_of(request).encoder.encode(decision)
    return _Encoded(content, cache_control(decision))


class _Encoded(Response):
    """A response whose body is encoded and whose headers are known, which saves Response's passes over them."""

    def __init__(self, content: bytes, cached: str) -> None:
        self.status_code = 200
        self.background = None
        self.body = content
        self.raw_headers = [
            (b"content-length", b"%d" % len(content)),
            (b"content-type", b"application/json"),
            (b"cache-control", cached.encode("latin-1")),
        ]
