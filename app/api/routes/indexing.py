"""`POST /v1/indexing`: the indexing rules of a page, from its headers and its markup, joined with robots.txt."""

import asyncio
import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain
from typing import Annotated

from fastapi import Request, Response
from pydantic import BaseModel, BeforeValidator, Field, StringConstraints

from app.api.answers.schema import VERSION_TEXT, NoteOut, is_none
from app.api.answers.serialize import notes_out
from app.api.caller import caller_of
from app.api.json_bodies import RequestModel
from app.api.long_work import while_connected
from app.api.problems import Problem, bad_value, documented
from app.api.questions import asking
from app.api.routing import api_router
from app.api.services import Services, services_of
from app.api.sites.reader import ReadBounds, ReadOutcome, SitePage
from app.api.sites.sitemap import target_of
from app.decisions.evaluate import Decision, Question, judge_every_purpose
from app.decisions.question import (
    AGENT_TEXT,
    Asking,
    InstantText,
    QuestionNowIn,
    SeveralAgents,
    UrlText,
    agent_from,
    dialect_from,
    instant_from,
)
from app.fetch.response import is_html
from app.loop.helpers import TooMuchWork
from robots_core.meta_tags import Metas, metas_json
from robots_core.notes import Note, agent_notes
from robots_core.page_rules import join, robots_tags
from robots_core.purposes.judge import PurposeState
from robots_core.purposes.page import (
    CONTENT_SIGNAL,
    CONTENT_USAGE,
    TDM_POLICY,
    TDM_RESERVATION,
    PageField,
    judge_page,
    tdm_policy,
    unknown_words,
    unread_fields,
)
from robots_core.purposes.policy import Purpose
from robots_core.robots.indexing import COUNT_LIMIT, FIELD_NAME, RULES_LIMIT, effective
from robots_core.robots.verdict import Permission, Reason
from robots_core.times import rfc3339

HTML_LIMIT = 1024 * 1024
"""Characters of the largest page."""

METAS_LIMIT = 1000
"""Meta tags of a request. A page may have hundreds that are not for crawlers; COUNT_LIMIT of the others are read."""

FIELDS_LIMIT = 128 * 1024
"""Characters of all headers and meta tags together; parsing as many takes milliseconds."""

FIELDS = frozenset({FIELD_NAME, "robots-tag", CONTENT_SIGNAL, CONTENT_USAGE, TDM_RESERVATION, TDM_POLICY})
"""The header fields that say something about crawlers."""

_FieldText = Annotated[str, StringConstraints(max_length=RULES_LIMIT)]

router = api_router("indexing")


class HeaderIn(RequestModel):
    """A header field of the response, in any case; fields that say nothing about crawlers are ignored."""

    name: _FieldText
    value: _FieldText


def _of_x_robots_tag(field: object) -> object:
    return {"name": FIELD_NAME, "value": field} if isinstance(field, str) else field


_Header = Annotated[HeaderIn, BeforeValidator(_of_x_robots_tag, json_schema_input_type=_FieldText | HeaderIn)]


class MetaIn(RequestModel):
    """A meta tag."""

    name: _FieldText
    content: _FieldText


class IndexingIn(QuestionNowIn, RequestModel):
    """A page's headers, one per field line; its meta tags; or its HTML. With `url`, robots.txt is asked, too."""

    url: UrlText | None = Field(  # type: ignore[assignment] # without it, nothing is asked
        None, description="The page's URL: the answer then joins the verdict of `GET /v1/allowed`."
    )
    agent: SeveralAgents = Field(alias="agents", description=AGENT_TEXT)
    headers: list[_Header] = Field(
        [],
        max_length=COUNT_LIMIT,
        fail_fast=True,
        description="X-Robots-Tag, Robots-Tag, Content-Signal, Content-Usage, tdm-reservation, tdm-policy; "
        "a string is X-Robots-Tag.",
    )
    metas: list[MetaIn] = Field([], max_length=METAS_LIMIT, fail_fast=True)
    html: str | None = Field(None, max_length=HTML_LIMIT)
    fetch: bool = Field(
        False,
        description="Whether the service fetches the page of `url`, in place of what the caller sends: once, by the "
        "name of USER_AGENT, if robots.txt permits it, and in a slot of the host's pace.",
    )
    at: InstantText | None = Field(None, description="RFC 3339 instant that unavailable_after is compared with; now.")


class SourceOut(BaseModel):
    """A rule that takes part in the result: where it is, the agent it names (null for all), and its normal form."""

    where: str = Field(description="header 1 or meta 2, each counted from 1 as sent, or robots.txt, or policy.")
    agent: str | None
    rule: str
    line: int | None = Field(None, exclude_if=is_none, description="The line of robots.txt; absent for the page's own.")


