"""`POST /v1/robots/sitemaps`: the URLs that the sitemaps of a robots.txt list."""

import msgspec
from fastapi import Request, Response
from pydantic import BaseModel, Field

from app.api.answers.schema import VERSION_TEXT, RobotsOut
from app.api.answers.serialize import robots_out
from app.api.caller import caller_of
from app.api.disconnect import while_connected
from app.api.parameters import OriginUrl, Wait
from app.api.problems import documented
from app.api.routing import api_router
from app.api.services import services_of
from app.api.sites.reader import ReadOutcome
from app.api.sites.sitemap import URLS, Sitemap, SitemapText, sitemap_json, sitemap_of
from app.api.sites.sitemap_walk import SITEMAP_BYTES, SITEMAP_SECONDS, SITEMAPS, read_sitemaps
from app.decisions.question import WAIT, target_from
from app.loop.helpers import TooMuchWork

router = api_router("files")


class SitemapOut(BaseModel):
    """A sitemap that was asked for."""

    url: str
    outcome: ReadOutcome = Field(
        description="disallowed: robots.txt closes it to the service's own crawler, by the name of USER_AGENT; "
        "deferred: robots.txt could not be fetched, or the pace leaves no slot in time."
    )
    urls: int = Field(description="How many URLs of the origin it lists, or sitemaps if it is an index.")
    is_index: bool
    detail: str = Field(description="Why it was not read, in a sentence; else empty.")


class SitemapsOut(BaseModel):
    """The URLs of the origin, each once, and what became of each sitemap."""

    urls: list[str]
    sitemaps: list[SitemapOut]
    other_origins: int = Field(
        description="Listed URLs of other origins, which are left out: other files decide about them."
    )
    unread: int = Field(
        description=f"Sitemaps that were not asked for: at most {SITEMAPS} are, with {SITEMAP_BYTES} bytes in all, and "
        f"none is begun after {SITEMAP_SECONDS:g} s."
    )
    complete: bool = Field(
        description=f"Whether robots.txt could be read, and no bound left anything out: of the URLs, {URLS} fit."
    )
    version: str | None = Field(description=VERSION_TEXT)
    robots: RobotsOut


@router.post("/v1/robots/sitemaps", response_model=SitemapsOut, responses={**documented(422, 503)})
async def sitemaps(request: Request, url: OriginUrl, wait: Wait = WAIT) -> Response:
    """Read the sitemaps that the robots.txt of the URL's origin names, and those that they list, as a polite crawler.

    For each, robots.txt decides whether the service's own crawler may fetch it, and it takes a slot of its host's pace.
    A quota is charged one request more for each. Nothing is cached.
    """
    services = services_of(request)
    caller, origin = caller_of(request.scope), target_from(url).origin
    file = await services.decider.files.get(origin, wait=wait, caller=caller.id)
    named = () if file.robots is None else file.robots.sitemaps

    async def parse(text: SitemapText) -> Sitemap:
        try:
            return sitemap_of(await services.long_work.run(request, len(text.content), sitemap_json, text))
        except TooMuchWork as error:
            return Sitemap([], wrong=f"{error.limit}.")

    with services.sites.admitted(caller.id):
        work = read_sitemaps(origin, named, services.sites, parse, caller.id)
        found = await while_connected(request.receive, work)
    caller.charge_on_credit(len(found.sitemaps))
    answer = {
        **found._asdict(),
        "sitemaps": [it._asdict() for it in found.sitemaps],
        "complete": found.complete and file.version is not None,
        "version": file.version,
        "robots": robots_out(origin, file.cached).model_dump(mode="json"),
    }
    return Response(msgspec.json.encode(answer), media_type="application/json")
