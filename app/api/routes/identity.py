"""The directory of public keys, the card and the pages about crawlers, for sites, under the host of an identity."""

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from app.api.problems import Problem
from app.api.routes.pages import HEADERS
from app.api.services import services_of
from app.identity.well_known import CARD_PATH, CRAWLER_PAGES, DIRECTORY_PATH

if TYPE_CHECKING:
    from app.identity.directory import Identity

router = APIRouter()


def _identity(request: Request) -> "Identity":
    """The identity under the host of the request. Raises Problem."""
    host = request.headers.get("host", "").lower().removesuffix(":443")  # the port of https: a proxy ends TLS
    identity = services_of(request).identities().get(host)
    if identity is None:
        raise Problem(
            "not-found",
            f"No profile of AGENTS_FILE has signature_agent = 'https://{host[:100]}'. Behind a proxy or a CDN, make it "
            "forward the Host header unchanged.",
        )
    return identity


async def key_directory(request: Request) -> Response:
    """The public keys of the host's identity, signed with each of them."""
    body, headers = _identity(request).directory.at(services_of(request).now().timestamp())
    return Response(body, headers=dict(headers))


async def signature_agent_card(request: Request) -> Response:
    """Who the crawler of the host's identity is."""
    return Response(_identity(request).card, media_type="application/json", headers={"Cache-Control": "max-age=3600"})


async def crawler_page(request: Request) -> Response:
    """The page about one of the crawlers, by its product token in any case."""
    token = request.path_params["name"]
    page = _identity(request).pages.get(token.lower())
    if page is None:
        raise Problem("not-found", f"No crawler {token[:100]!r} has a profile with this host's signature_agent.")
    return Response(page, media_type="text/html", headers=HEADERS)


router.add_api_route(DIRECTORY_PATH, key_directory, include_in_schema=False)
router.add_api_route(CARD_PATH, signature_agent_card, include_in_schema=False)
router.add_api_route(CRAWLER_PAGES + "{name}", crawler_page, include_in_schema=False)