class PagePurposeOut(BaseModel):
    """Whether the site permits a purpose for this page, and where it says so; null if it does not say."""

    state: PurposeState
    source: SourceOut | None


class PageReadOut(BaseModel):
    """What became of the fetch of the page, and how its style sheets and scripts are closed to the agent."""

    url: str = Field(description="Where redirects led.")
    outcome: ReadOutcome = Field(description="The rules are those of the page only if it is `read`.")
    detail: str = Field(description="Why it was not read, in a sentence; else empty.")
    loads: list["LoadOut"] = Field(description="Those of the page's own origin, in the order of the page.")
    other_origins: int = Field(description="How many are of other origins, whose files are not asked for.")


class LoadOut(BaseModel):
    """A style sheet or script that the page loads, and whether the agent may fetch it."""

    url: str
    verdict: Permission
    line: int | None = Field(description="The line of robots.txt that decides, or null if no line does.")
    version: str | None = Field(description=VERSION_TEXT)


class IndexingOut(BaseModel):
    """The effective rules, and what they permit together with robots.txt.

    A limit that is null is none. Snippets are in characters, video previews in seconds.
    """

    rules: list[str]
    max_snippet: int | None
    max_image_preview: str | None
    max_video_preview: int | None
    unavailable_after: str | None
    sources: list[SourceOut]
    at: str = Field(description="The instant that the rest is worked out for.")
    crawl: bool | None = Field(
        description="Whether robots.txt, and the policy that is enforced, permit the page's fetch; null without a url."
    )
    index: bool = Field(
        description="Whether the page's own tags permit it to be indexed, and so on for the next three."
    )
    follow: bool
    archive: bool
    snippet: bool
    decided_by: dict[str, SourceOut] = Field(
        description="By crawl, index, follow, archive and snippet: what decided; absent if nothing restricts."
    )
    implied: list[str] = Field(
        description="Rules that follow from others: noarchive from noindex, noindex from a past unavailable_after."
    )
    pending: list[str] = Field(description="Rules that are not in force yet: an unavailable_after to come.")
    purposes: dict[Purpose, PagePurposeOut] = Field(
        description="Whether the site permits each purpose, by robots.txt and by the page: the most restrictive counts."
    )
    robots_tag: list[SourceOut] = Field(description="Rules of Robots-Tag headers, a draft; they are not enforced.")
    tdm_policy: str | None = Field(description="The page's tdm-policy, as written.")
    verdict: Permission | None = Field(description="Of `GET /v1/allowed` for the url; null without one.")
    reason: Reason | None
    version: str | None = Field(description=f"Null without a url. {VERSION_TEXT}")
    page: PageReadOut | None = Field(None, description="With `fetch` alone.", exclude_if=is_none)
    notes: list[NoteOut]


@router.post("/v1/indexing", response_model=IndexingOut, responses={**documented(413, 422, 503)})
async def indexing(request: Request, page: IndexingIn) -> Response:
    """Work out the most restrictive rules for the agents, and where each comes from.

    With `url`, the answer says whether the page may be crawled, too, and which of its rules are never read because it
    may not. With `fetch`, the service fetches the page; the answer has what it derives from it, and not the page.
    """
    services = services_of(request)
    known = services.agents()
    question = _question(page, asking(request))
    at = instant_from(page.at) or services.now()
    headers = _fields((it.name.strip().lower(), it.value) for it in page.headers)
    metas = [(meta.name, meta.content) for meta in page.metas]
    size = sum(len(it.name) + len(it.value) for it in headers) + sum(map(len, chain.from_iterable(metas)))
    _check_size(size)
    decision = None if question is None else await services.decider.decide(question)
    read, html = None, page.html or ""
    if page.fetch and question is not None:
        read = await _read(request, question)
        headers, html = _fields(_own_fields(read)), _html_of(read)
    of_page = await _metas_of(request, html)
    _check_size(size + of_page.size)
    agent = agent_from(page.agent, known)
    notes = agent_notes(agent, dialect_from(page.dialect, agent))
    answer = _answer(agent.chain, notes, headers, [*metas, *of_page.tags], decision, at)
    if read is not None and question is not None:
        answer.page = await _page_out(services, question, read, of_page)
    return Response(answer.model_dump_json(), media_type="application/json")


def _question(page: IndexingIn, asking: Asking) -> Question | None:
    """The question about the page's URL, if it has one. Raises BadQuestion, also without a URL."""
    agents = [agent_from(name, asking.known, f"agents[{at}]") for at, name in enumerate(page.agent)]
    dialect_from(page.dialect, agents[0])
    if page.fetch and (page.url is None or page.headers or page.metas or page.html is not None):
        raise bad_value(
            "fetch", page.fetch, "With fetch, send the url of the page, and neither headers, metas nor html."
        )
    return None if page.url is None else page.question(asking)


