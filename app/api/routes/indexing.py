"""`POST /v1/indexing`: the indexing rules of a page, from its headers and its markup."""

from collections.abc import Iterator
from itertools import chain
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field, StringConstraints

from app.api.json_bodies import JsonRoute, RequestModel
from app.api.meta_tags import MetaReader
from app.api.params import agent_from
from app.api.problems import Problem, documented
from app.api.serialize import rfc3339
from app.api.services import ServicesDep
from app.robots.indexing import COUNT_LIMIT, FIELD_LIMIT, Indexing, effective

HTML_LIMIT = 1024 * 1024
"""Characters of the largest page."""

FIELDS_LIMIT = 128 * 1024
"""Characters of all headers and meta tags together; parsing as many takes milliseconds."""

_FieldText = Annotated[str, StringConstraints(max_length=FIELD_LIMIT)]

router = APIRouter(tags=["indexing"], route_class=JsonRoute)


class MetaIn(RequestModel):
    """A meta tag."""

    name: _FieldText
    content: _FieldText


class IndexingIn(RequestModel):
    """A page's X-Robots-Tag values, one per field line; its meta tags; or its HTML."""

    agents: list[str] = Field(min_length=1, max_length=16, fail_fast=True)
    headers: list[_FieldText] = Field([], max_length=COUNT_LIMIT, fail_fast=True)
    metas: list[MetaIn] = Field([], max_length=COUNT_LIMIT, fail_fast=True)
    html: str | None = Field(None, max_length=HTML_LIMIT)


class SourceOut(BaseModel):
    """A rule that takes part in the result: where it is, the agent it names (null for all), and its normal form."""

    where: str
    agent: str | None
    rule: str


class IndexingOut(BaseModel):
    """The effective rules; null means no limit. Snippets are in characters, video previews in seconds."""

    rules: list[str]
    max_snippet: int | None
    max_image_preview: str | None
    max_video_preview: int | None
    unavailable_after: str | None
    sources: list[SourceOut]


@router.post("/v1/indexing", response_model=IndexingOut, responses={**documented(413, 422, 503)})
async def indexing(services: ServicesDep, page: IndexingIn) -> Response:
    """Work out the most restrictive rules for the agents, and where each comes from."""
    return services.long_work.answer(lambda _allowance: _indexed(page))


def _indexed(page: IndexingIn) -> Iterator[str]:
    """The answer, after steps without output; raises Problem."""
    tokens = list(dict.fromkeys(chain.from_iterable(_tokens(name, at) for at, name in enumerate(page.agents))))
    size = sum(map(len, page.headers)) + sum(len(meta.name) + len(meta.content) for meta in page.metas)
    _check_size(size)
    reader = MetaReader()
    for _ in reader.read(page.html or ""):
        _check_size(size + reader.size)
        yield ""
    metas = [*((meta.name, meta.content) for meta in page.metas), *reader.metas]
    yield _indexing_out(effective(tokens, page.headers, metas)).model_dump_json()


def _check_size(size: int) -> None:
    if size > FIELDS_LIMIT:
        detail = f"The headers and meta tags have more than {FIELDS_LIMIT} characters; send fewer."
        raise Problem(413, "too-large", detail)


def _tokens(name: str, at: int) -> tuple[str, ...]:
    return agent_from([name], f"agents[{at}]").chain


def _indexing_out(found: Indexing) -> IndexingOut:
    after = found.unavailable_after
    return IndexingOut(
        rules=list(found.rules),
        max_snippet=found.max_snippet,
        max_image_preview=found.max_image_preview,
        max_video_preview=found.max_video_preview,
        unavailable_after=None if after is None else rfc3339(after),
        sources=[SourceOut(where=source.where, agent=source.agent, rule=source.rule) for source in found.sources],
    )
