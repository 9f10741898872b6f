"""The examples of problems in the OpenAPI document, from a running service that is made to answer each of them."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any
from unittest.mock import AsyncMock, Mock, patch

from app.api.middleware.body_limit import REQUEST_BODY_LIMIT
from app.api.problem_types import PROBLEMS
from app.api.services import Services
from app.auth.keys import new_key
from app.auth.quotas import Quotas
from app.loop.admission import Overloaded
from app.main.server.connection import HEAD_LIMIT
from app.overrides import redis_overrides
from app.store.guarded_client import StoreDown
from robots_core.robots.access import Busy
from tests.api.raw_client import connect, serve_app
from tests.api.service import Service, running

PAGE = {"url": "https://www.example.com/", "agent": "ExampleBot"}
CLOSED = {"url": "https://www.example.com/archive/", "agent": "SeznamBot"}
TEST: dict[str, Any] = {"urls": ["https://www.example.com/"], "agents": ["ExampleBot"], "robots": ""}
COPY = {"status": 200, "observed_at": "2026-11-21T18:30:00Z", "robots": ""}
TAKEN = "/v1/robots?url=https://www.example.com/"
OVERRIDE = {"scope": "https://www.example.com", "action": "allow", "reason": "a test"}
LONG_OUTCOME = {"status": 503, "for": "3 moons"}

ASKED: Mapping[str, tuple[str, str, Any]] = {
    "bad-request": ("GET", "/v1/allowed", {**PAGE, "wait": "61"}),
    "bad-url": ("GET", "/v1/allowed", {**PAGE, "url": "example.com"}),
    "bad-urls": ("POST", "/v1/test", {**TEST, "urls": ["example.com"]}),
    "bad-agent": ("GET", "/v1/allowed", {**PAGE, "agent": "()"}),
    "bad-agents": ("POST", "/v1/test", {**TEST, "agents": ["()"]}),
    "bad-dialect": ("GET", "/v1/allowed", {**PAGE, "dialect": "latin"}),
    "bad-dialects": ("POST", "/v1/test", {**TEST, "dialects": ["latin"]}),
    "bad-category": ("GET", "/v1/agents", {"category": "spiders"}),
    "bad-profile": ("GET", "/v1/robots", {"url": PAGE["url"], "profile": "acme"}),
    "bad-at": ("GET", "/v1/allowed", {**PAGE, "at": "noon"}),
    "bad-as_of": ("GET", "/v1/allowed", {**PAGE, "as_of": "noon"}),
    "bad-from": ("GET", "/v1/robots/diff", {"url": PAGE["url"], "from": "noon"}),
    "bad-to": ("GET", "/v1/robots/diff", {"url": PAGE["url"], "from": "00000000", "to": "noon"}),
    "bad-after": ("GET", "/v1/changes", {"after": "noon"}),
    "bad-version": ("GET", "/v1/robots/history", {"url": PAGE["url"], "as": "text", "version": "noon"}),
    "bad-item": ("POST", "/v1/permits", "https://www.example.com/"),
    "bad-robots": ("POST", "/v1/test", {**TEST, "robots_base64": ""}),
    "bad-fetch": ("POST", "/v1/indexing", {"agents": ["ExampleBot"], "fetch": True}),
    "bad-robots_base64": ("POST", "/v1/test", {**TEST, "robots": None, "robots_base64": "?"}),
    "bad-status": ("PUT", TAKEN, {**COPY, "status": 301}),
    "bad-observed_at": ("PUT", TAKEN, {**COPY, "observed_at": "noon"}),
    "bad-headers": ("PUT", TAKEN, {**COPY, "headers": [["Content-Type", "€"]]}),
    "bad-final_url": ("PUT", TAKEN, {**COPY, "final_url": "example.com"}),
    "bad-outcome": ("POST", "/v1/test", {**TEST, "outcome": LONG_OUTCOME}),
    "bad-permit": ("POST", "/v1/permits/x/outcome", {"status": 200}),
    "bad-override": ("PUT", "/v1/overrides/a", {**OVERRIDE, "scope": "the web"}),
    "bad-expires_at": ("PUT", "/v1/overrides/a", {**OVERRIDE, "expires_at": "noon"}),
    "not-found": ("GET", "/v1/nothing", {}),
    "no-file": ("GET", "/v1/robots", {"url": "https://gone.example/", "as": "text"}),
    "no-version": ("GET", "/v1/robots/history", {"url": PAGE["url"], "version": "00000000"}),
    "changes-removed": ("GET", "/v1/changes", {"after": "1790000000000-0"}),
    "method-not-allowed": ("PATCH", "/v1/allowed", {}),
    "too-many-rows": ("POST", "/v1/test", {**TEST, "urls": TEST["urls"] * 200, "agents": ["ExampleBot"] * 100}),
    "too-many-origins": (
        "POST",
        "/v1/test",
        {**TEST, "urls": [f"https://{number}.example/" for number in range(9)], "outcome": {"status": 503}},
    ),
    "too-many-items": ("POST", "/v1/allowed", {"items": [PAGE] * 1001}),
    "disallowed": ("GET", "/v1/check", CLOSED),
    "deferred": ("GET", "/v1/check", {**PAGE, "url": "https://gone.example/"}),
}
"""The request for each problem: method, path, and query or body."""

KEYED: Mapping[str, tuple[str, str]] = {
    "no-key": ("/v1/agents", ""),
    "unknown-key": ("/v1/agents", "nonsense"),
    "forbidden": ("/v1/overrides", "crawler"),
    "quota-exceeded": ("/v1/agents", "crawler"),
}
"""The path, and whose key is sent, for each problem of a service with API keys."""

_SIGNING_KEY = '{"kty": "OKP", "crv": "Ed25519", "d": "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}'  # RFC 8037, A.1
_AGENTS = """[agents.AcmeBot]
profile = "acme"
[profiles.acme]
user_agent = "AcmeBot/2.0"
signature_agent = "https://bot.example.com"
private_key = {0!r}
"""

HEADS: Mapping[str, bytes] = {
    "bad-http": b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
    "head-too-large": b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * HEAD_LIMIT + b"\r\n\r\n",
}
"""What is sent for each problem of the server, before the application is called."""


async def problems(service: Service, store_url: str) -> dict[str, dict[str, Any]]:
    """The answer for each problem type. The service knows the files of `examples`."""
    found = {slug: await _asked(service, *request) for slug, request in ASKED.items()}
    found |= {slug: problem async for slug, problem in _about_bodies_and_hosts(service)}
    found |= {slug: problem async for slug, problem in _failing(service)}
    async with serve_app(service.app) as (address, _):
        for slug, head in HEADS.items():
            async with connect(address) as caller:
                await caller.send(head)
                found[slug] = json.loads((await caller.end()).partition(b"\r\n\r\n")[2])
    found |= {slug: problem async for slug, problem in _about_keys(store_url)}
    found["override-of-file"] = await _of_file(store_url)
    return {slug: found[slug] for slug in PROBLEMS}


async def _asked(service: Service, method: str, path: str, sent: Any) -> dict[str, Any]:
    asked: Any = {"params": sent} if method == "GET" else {"json": sent}
    problem: dict[str, Any] = (await service.client.request(method, path, **asked)).json()
    return problem


async def _about_bodies_and_hosts(service: Service) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    async def late() -> AsyncIterator[bytes]:
        raise TimeoutError
        yield b""

    text = {"Content-Type": "text/plain"}
    requests: dict[str, dict[str, Any]] = {
        "slow-request": {"content": late()},
        "too-large": {"content": b" " * (REQUEST_BODY_LIMIT + 1)},
        "unsupported-media-type": {"content": b"{}", "headers": text},
        "wrong-host": {"headers": {"Host": "www.example.com"}},
    }
    for slug, request in requests.items():
        yield slug, (await service.client.post("/v1/test", **request)).json()


async def _failing(service: Service) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Problems of a service in which something fails, or is changed by others at the same time."""
    services: Services = service.app.state.services
    service.client.headers["X-Request-ID"] = "0123456789ab-1"
    for slug, error in {"busy": Busy(10), "overloaded": Overloaded(), "internal-server-error": OSError()}.items():
        with patch.object(services.decider, "decide", side_effect=error):
            yield slug, await _asked(service, "GET", "/v1/allowed", PAGE)
    for slug, reply in {"edit-conflict": b"changed", "too-many-overrides": b"many"}.items():
        with patch.object(redis_overrides, "_CHANGE", Mock(run=AsyncMock(return_value=reply))):
            yield slug, await _asked(service, "PUT", "/v1/overrides/a", OVERRIDE)
    failed = StoreDown("the store failed less than 1 s ago and is not called")
    with patch.object(services.overrides, "audit", side_effect=failed):
        yield "store-down", await _asked(service, "GET", "/v1/overrides/audit", {})
    services.stopping.set()
    yield "not-ready", await _asked(service, "GET", "/readyz", {})
    services.stopping.clear()


