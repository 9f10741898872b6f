"""No request leaves a reference cycle: it would hold files in memory until a full garbage collection."""

import asyncio
import gc
import json
from collections.abc import Sequence
from types import FrameType
from typing import Any

import pytest

from app.fetch.guard import Address
from robots_core.robots.access import Busy
from tests.api.service import Service, running
from tests.origins import serve, text

FILE = "User-agent: *\nDisallow: /private\nCrawl-delay: 1\n"
BAD = [
    {"url": "{site}/", "agent": "***"},
    {"url": "ftp://a.test/", "agent": "a"},
    {"url": "{site}/", "agent": "a", "dialect": "none"},
    {"url": "{site}/", "agent": "a", "as_of": "1999-01-01T00:00:00Z"},
    {"url": 1},
    [],
]
ITEMS = [{"url": "{site}/", "agent": "ExampleBot"}, *BAD, {"url": "{site}/private", "agent": "ExampleBot"}]
LINES = "\n".join([*map(json.dumps, ITEMS), "no JSON"])


def ours(found: object) -> bool:
    if isinstance(found, FrameType):
        return "/app/" in found.f_code.co_filename or "/robots_core/" in found.f_code.co_filename
    return type(found).__module__.startswith(("app.", "robots_core."))


def named(found: object) -> str:
    """The type of an object, or the function of a frame."""
    if isinstance(found, FrameType):
        return f"{found.f_code.co_filename} {found.f_code.co_name}"
    return type(found).__name__


async def check(service: Service, garbage: list[object], method: str, path: str, **request: Any) -> None:
    """Make the request until scripts are loaded and what is cached is cached, then once more."""
    for _ in range(3):
        gc.collect()
        garbage.clear()
        response = await service.client.request(method, path, **request)
        assert response.status_code < 500 or response.status_code == 503
        await asyncio.sleep(0)
    gc.collect()
    assert [named(found) for found in garbage if ours(found)] == []


@pytest.mark.parametrize(
    ("path", "body", "kind"),
    [
        ("/v1/allowed", json.dumps({"items": ITEMS}), "application/json"),
        ("/v1/permits/batch", json.dumps({"items": ITEMS}), "application/json"),
        ("/v1/allowed", LINES, "application/x-ndjson"),
    ],
    ids=["batch", "permits", "lines"],
)
async def test_bad_items_leave_no_cycle(store_url: str, garbage: list[object], path: str, body: str, kind: str) -> None:
    async with serve(text(200, FILE)) as origin, running(store_url) as service:
        content = body.replace("{site}", origin.url)
        await check(service, garbage, "POST", path, content=content, headers={"Content-Type": kind})


@pytest.mark.parametrize("path", ["/v1/allowed", "/v1/check", "/v1/robots", "/v1/robots/history", "/v1/overrides"])
async def test_requests_leave_no_cycle(store_url: str, garbage: list[object], path: str) -> None:
    async with serve(text(200, FILE)) as origin, running(store_url) as service:
        site = {"url": f"{origin.url}/", "agent": "ExampleBot"}
        for more in (
            {},
            {"agent": "***"},
            {"url": "ftp://a.test/"},
            {"dialect": "none"},
            {"as_of": "1999-01-01T00:00:00Z"},
            {"explain": "true"},
        ):
            await check(service, garbage, "GET", path, params={**site, **more})


async def test_a_store_that_is_down_leaves_no_cycle(garbage: list[object]) -> None:
    async with serve(text(200, FILE)) as origin, running("redis://127.0.0.1:1") as service:
        site = {"url": f"{origin.url}/", "agent": "ExampleBot"}
        for path in ("/v1/allowed", "/v1/robots/history", "/v1/changes"):
            await check(service, garbage, "GET", path, params=site)
        past = {**site, "as_of": "1999-01-01T00:00:00Z"}
        await check(service, garbage, "POST", "/v1/allowed", json={"items": [past]})


async def test_busy_answers_leave_no_cycle(store_url: str, garbage: list[object]) -> None:
    async def busy(_name: str) -> Sequence[Address]:
        raise Busy(1)

    async with running(store_url, resolver=busy) as service:
        site = {"url": "http://a.test/", "agent": "ExampleBot"}
        for path in ("/v1/allowed", "/v1/permits/batch"):
            await check(service, garbage, "POST", path, json={"items": [site]})
        await check(service, garbage, "GET", "/v1/allowed", params=site)
