"""Every route that may fetch says for whom, so that the queue of fetches is fair among callers."""

import json
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from app.fetch.queue import FetchQueue
from tests.api.service import running
from tests.origins import serve, text

pytestmark = pytest.mark.usefixtures("store_client")

KEY_ID = "operator"
"""Of the token that the client of a service without API keys sends."""


def ways(origin: str) -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Requests that need the origin's file, by name: method, path, and arguments of httpx."""
    item: dict[str, Any] = {"url": f"{origin}/page", "agent": "a"}
    query: dict[str, Any] = {"params": item}
    return {
        "allowed": ("GET", "/v1/allowed", query),
        "allowed again": ("GET", "/v1/allowed", {**query, "headers": {"If-None-Match": '"x"'}}),
        "check": ("GET", "/v1/check", query),
        "batch": ("POST", "/v1/allowed", {"json": {"items": [item]}}),
        "batch, all members": ("POST", "/v1/allowed", {"json": {"items": [{**item, "wait": 5}]}}),
        "stream": (
            "POST",
            "/v1/allowed",
            {"content": json.dumps(item), "headers": {"Content-Type": "application/x-ndjson"}},
        ),
        "permit": ("POST", "/v1/permits", {"json": item}),
        "permits": ("POST", "/v1/permits/batch", {"json": {"items": [item]}}),
        "indexing": ("POST", "/v1/indexing", {"json": {"url": item["url"], "agents": ["a"], "headers": []}}),
        "robots": ("GET", "/v1/robots", {"params": {"url": origin}}),
        "sitemaps": ("POST", "/v1/robots/sitemaps", {"params": {"url": origin}}),
        "refresh": ("POST", "/v1/robots/refresh", {"params": {"url": origin}}),
    }


@pytest.mark.parametrize("way", ways(""))
async def test_fetches_are_for_the_caller(way: str, store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    callers: list[str] = []
    slot = FetchQueue.slot

    def noted(self: FetchQueue, caller: str = "") -> AbstractAsyncContextManager[float]:
        callers.append(caller)
        return slot(self, caller)

    monkeypatch.setattr(FetchQueue, "slot", noted)
    async with serve(text(200, "User-agent: *\nDisallow: /private/\n")) as origin, running(store_url) as service:
        method, path, arguments = ways(origin.url)[way]
        response = await service.client.request(method, path, **arguments)
        assert response.is_success, response.text
    assert callers == [KEY_ID]
