"""Request ids, and one access log line per request that reveals nothing about the question."""

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from app.api.middleware.access_log import AccessLog
from app.api.middleware.body_limit import REQUEST_BODY_LIMIT
from app.auth.keys import new_key
from app.main.service import create
from app.main.settings import Settings
from app.observability.logs import JsonFormatter
from app.observability.metrics import Metrics, ServiceState
from tests.api.service import running


class Lines:
    """The log lines of `app`, as objects."""

    def __init__(self, stream: io.StringIO) -> None:
        self._stream = stream

    def of(self, logger: str) -> list[dict[str, Any]]:
        found = map(json.loads, self._stream.getvalue().splitlines())
        return [line for line in found if line["logger"] == logger]


@pytest.fixture
def lines() -> Iterator[Lines]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("app")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield Lines(stream)
    logger.removeHandler(handler)
    logger.setLevel(level)


async def broken(_request: Request) -> Response:
    raise LookupError("nobody foresaw this")


async def broken_halfway(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    raise LookupError("nobody foresaw this")


@pytest.mark.usefixtures("store_client")
@pytest.mark.parametrize(
    ("method", "path", "content", "status"),
    [
        ("GET", "/healthz", b"", 200),
        ("GET", "/docs", b"", 200),
        ("GET", "/nowhere", b"", 404),
        ("PUT", "/healthz", b"", 405),
        ("GET", "/v1/allowed?url=ftp://h/&agent=a", b"", 422),
        ("POST", "/v1/test", b" " * (REQUEST_BODY_LIMIT + 1), 413),
    ],
)
async def test_response_has_the_callers_request_id(
    store_url: str, method: str, path: str, content: bytes, status: int
) -> None:
    async with running(store_url) as service:
        headers = {"X-Request-ID": "Caller-1_2.3"}
        response = await service.client.request(method, path, content=content, headers=headers)
        assert response.status_code == status
        assert response.headers.get_list("x-request-id") == ["Caller-1_2.3"]


@pytest.mark.usefixtures("store_client")
@pytest.mark.parametrize("given", [None, "", "a b", 'a"', "é", "x" * 129, "a\x0b", "a/b"])
async def test_missing_or_malformed_request_id_is_replaced(store_url: str, given: str | None) -> None:
    async with running(store_url) as service:
        headers = [] if given is None else [(b"X-Request-ID", given.encode())]
        made = {(await service.client.get("/healthz", headers=headers)).headers["x-request-id"] for _ in range(3)}
        assert len(made) == 3
        assert given not in made


@pytest.mark.usefixtures("store_client")
async def test_access_log_has_neither_url_nor_agent(store_url: str, lines: Lines) -> None:
    async with running(store_url) as service:
        query = {"url": "http://private.example/page", "agent": "PrivateBot"}
        response = await service.client.get("/v1/allowed", params=query, headers={"X-Request-ID": "one"})
        assert response.status_code == 200
        [line] = lines.of("app.access")
        assert (line["request_id"], line["level"]) == ("one", "info")
        assert (line["method"], line["path"], line["status"]) == ("GET", "/v1/allowed", 200)
        assert line["duration_ms"] >= 0
        assert "private" not in json.dumps(line).lower()


@pytest.mark.usefixtures("store_client")
async def test_access_log_has_the_route_but_no_permit(store_url: str, lines: Lines, tmp_path: Path) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text(new_key("crawler-7")[1])
    path = "/v1/permits/W1siaHR0cDovL3ByaXZhdGUuZXhhbXBsZSJdXQ.c2VjcmV0/outcome"
    async with running(store_url) as service:
        await service.client.post(path, json={"released": True})
        await service.client.post(path + "/more", json={})
        await service.client.get("/https://private.example/page")
    async with running(store_url, api_keys_file=keys) as service:
        await service.client.post(path, json={"released": True})
    entries = lines.of("app.access")
    assert [(line["path"], line["status"]) for line in entries] == [
        ("/v1/permits/{permit}/outcome", 422),
        ("/v1/permits/…", 404),
        ("/https://…", 404),
        ("/v1/permits/…", 401),
    ]


@pytest.mark.usefixtures("store_client")
async def test_the_access_log_names_the_key_and_never_shows_it(store_url: str, lines: Lines, tmp_path: Path) -> None:
    key, admitted = new_key("crawler-7")
    keys = tmp_path / "keys.toml"
    keys.write_text(admitted)
    async with running(store_url, api_keys_file=keys) as service:
        for headers in ({"X-API-Key": key}, {}, {"X-API-Key": key[:-1]}):
            await service.client.get("/v1/allowed?url=http://10.0.0.1/&agent=a", headers=headers)
        await service.client.get("/openapi.json")
    entries = lines.of("app.access")
    assert [line["status"] for line in entries] == [200, 401, 401, 200]
    assert entries[0]["key"] == "crawler-7"
    assert not any("key" in line for line in entries[1:])
    assert key.partition(".")[2][:-1] not in json.dumps(entries)


@pytest.mark.usefixtures("store_client")
async def test_access_log_can_be_turned_off(store_url: str, lines: Lines) -> None:
    async with running(store_url, access_log=False) as service:
        await service.client.get("/v1/agents")
        assert lines.of("app.access") == []


@pytest.mark.usefixtures("store_client")
async def test_probes_and_scrapes_are_logged_only_if_they_fail(store_url: str, lines: Lines) -> None:
    async with running(store_url) as service:
        for path in ("/healthz", "/readyz", "/metrics"):
            assert (await service.client.get(path)).status_code == 200
            assert (await service.client.head(path)).status_code == 200
        assert lines.of("app.access") == []
        service.app.state.services.stopping.set()
        await service.client.get("/readyz")
        await service.client.put("/healthz")
    assert [(line["path"], line["status"]) for line in lines.of("app.access")] == [("/readyz", 503), ("/healthz", 405)]


@pytest.mark.usefixtures("store_client")
async def test_access_log_has_the_clients_address_unless_it_is_not_wanted(store_url: str, lines: Lines) -> None:
    for wanted in (True, False):
        async with running(store_url, log_client=wanted) as service:
            await service.client.get("/v1/agents")
    first, second = lines.of("app.access")
    assert first["client"] == "127.0.0.1"
    assert "client" not in second


TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.mark.usefixtures("store_client")
@pytest.mark.parametrize(
    ("given", "logged"),
    [
        (f"00-{TRACE}-b7ad6b7169203331-01", TRACE),
        (f"cc-{TRACE}-b7ad6b7169203331-01-later", TRACE),
        (f"ff-{TRACE}-b7ad6b7169203331-01", None),
        (f"00-{'0' * 32}-b7ad6b7169203331-01", None),
        (f"00-{TRACE.upper()}-b7ad6b7169203331-01", None),
        (f"00-{TRACE}-b7ad6b7169203331", None),
        (f"00-{TRACE}-b7ad6b7169203331-01 {TRACE}", None),
        ("", None),
    ],
)
async def test_lines_name_the_trace_of_the_caller(store_url: str, lines: Lines, given: str, logged: str | None) -> None:
    async with running(store_url) as service:
        headers = {"X-Request-ID": "one", "traceparent": given}
        await service.client.get("/v1/agents", headers=headers)
        await service.client.get("/v1/agents")
    first, second = lines.of("app.access")
    assert (first["request_id"], first.get("trace_id")) == ("one", logged)
    assert "trace_id" not in second


@pytest.mark.usefixtures("store_client")
async def test_access_log_path_is_one_line_and_bounded(store_url: str, lines: Lines) -> None:
    async with running(store_url) as service:
        await service.client.get("/a%0a%7b%7d" + "x" * 5000)
    [line] = lines.of("app.access")
    assert line["path"].startswith("/a\n{}x")
    assert len(line["path"]) < 250


async def test_an_unexpected_error_is_logged_once_with_its_request_id(lines: Lines, tmp_path: Path) -> None:
    app = create(Settings(redis_url=f"unix://{tmp_path}/none"))
    app.add_route("/broken", broken)
    # This transport raises the application's exceptions, so the server has nothing to log again.
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        response = await client.get("/broken", headers={"X-Request-ID": "two"})
    assert response.status_code == 500
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["x-request-id"] == "two"
    body = response.json()
    assert (body["type"], body["request_id"]) == ("urn:robots-decisions:problem:internal-server-error", "two")
    assert "foresaw" not in response.text
    [error] = lines.of("app.api.middleware.access_log")
    assert (error["level"], error["request_id"]) == ("error", "two")
    assert error["exception"].startswith("Traceback")
    assert error["exception"].endswith("LookupError: nobody foresaw this")
    assert [line["status"] for line in lines.of("app.access")] == [500]


async def test_response_that_fails_halfway_is_logged_and_truncated(lines: Lines) -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError("nothing is read")

    journal = AccessLog(
        broken_halfway, Metrics(lambda: ServiceState(False, True, 0, 0, {})), lambda: 0.0, access_log=True
    )
    await journal({"type": "http", "method": "GET", "path": "/broken", "headers": []}, receive, send)
    assert [message["type"] for message in sent] == ["http.response.start"]
    assert len(lines.of("app.api.middleware.access_log")) == 1
    assert [line["status"] for line in lines.of("app.access")] == [200]