async def _read(request: Request, question: Question) -> SitePage:
    """Fetch the page of a question. Raises Busy."""
    sites, caller = services_of(request).sites, question.caller
    deadline = asyncio.get_running_loop().time() + question.wait
    with sites.admitted(caller):
        bounds = ReadBounds(HTML_LIMIT, question.target.origin.port, caller, deadline)
        page = await while_connected(request.receive, sites.read(question.target, bounds))
    caller_of(request.scope).charge_on_credit(1)
    return page


def _own_fields(page: SitePage) -> Iterator[tuple[str, str]]:
    """The fields of a response that say something about crawlers, in lower case."""
    received = () if page.response is None else page.response.headers
    for name, value in received:
        known = name.strip().lower().decode("latin-1")
        if known in FIELDS:
            yield known, value.decode("latin-1")[:RULES_LIMIT]


def _fields(fields: Iterable[tuple[str, str]]) -> list[PageField]:
    return [PageField(f"header {number}", name, value) for number, (name, value) in enumerate(fields, 1)]


def _html_of(page: SitePage) -> str:
    """The text of a page, "" if it is none. Tags and URLs are ASCII, in which all encodings of the web agree."""
    is_page = page.response is not None and is_html(page.response.headers)
    return page.body.decode(errors="replace") if is_page else ""


async def _page_out(services: Services, question: Question, page: SitePage, found: Metas) -> PageReadOut:
    """What became of a page, and whether the agent of the question may fetch what it loads from its own origin."""
    loads: dict[str, LoadOut] = {}
    others = 0
    for written in found.loads:
        target = target_of(page.target.url, found.base, written)
        if target is None or target.origin != page.target.origin:
            others += 1
        elif target.url not in loads:
            decision = await services.decider.decide(question._replace(target=target), begun=True)
            verdict = decision.verdict
            line = None if verdict.rule is None else verdict.rule.directive.line
            loads[target.url] = LoadOut(url=target.url, verdict=verdict.permission, line=line, version=decision.version)
    return PageReadOut(
        url=page.target.url,
        outcome=page.outcome,
        detail=page.detail,
        loads=list(loads.values()),
        other_origins=others,
    )


async def _metas_of(request: Request, html: str) -> Metas:
    """The meta tags of a page; raises Problem."""
    page = html.encode()
    try:
        found = await services_of(request).long_work.run(request, len(page), metas_json, page, FIELDS_LIMIT)
    except TooMuchWork:
        raise Problem("too-large", "Reading the page takes too long; send its head alone.") from None
    return Metas(*json.loads(found))


def _answer(
    tokens: Sequence[str],
    notes: Iterable[Note],
    headers: Sequence[PageField],
    metas: Sequence[tuple[str, str]],
    decision: Decision | None,
    at: datetime,
) -> IndexingOut:
    # Header fields of other names keep their places, by which sources are numbered.
    found = effective(tokens, [field.value if field.name == FIELD_NAME else "" for field in headers], metas)
    verdict = None if decision is None else decision.verdict
    tags = [PageField(f"meta {number}", it[0].strip().lower(), it[1]) for number, it in enumerate(metas, 1)]
    fields = [*headers, *tags]
    found = dataclasses.replace(found, unknown=(*found.unknown, *unknown_words(fields)))
    purposes = judge_page(judge_every_purpose(decision), fields, found.sources)
    joined = join(found, verdict, at, None if decision is None else decision.purposes, unread_fields(fields), tokens)
    # The members of the model that are named as theirs; those below are read otherwise.
    named = {it.name: getattr(of, it.name) for of in (found, joined) for it in dataclasses.fields(of)}
    after = found.unavailable_after
    members = {
        **named,
        "unavailable_after": None if after is None else rfc3339(after),
        "at": rfc3339(at),
        "purposes": purposes,
        "robots_tag": list(robots_tags(headers, tokens)),
        "tdm_policy": tdm_policy(fields),
        "verdict": None if verdict is None else verdict.permission,
        "reason": None if verdict is None else verdict.reason,
        "version": None if decision is None else decision.version,
        "notes": notes_out([*notes, *joined.notes]) or [],
    }
    return IndexingOut.model_validate(members, from_attributes=True)


def _check_size(size: int) -> None:
    if size > FIELDS_LIMIT:
        detail = f"The headers and meta tags have more than {FIELDS_LIMIT} characters; send fewer."
        raise Problem("too-large", detail)
