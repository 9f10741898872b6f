"""Errors are application/problem+json (RFC 9457) and name the invalid value."""

import json
from typing import Any

import pytest

from app.api.middleware.body_limit import REQUEST_BODY_LIMIT
from app.api.problems import QUOTED
from tests.api.service import Service, running

pytestmark = pytest.mark.usefixtures("store_client")

TRIAL = {"robots": "", "urls": ["http://h/"], "agents": ["a"]}


JSON = {"Content-Type": "application/json"}


async def problem(service: Service, method: str, path: str, status: int, **request: Any) -> dict[str, Any]:
    response = await service.client.request(method, path, **request)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert body["status"] == status
    assert body["type"].startswith("urn:robots-decisions:problem:")
    assert body["title"]
    return body


@pytest.mark.parametrize(
    ("query", "parameter", "named"),
    [
        ({"url": "ftp://h/", "agent": "a"}, "url", "ftp://h/"),
        ({"url": "http://[::1", "agent": "a"}, "url", "http://[::1"),
        ({"url": "http://h/", "agent": "/"}, "agent", "/"),
        ({"url": "http://h/", "agent": "a", "dialect": "bing"}, "dialect", "bing"),
        ({"url": "http://h/", "agent": "a", "at": "yesterday"}, "at", "yesterday"),
        ({"url": "http://h/", "agent": "a", "at": "2026-02-30T00:00:00Z"}, "at", "2026-02-30T00:00:00Z"),
        ({"url": "http://h/", "agent": "a", "at": "2026-02-20T00:00:00"}, "at", "2026-02-20T00:00:00"),
        ({"url": "http://h/", "agent": "a", "wait": "long"}, "wait", "long"),
        ({"url": "http://h/", "agent": "a", "max_age": "-1"}, "max_age", "-1"),
        ({"agent": "a"}, "url", None),
        ({"url": "http://h/"}, "agent", None),
    ],
)
async def test_invalid_parameter_is_named(
    store_url: str, query: dict[str, str], parameter: str, named: str | None
) -> None:
    async with running(store_url) as service:
        body = await problem(service, "GET", "/v1/allowed", 422, params=query)
        assert (body["parameter"], body["value"]) == (parameter, named)
        assert parameter in body["detail"] or (named is not None and named in body["detail"])


@pytest.mark.parametrize(
    ("change", "parameter"),
    [
        ({"urls": ["http://h/", "nonsense"]}, "urls[1]"),
        ({"agents": ["a", "("]}, "agents[1]"),
        ({"dialects": ["google", "x"]}, "dialects[1]"),
        ({"urls": []}, "urls"),
        ({"urls": [1]}, "urls[0]"),
        ({"at": "noon"}, "at"),
        ({"robots": None, "robots_base64": "%%%"}, "robots_base64"),
        ({"robot": ""}, "robot"),
        ({"urls": ["http://\ud800/"]}, "urls[0]"),
    ],
)
async def test_invalid_test_is_named(store_url: str, change: dict[str, Any], parameter: str) -> None:
    async with running(store_url) as service:
        content = json.dumps({**TRIAL, **change})
        headers = {"content-type": "application/json"}
        body = await problem(service, "POST", "/v1/test", 422, content=content, headers=headers)
        assert body["parameter"] == parameter


@pytest.mark.parametrize("change", [{"robots": None}, {"robots_base64": ""}, {"robots": "", "robots_base64": "eA=="}])
async def test_test_with_two_files_is_refused(store_url: str, change: dict[str, Any]) -> None:
    async with running(store_url) as service:
        await problem(service, "POST", "/v1/test", 422, json={**TRIAL, **change})


async def test_rows_of_a_test_are_bounded(store_url: str) -> None:
    async with running(store_url) as service:
        trial = {**TRIAL, "urls": ["http://h/"] * 5000, "agents": ["a", "b", "c"]}
        body = await problem(service, "POST", "/v1/test", 422, json=trial)
        assert "5000 URLs" in body["detail"]


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff", b"null", b""])
async def test_body_that_is_not_a_test_is_refused(store_url: str, content: bytes) -> None:
    async with running(store_url) as service:
        headers = {"content-type": "application/json"}
        await problem(service, "POST", "/v1/test", 422, content=content, headers=headers)


async def test_body_is_read_up_to_its_limit(store_url: str) -> None:
    async def endless() -> Any:
        for _ in range(REQUEST_BODY_LIMIT // 65_536 + 2):
            yield b" " * 65_536

    async with running(store_url) as service:
        await problem(service, "POST", "/v1/test", 413, content=b" " * (REQUEST_BODY_LIMIT + 1))
        await problem(service, "POST", "/v1/test", 413, content=endless())


async def test_other_routes_and_methods_are_problems_too(store_url: str) -> None:
    async with running(store_url) as service:
        await problem(service, "GET", "/nowhere", 404)
        await problem(service, "DELETE", "/v1/allowed", 405)


async def test_quoted_value_is_bounded(store_url: str) -> None:
    async with running(store_url) as service:
        body = await problem(service, "GET", "/v1/allowed", 422, params={"url": "x" * 20_000, "agent": "a"})
        assert len(body["value"]) < 300
        assert len(body["detail"]) < 500
        number = "9" * 4000
        body = await problem(service, "POST", "/v1/test", 422, content=f'{{"robots": {number}}}', headers=JSON)
        assert body["value"] == number[:QUOTED] + "…"