async def _of_file(store_url: str) -> dict[str, Any]:
    with NamedTemporaryFile("w") as file:
        print(json.dumps({"id": "a", **OVERRIDE}), file=file, flush=True)
        async with running(store_url, overrides_file=Path(file.name)) as service:
            service.client.headers["X-Request-ID"] = "0123456789ab-1"
            return await _asked(service, "PUT", "/v1/overrides/a", OVERRIDE)


async def _about_keys(store_url: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    key, lines = new_key("crawler")
    sent = {"": "", "nonsense": "nonsense", "crawler": key}
    # Which no other user may read.
    with NamedTemporaryFile("w") as file, NamedTemporaryFile("w") as private, NamedTemporaryFile("w") as agents:
        print(_SIGNING_KEY, file=private, flush=True)
        print(_AGENTS.format(private.name), file=agents, flush=True)
        print(lines, "limit = {requests = 60, seconds = 60, burst = 10}", file=file, flush=True)
        async with running(store_url, api_keys_file=Path(file.name), agents_file=Path(agents.name)) as service:
            body = {"url": PAGE["url"], "agent": "AcmeBot", "sign": True}
            response = await service.client.post("/v1/permits", json=body, headers={"X-API-Key": key})
            yield "may-not-sign", response.json()
            for slug, (path, whose) in KEYED.items():
                with patch.object(Quotas, "debt", return_value=12.0 if slug == "quota-exceeded" else 0.0):
                    headers = {"X-API-Key": sent[whose]} if whose else {}
                    yield slug, (await service.client.get(path, headers=headers)).json()
