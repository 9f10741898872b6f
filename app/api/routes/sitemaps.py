"""`POST /v1/robots/sitemaps`: the URLs that the sitemaps of a robots.txt list."""

from fastapi import Request, Response
from pydantic import Field

from app.api.answers.schema import VERSION_TEXT, RobotsOut
from app.api.answers.serialize import robots_out
from app.api.caller import caller_of
from app.api.long_work import while_connected
from app.api.parameters import OriginUrl, Wait
from app.api.problems import documented
from app.api.routing import api_router
from app.api.services import services_of
from app.api.sites.sitemap import Sitemap, SitemapText, sitemap_json, sitemap_of
from app.api.sites.sitemap_walk import SitemapUrls, read_sitemaps
from app.decisions.question import WAIT, target_from
from app.loop.helpers import TooMuchWork

router = api_router("files")


class SitemapsOut(SitemapUrls):
    """The URLs of the origin, each once, and what became of each sitemap."""

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
    members = dict(found) | {"complete": found.complete and file.version is not None}
    answer = SitemapsOut(**members, version=file.version, robots=robots_out(origin, file.cached))
    return Response(answer.model_dump_json(), media_type="application/json")
