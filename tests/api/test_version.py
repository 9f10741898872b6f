"""Whatever an answer is, it names the version of robots.txt that it rests on, as the history does."""

import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.api.document import DOCUMENT
from tests.api.service import Service, running
from tests.origins import serve, text

pytestmark = pytest.mark.usefixtures("store_client")

FILE: Final = "User-agent: *\nDisallow: /private\n"
AGENT: Final = "ExampleBot"

FETCHES: Final[Mapping[str, bytes]] = {
    "a file": text(200, FILE),
    "no file": text(404),
    "a long file": text(200, FILE + "# x\n" * 200_000),
    "a failure": text(503),
}

APART: Final = frozenset(
    {"RowOut", "ExplainedRowOut", "SimulatedRowOut", "ExplainedSimulatedRowOut", "TimelineEntryOut", "SideOut"}
)
"""Models of `POST /v1/test`, whose verdicts rest on a text that the caller has; and of a diff, which names both."""


def test_every_model_with_a_verdict_has_a_version() -> None:
    schemas: Mapping[str, Any] = DOCUMENT["components"]["schemas"]
    having = {name for name, it in schemas.items() if "verdict" in it.get("properties", {})}
    assert having > APART
    assert not [name for name in having - APART if "version" not in schemas[name]["properties"]]


async def allowed(service: Service, page: Mapping[str, str]) -> object:
    return (await service.client.get("/v1/allowed", params=page)).json()["version"]


async def explained(service: Service, page: Mapping[str, str]) -> object:
    return (await service.client.get("/v1/allowed", params={**page, "explain": "true"})).json()["version"]


async def batch(service: Service, page: Mapping[str, str]) -> object:
    return (await service.client.post("/v1/allowed", json={"items": [page]})).json()["answers"][0]["version"]


async def stream(service: Service, page: Mapping[str, str]) -> object:
    headers = {"Content-Type": "application/x-ndjson"}
    response = await service.client.post("/v1/allowed", content=json.dumps(page), headers=headers)
    return response.json()["version"]


async def check(service: Service, page: Mapping[str, str]) -> object:
    response = await service.client.get("/v1/check", params=page)
    version = response.headers.get("robots-version")
    assert response.status_code == 204 or response.json().get("version") == version
    return version


async def envoy(service: Service, page: Mapping[str, str]) -> object:
    scheme, _, rest = page["url"].partition("://")
    host, _, path = rest.partition("/")
    headers = {"Host": host, "X-Forwarded-Proto": scheme, "User-Agent": AGENT}
    response = await service.client.get(f"/v1/check/envoy/{path}", headers=headers)
    assert response.headers["robots-verdict"]
    return response.headers.get("robots-version")


async def permit(service: Service, page: Mapping[str, str]) -> object:
    return (await service.client.post("/v1/permits", json=page)).json()["version"]


async def permits(service: Service, page: Mapping[str, str]) -> object:
    return (await service.client.post("/v1/permits/batch", json={"items": [page]})).json()["permits"][0]["version"]


async def indexing(service: Service, page: Mapping[str, str]) -> object:
    body = {"url": page["url"], "agents": [page["agent"]]}
    return (await service.client.post("/v1/indexing", json=body)).json()["version"]


async def file(service: Service, page: Mapping[str, str]) -> object:
    return (await service.client.get("/v1/robots", params={"url": page["url"]})).json()["version"]


async def facts(service: Service, page: Mapping[str, str]) -> object:
    return (await service.client.get("/v1/robots", params={"url": page["url"], "as": "facts"})).json()["version"]


async def refresh(service: Service, page: Mapping[str, str]) -> object:
    return (await service.client.post("/v1/robots/refresh", params={"url": page["url"]})).json()["version"]


async def sitemaps(service: Service, page: Mapping[str, str]) -> object:
    return (await service.client.post("/v1/robots/sitemaps", params={"url": page["url"]})).json()["version"]


ROUTES: Final[tuple[Callable[[Service, Mapping[str, str]], Awaitable[object]], ...]] = (
    allowed,
    explained,
    batch,
    stream,
    check,
    envoy,
    permit,
    permits,
    indexing,
    file,
    facts,
    refresh,
    sitemaps,
)


@pytest.mark.parametrize("path", ["/", "/private/a"])
@pytest.mark.parametrize("found", FETCHES)
async def test_every_route_and_the_log_name_the_version(store_url: str, tmp_path: Path, found: str, path: str) -> None:
    log = tmp_path / "decisions.ndjson"
    async with serve(FETCHES[found]) as origin:
        page = {"url": f"{origin.url}{path}", "agent": AGENT}
        async with running(store_url, decision_log=str(log), min_refetch_seconds=0) as service:
            versions = {route.__name__: await route(service, page) for route in ROUTES}
            [known] = await _history(service, origin.url)
        expected = None if found == "a failure" else known
        assert versions == {route.__name__: expected for route in ROUTES}
        lines = map(json.loads, log.read_text().splitlines())
        logged = [line["version"] for line in lines if "verdict" in line]  # the last one is a mark
        assert len(logged) >= len(ROUTES) - 4  # those that are about a page
        assert set(logged) == {expected}


async def _history(service: Service, url: str) -> list[str]:
    response = await service.client.get("/v1/robots/history", params={"url": url})
    return [] if response.status_code == 404 else [it["id"] for it in response.json()["versions"]]
