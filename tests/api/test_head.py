"""HEAD: every route that answers GET answers it, with the same status and fields, and without content."""

from collections.abc import Iterator, Mapping

import httpx
import pytest

from app.api.routes.check import ENVOY
from app.identity.well_known import is_public
from app.main.application import ROUTES
from tests.api.raw_client import connect, serve_app
from tests.api.service import Service, counted, running
from tests.operator_token import TOKEN_HEADER
from tests.origins import serve, text

pytestmark = pytest.mark.usefixtures("store_client")

OWN = {"date", "x-request-id"}
"""Fields that differ from answer to answer."""


def read_routes(answered: str) -> Iterator[str]:
    """The paths of the routes that have the method."""
    for module in ROUTES:
        for route in module.router.routes:
            if answered in getattr(route, "methods", ()):
                yield getattr(route, "path", "")


PATHS = sorted(set(read_routes("GET")))
EMPTY = {"/v1/robots/diff", "/v1/overrides/{id}", *filter(is_public, PATHS)}
"""Routes that answer 404 here: one version is known, no override, and no profile signs."""


def asked(path: str, url: str) -> tuple[str, Mapping[str, str], Mapping[str, str]]:
    """The path, the query and the fields of a request that the route answers."""
    query = {"url": url} if path.startswith("/v1/robots") else {}
    if path in {"/v1/allowed", "/v1/check"}:
        query = {"url": url, "agent": "ExampleBot"}
    _, _, host = url.partition("://")
    fields = {"Host": host.partition("/")[0], "X-Forwarded-Proto": "http"} if path.startswith(ENVOY) else {}
    return path.replace(":path", "").format_map({"id": "none", "name": "style.css", "path": "page"}), query, fields


def test_routes_are_found() -> None:
    assert {"/v1/allowed", "/v1/check", "/v1/robots", "/v1/changes", "/metrics", "/"} <= set(PATHS)


@pytest.mark.parametrize("path", PATHS)
async def test_head_is_get_without_content(store_url: str, path: str) -> None:
    async with serve(text(200, "User-agent: *\nDisallow: /private/\n")) as origin, running(store_url) as service:
        await service.allowed(f"{origin.url}/")
        async with serve_app(service.app) as (address, _):
            base = f"http://{address[0]}:{address[1]}"
            async with httpx.AsyncClient(base_url=base, trust_env=False, headers=TOKEN_HEADER) as client:
                where, query, fields = asked(path, f"{origin.url}/private/")
                get = await client.get(where, params=query, headers=fields)
                head = await client.head(where, params=query, headers=fields)
                again = await client.get("/healthz")  # on the same connection: no content was left on it
        assert (get.status_code < 400) == (path not in EMPTY | {"/v1/check"}), get.text
        assert head.status_code == get.status_code
        assert again.status_code == 200
        ignored = OWN | ({"content-length"} if path == "/metrics" else set())
        of_get, of_head = (
            {name: value for name, value in response.headers.items() if name not in ignored} for response in (get, head)
        )
        assert of_head == of_get
        assert head.content == b""


async def test_no_content_follows_the_head(store_url: str) -> None:
    async with running(store_url) as service, serve_app(service.app) as (address, _), connect(address) as caller:
        await caller.send(b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        head, end, content = (await caller.end()).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        assert b"content-length: 15" in head.lower()
        assert (end, content) == (b"\r\n\r\n", b"")


@pytest.mark.parametrize("path", sorted(set(read_routes("POST")) - set(PATHS)))
async def test_head_is_405_where_get_is(store_url: str, path: str) -> None:
    async with running(store_url) as service:
        where = path.format_map({"permit": "a", "name": "a", "id": "a"})
        get, head = await service.client.get(where), await service.client.head(where)
        assert (head.status_code, head.headers["allow"]) == (get.status_code, get.headers["allow"])
        assert head.status_code == 405
        assert "HEAD" not in head.headers["allow"]


async def test_head_counts_as_get_does(store_url: str) -> None:
    async with serve(text(200, "")) as origin, running(store_url) as service:
        query = {"url": f"{origin.url}/", "agent": "ExampleBot"}
        assert (await service.client.head("/v1/allowed", params=query)).status_code == 200
        assert await decisions(service) == 1
        requests = {"route": "/v1/allowed", "method": "HEAD", "status": "2xx"}
        assert await counted(service, "robots_requests_total", **requests) == 1
        assert len(origin.requests) == 1


async def decisions(service: Service) -> float:
    labels = {"verdict": "allow", "reason": "no_rules", "source": "fetched", "dialect": "rfc9309"}
    return await counted(service, "robots_decisions_total", **labels)
