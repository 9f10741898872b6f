"""Without keys, cross-site requests of browsers are refused."""

import pytest

from tests.api.document import DOCUMENT
from tests.api.service import running, slug

pytestmark = pytest.mark.usefixtures("store_client")

QUESTION = b'{"items": [{"url": "http://a.test/", "agent": "ExampleBot"}]}'
PERMIT = b'{"url": "http://a.test/", "agent": "ExampleBot", "wait": 0}'
TEST = b'{"robots": "", "urls": ["http://a.test/"], "agents": ["ExampleBot"]}'
BODIES = [("/v1/allowed", QUESTION), ("/v1/permits", PERMIT), ("/v1/test", TEST)]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://robots.example:3000"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "same-site", "Origin": "https://other.example"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
@pytest.mark.parametrize(("path", "body"), BODIES)
async def test_a_page_of_another_origin_is_refused(
    store_url: str, path: str, body: bytes, headers: dict[str, str]
) -> None:
    async with running(store_url, allow_unauthenticated=True) as service:
        # Requests that a browser sends without a preflight.
        fields = {"Host": "robots.example", "Content-Type": "text/plain", **headers}
        response = await service.client.post(path, content=body, headers=fields)
        assert (response.status_code, slug(response)) == (403, "forbidden")
        assert response.headers["x-request-id"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://robots.example"},
        {"Origin": "http://robots.example", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
    ],
)
@pytest.mark.parametrize(("path", "body"), BODIES)
async def test_own_page_and_other_clients_are_answered(
    store_url: str, path: str, body: bytes, headers: dict[str, str]
) -> None:
    async with running(store_url, allow_unauthenticated=True) as service:
        fields = {"Host": "robots.example", "Content-Type": "application/json", **headers}
        assert (await service.client.post(path, content=body, headers=fields)).status_code == 200


async def test_cross_site_link_is_followed(store_url: str) -> None:
    async with running(store_url) as service:
        for path in ("/", "/docs", "/healthz"):
            response = await service.client.get(path, headers={"Sec-Fetch-Site": "cross-site"})
            assert response.status_code == 200


GETS = sorted(path for path, methods in DOCUMENT["paths"].items() if "get" in methods)


@pytest.mark.parametrize("path", [path for path in GETS if path.startswith("/v1/")])
@pytest.mark.parametrize("headers", [{"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}])
async def test_no_get_of_another_origin_reaches_the_api(store_url: str, path: str, headers: dict[str, str]) -> None:
    async with running(store_url) as service:
        response = await service.client.get(path, headers=headers)
        assert (response.status_code, slug(response)) == (403, "forbidden")
