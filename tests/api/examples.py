"""The examples of the OpenAPI document, from a running service: `python -m tests.api.examples` writes them."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from app.cache.freshness import KEEP, Snapshot
from app.cache.redis_snapshots import RedisSnapshots
from app.history.redis_history import RedisHistory
from app.store.connect import connect
from app.store.embedded import serve
from app.store.guarded_client import GuardedClient
from robots_core.origin import read_target
from robots_core.robots.access import Successful
from tests.api.openapi import EXAMPLES
from tests.api.problem_examples import problems
from tests.api.service import START, running

ROBOTS = """User-agent: SeznamBot
Disallow: /archive/  # moved
Request-rate: 1/60 1800-1900

User-agent: *
Allow: /
Crawl-delay: 2

Sitemap: https://www.example.com/sitemap.xml
"""
BEFORE = ROBOTS.replace("/archive/  # moved", "/old/")
URL = "https://www.example.com/archive/a?b=1"
OTHER = "https://www.example.com/"

ASKED: Mapping[str, Mapping[str, Any]] = {
    "GET /v1/allowed": {"query": {"url": URL, "agent": ["SeznamBot"]}},
    "POST /v1/allowed": {"body": {"items": [{"url": URL, "agent": "SeznamBot"}, {"url": "nonsense", "agent": "A"}]}},
    "POST /v1/test": {
        "body": {
            "robots": "User-agent: *\nDisallow: /private/\n",
            "urls": ["https://www.example.com/private/"],
            "agents": ["ExampleBot"],
            "at": "2026-11-21T18:30:00Z",
            "outcome": {"status": 503, "for": "3d"},
        }
    },
    "GET /v1/robots": {"query": {"url": OTHER, "agent": ["SeznamBot"]}},
    "POST /v1/indexing": {
        "body": {
            "agents": ["Googlebot"],
            "headers": ["max-snippet: 20", "otherbot: none"],
            "metas": [{"name": "robots", "content": "noindex, max-snippet:50"}],
        }
    },
    "GET /v1/robots/history": {"query": {"url": OTHER}},
    "GET /v1/robots/diff": {"query": {"url": OTHER}},
    "PUT /v1/overrides/{id}": {
        "path": {"id": "shop-move"},
        "body": {
            "scope": "shop.example",
            "action": "deny",
            "reason": "They asked us to stay away until the move is over.",
            "expires_at": "2027-01-01T00:00:00Z",
        },
    },
    "GET /v1/overrides": {"query": {"url": "https://www.shop.example/"}},
    "GET /v1/overrides/{id}": {"path": {"id": "shop-move"}},
    "GET /v1/overrides/audit": {"query": {"limit": 10}},
    "GET /healthz": {},
    "GET /readyz": {},
}
"""The requests, in order. Refreshes and permits have no examples, since their answers depend on the time."""


async def examples(store_url: str) -> dict[str, dict[str, Any]]:
    """The requests with their answers, and an answer for each type of problem."""
    await _hold(store_url)
    answers = {}
    async with running(store_url) as service:
        for operation, request in ASKED.items():
            method, path = operation.split()
            path = path.format_map(request.get("path", {}))
            response = await service.client.request(method, path, params=request.get("query"), json=request.get("body"))
            assert response.is_success, response.text
            answers[operation] = {**request, "answer": response.json()}
        return {"operations": answers, "problems": await problems(service, store_url)}


async def _hold(store_url: str) -> None:
    client = connect(store_url)
    calls = GuardedClient(client, monotonic=asyncio.get_running_loop().time)
    origin = read_target(URL).origin
    found, before = (Successful(200, text.encode(), content_type="text/plain") for text in (ROBOTS, BEFORE))
    history = RedisHistory(calls, lambda: START, lost=lambda: None)
    history.note(origin, Snapshot(before, START - 5 * 86_400))
    await history.aclose()
    await RedisSnapshots(calls).put(origin, Snapshot(found, START - 5321), KEEP)
    await calls.aclose()
    await client.aclose()


def main() -> None:
    """Write the file that the OpenAPI document is built from."""
    with serve(None) as store_url:
        text = json.dumps(asyncio.run(examples(store_url)), indent=2, ensure_ascii=False)
    EXAMPLES.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
