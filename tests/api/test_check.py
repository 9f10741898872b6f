"""`GET /v1/check`: the verdict as a status, for curl, nginx and Envoy."""

from typing import Any

import jsonschema_rs
import pytest

from app.api.routes.check import interval_text
from robots_core.times import instant
from tests.api.asgi_client import request
from tests.api.document import DOCUMENT
from tests.api.service import running, slug
from tests.exposition import value
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
        allowed = await service.client.get("/v1/allowed", params=parameters)
        version = allowed.json()["version"]
        assert fields == {
            "robots-verdict": "allow",
            "robots-reason": "no_match",
            "robots-version": version,
            "robots-interval": "2.5",
        }
        assert "content-length" not in response.headers
        assert response.headers["cache-control"] == allowed.headers["cache-control"] != "no-store"


async def test_disallow_is_403_with_its_rule(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        response = await service.client.get(PATH, params={"url": f"{origin.url}/private/", "agent": "ExampleBot"})
        assert (response.status_code, slug(response)) == (403, "disallowed")
        assert response.json() == {
            "type": "urn:robots-decisions:problem:disallowed",
            "title": "Forbidden",
            "status": 403,
            "detail": "Line 2 (Disallow: /private/) in the group for examplebot disallows this URL.",
            "verdict": "disallow",
            "reason": "rule",
            "agent": "ExampleBot",
            "rule": {"directive": "disallow", "pattern": "/private/", "line": 2, "text": "Disallow: /private/"},
            "version": response.headers["robots-version"],
        }
        assert response.headers["robots-verdict"] == "disallow"
        assert response.headers["robots-rule"] == '"disallow: /private/";line=2'
        quoted = await service.client.get(PATH, params={"url": f'{origin.url}/"é\\', "agent": "ExampleBot"})
        assert quoted.headers["robots-rule"] == r'"disallow: /\"%C3%A9\\";line=3'


async def test_defer_is_503_with_retry_after(store_url: str) -> None:
    async with serve(text(503)) as origin, running(store_url) as service:
        parameters = {"url": f"{origin.url}/", "agent": "ExampleBot"}
        response = await service.client.get(PATH, params=parameters)
        assert (response.status_code, slug(response)) == (503, "deferred")
        assert response.headers["robots-verdict"] == "defer"
        assert response.headers["cache-control"] == "no-store"
        why, allowed = response.json(), (await service.client.get("/v1/allowed", params=parameters)).json()
        assert (why["verdict"], why["reason"], why["retry_at"]) == ("defer", "unreachable", allowed["retry_at"])
        assert why["detail"] == allowed["explanation"]["summary"]
        assert why["retry_after"] == int(response.headers["retry-after"]) > 0


async def test_a_defer_is_counted_as_a_verdict_and_not_as_an_error(store_url: str) -> None:
    async with serve(text(503)) as origin, running(store_url) as service:
        assert (
            await service.client.get(PATH, params={"url": f"{origin.url}/", "agent": "ExampleBot"})
        ).status_code == 503
        envoy = await service.client.get(
            f"{PATH}/envoy/", headers={"Host": origin.url[7:], "X-Forwarded-Proto": "http"}
        )
        assert envoy.status_code == 503
        service.app.state.services.stopping.set()
        assert (await service.client.get("/readyz")).status_code == 503
        exposition = (await service.client.get("/metrics")).text
        assert value(exposition, "robots_requests_total", status="deferred") == 2
        assert value(exposition, "robots_requests_total", status="5xx", route="/readyz") == 1
        assert value(exposition, "robots_requests_total", status="5xx") == 1


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
        assert refused.status_code == 403
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.headers["robots-rule"] == '"disallow: /private/";line=2'


async def test_envoy_must_pass_the_scheme_on(store_url: str) -> None:
    async with running(store_url, allow_unauthenticated=True) as service:
        response = await service.client.get(f"{PATH}/envoy/", headers={"Host": "h"})
        assert (response.status_code, response.json()["parameter"]) == (422, "X-Forwarded-Proto")


async def test_bytes_of_a_path_are_percent_encoded(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        headers = [(b"x-original-url", f'{origin.url}/"é\\'.encode()), (b"user-agent", b"ExampleBot")]
        assert (await request(service.app, "GET", PATH, headers=headers)).status == 403


@pytest.mark.parametrize("status", [200, 404, 503])
@pytest.mark.parametrize("action", [None, "deny", "allow"])
async def test_every_answer_is_as_documented(store_url: str, status: int, action: str | None) -> None:
    async with serve(text(status, RULES)) as origin, running(store_url) as service:
        if action is not None:
            override = {"scope": origin.url, "action": action, "reason": "They asked us to."}
            assert (await service.client.put("/v1/overrides/a", json=override)).is_success
        for url in (f"{origin.url}/", f"{origin.url}/private/", "not a URL"):
            response = await service.client.get(PATH, params={"url": url, "agent": "ExampleBot"})
            documented = DOCUMENT["paths"][PATH]["get"]["responses"][str(response.status_code)]
            if "content" not in documented:
                assert response.content == b""
                continue
            [(media, content)] = documented["content"].items()
            assert response.headers["content-type"] == media
            body: dict[str, Any] = response.json()
            schema = {**content["schema"], "components": DOCUMENT["components"]}
            jsonschema_rs.validator_for(schema).validate(body)
            assert body.get("verdict") == response.headers.get("robots-verdict")
            assert ("verdict" in body) == (response.status_code != 422)
            assert ("override" in body) == (body.get("reason") == "overridden")


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (0, "0"),
        (10 / 3, "3.334"),
        (1.0005, "1.001"),
        (0.00001, "0.001"),
        (2.3, "2.3"),
        (0.029, "0.029"),
        (10, "10"),
        (86400.0, "86400"),
        (1e16, "10000000000000000"),
        (1.7976931348623157e308, "17976931348623157" + 292 * "0"),
        (5e-324, "0.001"),
    ],
)
def test_interval_is_rounded_up(seconds: float, written: str) -> None:
    assert interval_text(seconds) == written


@pytest.mark.parametrize(("line", "interval"), [("Request-rate: 3/10s", "3.334"), ("Crawl-delay: 1.0005", "1.001")])
async def test_who_obeys_the_interval_is_not_too_fast(store_url: str, line: str, interval: str) -> None:
    async with serve(text(200, f"User-agent: *\n{line}\nDisallow:\n")) as origin, running(store_url) as service:
        parameters = {"url": f"{origin.url}/", "agent": "ExampleBot"}
        response = await service.client.get(PATH, params=parameters)
        assert response.headers["robots-interval"] == interval
        allowed = await service.client.get("/v1/allowed", params=parameters)
        assert float(interval) >= allowed.json()["rate"]["interval"]


async def test_retry_after_is_rounded_up(store_url: str) -> None:
    async with serve(text(503)) as origin, running(store_url) as service:
        parameters = {"url": f"{origin.url}/", "agent": "ExampleBot"}
        for _ in range(3):
            service.now += 0.4
            response = await service.client.get(PATH, params=parameters)
            decision = (await service.client.get("/v1/allowed", params=parameters)).json()
            again = service.now + int(response.headers["retry-after"])
            assert instant(again) >= decision["retry_at"]
