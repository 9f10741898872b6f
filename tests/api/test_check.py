"""`GET /v1/check`: the verdict as a status, for curl, nginx and Envoy."""

import pytest

from tests.api.asgi_client import request
from tests.api.service import running, slug
from tests.origins import serve, text

pytestmark = pytest.mark.usefixtures("store_client")

RULES = 'User-agent: ExampleBot\nDisallow: /private/\nDisallow: /"é\\\nCrawl-delay: 2.5\n'
PATH = "/v1/check"


async def test_allow_is_204_with_reason_and_rate(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        parameters = {"url": f"{origin.url}/", "agent": "ExampleBot"}
        response = await service.client.get(PATH, params=parameters)
        assert (response.status_code, response.content) == (204, b"")
        fields = {name: value for name, value in response.headers.items() if name.startswith("robots-")}
        assert fields == {"robots-verdict": "allow", "robots-reason": "no_match", "robots-interval": "2.5"}
        assert "content-length" not in response.headers
        allowed = await service.client.get("/v1/allowed", params=parameters)
        assert response.headers["cache-control"] == allowed.headers["cache-control"] != "no-store"


async def test_disallow_is_403_with_its_rule(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        response = await service.client.get(PATH, params={"url": f"{origin.url}/private/", "agent": "ExampleBot"})
        assert (response.status_code, response.content) == (403, b"")
        assert response.headers["robots-verdict"] == "disallow"
        assert response.headers["robots-rule"] == '"disallow: /private/";line=2'
        quoted = await service.client.get(PATH, params={"url": f'{origin.url}/"é\\', "agent": "ExampleBot"})
        assert quoted.headers["robots-rule"] == r'"disallow: /\"%C3%A9\\";line=3'


async def test_defer_is_503_with_retry_after(store_url: str) -> None:
    async with serve(text(503)) as origin, running(store_url) as service:
        parameters = {"url": f"{origin.url}/", "agent": "ExampleBot"}
        response = await service.client.get(PATH, params=parameters)
        assert (response.status_code, response.content) == (503, b"")
        assert response.headers["robots-verdict"] == "defer"
        assert response.headers["cache-control"] == "no-store"
        assert int(response.headers["retry-after"]) > 0


async def test_options_count_as_for_allowed(store_url: str) -> None:
    async with serve(text(200, "User-agent: *\nDisallow: /*.pdf$")) as origin, running(store_url) as service:
        parameters = {"url": f"{origin.url}/a.pdf", "agent": "ExampleBot"}
        assert (await service.client.get(PATH, params=parameters)).status_code == 403
        as_written_in_1996 = {**parameters, "dialect": "draft1996"}
        assert (await service.client.get(PATH, params=as_written_in_1996)).status_code == 204
        assert (await service.client.get(PATH, params={**parameters, "wait": "0"})).status_code == 403
        absent = await service.client.get(PATH, params={**parameters, "as_of": "2001-01-01T00:00:00Z"})
        assert (absent.status_code, slug(absent)) == (404, "no-version")


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("", "bad-url"),
        ("url=example.com&agent=A", "bad-url"),
        ("url=http://h/", "bad-agent"),
        ("url=http://h/&agent=()", "bad-agent"),
        ("url=http://h/&agent=A&dialect=latin", "bad-dialect"),
        ("url=http://h/&agent=A&wait=61", "bad-request"),
    ],
)
async def test_bad_input_is_a_problem(store_url: str, query: str, problem: str) -> None:
    async with running(store_url) as service:
        response = await service.client.get(f"{PATH}?{query}")
        assert (response.status_code, slug(response)) == (422, problem)
        assert "robots-verdict" not in response.headers


async def test_proxy_names_url_and_agent_in_headers(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        headers = {"X-Original-URL": f"{origin.url}/private/a?b=1", "User-Agent": "ExampleBot/1.0"}
        assert (await service.client.get(PATH, headers=headers)).status_code == 403
        other = {"agent": "OtherBot"}
        assert (await service.client.get(PATH, headers=headers, params=other)).status_code == 204
        page = {"url": f"{origin.url}/"}
        assert (await service.client.get(PATH, headers=headers, params=page)).status_code == 204


async def test_user_agent_alone_names_no_crawler(store_url: str) -> None:
    async with running(store_url) as service:
        response = await service.client.get(PATH, params={"url": "http://h/"}, headers={"User-Agent": "ExampleBot"})
        assert slug(response) == "bad-agent"


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE"])
async def test_envoy_asks_with_path_prefix_and_host(store_url: str, method: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        headers = {"Host": origin.url.removeprefix("http://"), "User-Agent": "ExampleBot", "X-Forwarded-Proto": "http"}
        allowed = await service.client.request(method, f"{PATH}/envoy/page?a=1", headers=headers)
        assert (allowed.status_code, allowed.content) == (200, b"")  # Envoy denies with any other status
        refused = await service.client.request(method, f"{PATH}/envoy/private/", headers=headers)
        assert (refused.status_code, refused.content) == (403, b"")
        assert refused.headers["robots-rule"] == '"disallow: /private/";line=2'


async def test_envoy_must_pass_the_scheme_on(store_url: str) -> None:
    async with running(store_url) as service:
        response = await service.client.get(f"{PATH}/envoy/", headers={"Host": "h"})
        assert (response.status_code, response.json()["parameter"]) == (422, "X-Forwarded-Proto")


async def test_bytes_of_a_path_are_percent_encoded(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        headers = [(b"x-original-url", f'{origin.url}/"é\\'.encode()), (b"user-agent", b"ExampleBot")]
        assert (await request(service.app, "GET", PATH, headers=headers)).status == 403
