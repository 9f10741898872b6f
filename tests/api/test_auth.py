"""API keys, scopes and quotas; without keys, open access, and operators only on this machine."""

import logging
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI, Request
from fastapi.routing import APIRoute
from redis.asyncio import Redis

from app.api import problems
from app.api.caller import caller_of
from app.api.middleware import auth
from app.api.middleware.auth import OPEN, KeyCheck, admin
from app.auth.keys import Scope, load_keys, new_key
from app.auth.quotas import Quotas
from app.identity.well_known import is_public
from app.main.application import ROUTES
from app.main.service import WITHOUT_KEYS, create
from app.main.settings import Settings
from app.observability.metrics import Metrics, ServiceState
from app.store.guarded_client import GuardedClient
from tests.api.service import Service, counted, running, slug
from tests.faults.until import until, until_so
from tests.operator_token import TOKEN_FILE
from tests.origins import serve, text

pytestmark = pytest.mark.usefixtures("store_client")

READER, READER_LINES = new_key("reader")
ADMIN, ADMIN_LINES = new_key("ops-1", Scope.ADMIN)
LIMITED, LIMITED_LINES = new_key("limited")
STRANGER, _ = new_key("reader")
QUESTION = "/v1/allowed?url=http://10.0.0.1/&agent=a"
OVERRIDE = {"scope": "example.com", "action": "deny", "reason": "because"}


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    file = tmp_path / "keys.toml"
    file.write_text(READER_LINES + ADMIN_LINES + LIMITED_LINES + "limit = {requests = 3, seconds = 3600}\n")
    return file


@asynccontextmanager
async def keyed(store_url: str, keys: Path) -> AsyncIterator[Service]:
    async with running(store_url, api_keys_file=keys) as service:
        yield service


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


async def ask(service: Service, headers: dict[str, str] | None = None, path: str = QUESTION) -> httpx.Response:
    return await service.client.get(path, headers=headers or {})


async def order(service: Service, headers: dict[str, str] | None = None, id_: str = "one") -> httpx.Response:
    return await service.client.put(f"/v1/overrides/{id_}", json=OVERRIDE, headers=headers or {})


# With keys.


async def test_a_key_is_read_from_authorization_or_x_api_key(store_url: str, keys: Path) -> None:
    async with keyed(store_url, keys) as service:
        ways = [
            bearer(READER),
            {"Authorization": f"bearer  {READER}"},
            {"X-API-Key": READER},
            {"Authorization": "Basic YTpi", "X-API-Key": READER},
        ]
        for headers in ways:
            assert (await ask(service, headers)).status_code == 200


async def test_without_a_key_the_error_says_how_to_send_one(store_url: str, keys: Path) -> None:
    async with keyed(store_url, keys) as service:
        response = await ask(service)
        assert (response.status_code, slug(response)) == (401, "no-key")
        assert response.headers["www-authenticate"] == 'Bearer realm="robots-decisions"'
        assert response.headers["x-request-id"]
        assert await counted(service, "robots_requests_rejected_total", reason="no-key") == 1


@pytest.mark.parametrize(
    "shown",
    [STRANGER, "reader", "reader.", "", READER[:-1], READER + " ", READER.replace("reader", "ops-1"), "x" * 9999],
    ids=str.__len__,  # keys are new in every process, and names of tests are not
)
async def test_an_unknown_key_is_refused(store_url: str, keys: Path, shown: str) -> None:
    async with keyed(store_url, keys) as service:
        response = await ask(service, {"X-API-Key": f"{shown}x" if shown.endswith(" ") else shown})
        assert (response.status_code, slug(response)) == (401, "unknown-key")
        assert response.headers["www-authenticate"].endswith(', error="invalid_token"')
        assert shown not in response.text or len(shown) < 9


async def test_a_bearer_token_takes_precedence_over_x_api_key(store_url: str, keys: Path) -> None:
    async with keyed(store_url, keys) as service:
        assert (await ask(service, {**bearer(STRANGER), "X-API-Key": READER})).status_code == 401


async def test_with_keys_local_operators_need_an_admin_key(store_url: str, keys: Path) -> None:
    async with keyed(store_url, keys) as service:
        assert (await order(service)).status_code == 401
        response = await order(service, bearer(READER))
        assert (response.status_code, slug(response)) == (403, "forbidden")
        assert response.headers["www-authenticate"].endswith(', error="insufficient_scope", scope="admin"')
        assert "'reader'" in response.json()["detail"]
        made = await order(service, bearer(ADMIN))
        assert (made.status_code, made.json()["updated_by"]) == (201, "ops-1")
        assert (await ask(service, bearer(ADMIN))).status_code == 200


async def test_an_admin_key_works_from_any_address(store_url: str, keys: Path) -> None:
    async with keyed(store_url, keys) as service:
        elsewhere = {"X-Forwarded-For": "198.51.100.7", "Origin": "https://ops.example", "Host": "robots.example"}
        assert (await order(service, {**elsewhere, **bearer(ADMIN)})).status_code == 201


async def test_only_open_paths_work_without_a_key(store_url: str, keys: Path) -> None:
    async with keyed(store_url, keys) as service:
        for path in (*OPEN, "/web/style.css"):
            assert (await ask(service, path=path)).status_code == 200, path
        for path in IDENTITY_PATHS:  # no profile signs
            assert (await ask(service, path=path)).status_code == 404, path
        for path in ("/nowhere", "/v1", "/healthz/", "/web", "/v1/robots?url=http://10.0.0.1/"):
            assert (await ask(service, path=path)).status_code == 401, path


def test_no_route_is_open_by_mistake() -> None:
    app = create(Settings(redis_url="redis://localhost"))
    paths = app.openapi()["paths"]
    assert {path for path in paths if path in OPEN} == {"/healthz", "/readyz", "/metrics"}
    assert all(path.startswith("/v1/") for path in paths if path not in OPEN)


async def test_the_log_has_no_key(store_url: str, keys: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with keyed(store_url, keys) as service:
        for key in (READER, STRANGER, ADMIN):
            await ask(service, bearer(key))
            await order(service, {"X-API-Key": key})
    for key in (READER, STRANGER, ADMIN):
        assert key.partition(".")[2] not in caplog.text
    assert WITHOUT_KEYS not in caplog.text


async def test_a_used_up_quota_gives_429_and_retry_after(store_url: str, keys: Path) -> None:
    async with keyed(store_url, keys) as service:
        answers = [await ask(service, bearer(LIMITED)) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert [answer.headers["ratelimit"].partition(";t=")[0] for answer in answers] == [
            '"default";r=2',
            '"default";r=1',
            '"default";r=0',
            '"default";r=0',
        ]
        assert {answer.headers["ratelimit-policy"] for answer in answers} == {'"default";q=3;w=3600'}
        refused = answers[-1]
        assert slug(refused) == "quota-exceeded"
        assert 1190 <= int(refused.headers["retry-after"]) <= 1200
        assert await counted(service, "robots_requests_rejected_total", reason="quota-exceeded") == 1
        assert await counted(service, "robots_key_quota_exceeded_total", key="limited") == 1
        other = await ask(service, bearer(READER))
        assert (other.status_code, "ratelimit" in other.headers) == (200, False)
        assert (await ask(service, bearer(LIMITED), "/healthz")).status_code == 200


async def test_errors_are_charged_and_have_rate_limit_fields(store_url: str, keys: Path) -> None:
    async with keyed(store_url, keys) as service:
        response = await ask(service, bearer(LIMITED), "/v1/allowed?url=ftp://h/&agent=a")
        assert (response.status_code, response.headers["ratelimit"][:13]) == (422, '"default";r=2')


async def test_sighup_reloads_keys_and_ignores_an_invalid_file(
    store_url: str, keys: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = tmp_path / "recheck.toml"
    table.write_text('"127.0.0.1" = {delay = "2h"}')
    replacement, lines = new_key("reader")

    async def status(key: str) -> int:
        return (await ask(service, bearer(key))).status_code

    async with running(store_url, api_keys_file=keys, recheck_file=table) as service:
        rewrite(keys, lines)
        await until(lambda: status(replacement), lambda found: found == 200)
        assert (await status(READER), await status(ADMIN)) == (401, 401)
        rewrite(keys, "[reader]\n")
        await until_so(lambda: "the key 'reader' has no sha256" in caplog.text)
        async with serve(text(200)) as origin:
            rewrite(table, '"127.0.0.1" = {delay = "5d"}')
            path = f"/v1/allowed?url={origin.url}/&agent=a"

            async def recheck_at() -> str:
                return str((await ask(service, bearer(replacement), path)).json()["robots"]["recheck_at"])

            await until(recheck_at, lambda at: at > "2026-11-25")
        assert await status(replacement) == 200


async def test_a_route_charges_for_the_work_of_many_requests(store_client: Redis, keys: Path) -> None:
    calls = GuardedClient(store_client, monotonic=lambda: 0.0)
    app = FastAPI()

    @app.get("/many")
    async def many(request: Request, items: int) -> int:
        caller_of(request.scope).charge(items - 1)
        return items

    problems.install(app)
    metrics = Metrics(lambda: ServiceState(False, True, 0, 0, {}))
    checked = KeyCheck(
        app, lambda: load_keys(keys), Quotas(calls, lambda: 0.0, lambda _key: None), metrics, required=True
    )
    transport = httpx.ASGITransport(checked)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        for key, items, status, left in [
            (LIMITED, 2, 200, '"default";r=1;t=2400'),
            (LIMITED, 2, 429, '"default";r=0;t=3600'),
            (READER, 1000, 200, None),
        ]:
            response = await client.get("/many", params={"items": items}, headers=bearer(key))
            assert (response.status_code, response.headers.get("ratelimit")) == (status, left)


async def test_a_batch_costs_its_items_and_a_stream_its_lines(store_url: str, keys: Path) -> None:
    item = '{"url": "http://10.0.0.1/", "agent": "a"}'
    lines = {"Content-Type": "application/x-ndjson"}
    async with keyed(store_url, keys) as service:

        async def post(body: str, headers: dict[str, str]) -> tuple[int, str | None]:
            response = await service.client.post("/v1/allowed", content=body, headers=bearer(LIMITED) | headers)
            return response.status_code, response.headers.get("ratelimit")

        assert await post(f'{{"items": [{item}, {item}]}}', {}) == (200, '"default";r=1;t=2400')
        assert (await post(f'{{"items": [{item}, {item}]}}', {}))[0] == 429
    async with keyed(store_url, keys) as service:
        key, more = new_key("streamer")
        rewrite(keys, more + "limit = {requests = 9, seconds = 3600}\n")
        found = await until(lambda: ask(service, bearer(key)), lambda found: found.status_code == 200)
        assert found.headers["ratelimit"].startswith('"default";r=8;')
        response = await service.client.post("/v1/allowed", content=f"{item}\n" * 5, headers=bearer(key) | lines)
        assert len(response.text.splitlines()) == 5
        assert (await ask(service, bearer(key))).headers["ratelimit"].startswith('"default";r=2;')


def rewrite(file: Path, content: str) -> None:
    file.write_text(content)
    os.kill(os.getpid(), signal.SIGHUP)


# Without keys.


async def test_without_keys_access_is_open_and_logged(store_url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with running(store_url, allow_unauthenticated=True) as service:
        response = await ask(service, {"Host": "robots.example", "X-Forwarded-For": "198.51.100.7"})
        assert (response.status_code, "ratelimit" in response.headers) == (200, False)
    assert caplog.text.count(WITHOUT_KEYS) == 1
    assert f'curl -H "Authorization: Bearer $(cat {TOKEN_FILE})"' in caplog.text
    assert TOKEN_FILE.read_text().strip() not in caplog.text


EVERY_ROUTE = [route for module in ROUTES for route in module.router.routes if isinstance(route, APIRoute)]
IDENTITY_PATHS = {route.path for route in EVERY_ROUTE if is_public(route.path)}
OPERATORS_ROUTES = sorted(
    (method, route.path)
    for route in EVERY_ROUTE
    if any(dependant.call is admin for dependant in route.dependant.dependencies)
    for method in route.methods or ()
)


def test_the_operators_routes_are_known() -> None:
    assert len(OPERATORS_ROUTES) >= 8
    assert all(path.startswith("/v1/") for _, path in OPERATORS_ROUTES)


@pytest.mark.parametrize(("method", "path"), OPERATORS_ROUTES)
async def test_without_keys_operators_need_the_token(store_url: str, method: str, path: str) -> None:
    async with running(store_url) as service:

        async def call(fields: dict[str, str]) -> httpx.Response:
            url = path.replace("{id}", "one")
            return await service.client.request(method, url, json=OVERRIDE if method == "PUT" else None, headers=fields)

        for fields, expected in [
            ({"Authorization": ""}, "no-key"),
            ({"Authorization": "Basic YTpi"}, "no-key"),
            (bearer("operator"), "unknown-key"),
            (bearer("operator.x"), "unknown-key"),
            (bearer(READER), "unknown-key"),
            ({"Authorization": "", "X-API-Key": "operator.x"}, "unknown-key"),
        ]:
            response = await call(fields)
            assert (response.status_code, slug(response)) == (401, expected)
            assert response.headers["www-authenticate"].startswith('Bearer realm="robots-decisions"')
            assert "OPERATOR_TOKEN_FILE" in response.json()["detail"]
        assert (await call({})).status_code not in {401, 403}


async def test_an_unknown_key_may_read_where_no_keys_are_set(store_url: str) -> None:
    async with running(store_url) as service:
        assert (await ask(service, bearer(READER))).status_code == 200


async def test_the_token_names_the_operator(store_url: str) -> None:
    async with running(store_url) as service:
        response = await order(service)
        assert (response.status_code, response.json()["updated_by"]) == (201, "operator")


async def test_a_service_without_a_token_has_no_operators(store_url: str) -> None:
    async with running(store_url, operator_token_file=None) as service:
        response = await order(service)
        assert (response.status_code, slug(response)) == (401, "unknown-key")


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:8080", "127.9.9.9", "[::1]:8080", "[::1]"]
)
async def test_loopback_hosts_are_answered(store_url: str, host: str) -> None:
    async with running(store_url) as service:
        assert (await ask(service, {"Host": host})).status_code == 200


PATHS = sorted(
    {"/", "/web/style.css", "/openapi.json", "/nowhere", *(route.path for route in EVERY_ROUTE)} - IDENTITY_PATHS
)


@pytest.mark.parametrize("path", PATHS)
async def test_other_hosts_are_refused_on_every_route(store_url: str, path: str) -> None:
    async with running(store_url) as service:
        response = await ask(service, {"Host": "evil.example:8080"}, path)
        assert (response.status_code, slug(response)) == (421, "wrong-host")
        assert "'evil.example:8080'" in response.json()["detail"]


@pytest.mark.parametrize(
    "host",
    [
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "evil@127.0.0.1",
        "127.0.0.1/@evil.example",
        "[::1",
        "10.0.0.1",
        "0.0.0.0",
        "localhost.",
        "",
    ],
)
async def test_hosts_that_look_like_loopback_are_refused(store_url: str, host: str) -> None:
    async with running(store_url) as service:
        response = await ask(service, {"Host": host})
        assert (response.status_code, slug(response)) == (421, "wrong-host")


async def test_with_keys_every_host_is_answered(store_url: str, keys: Path) -> None:
    async with keyed(store_url, keys) as service:
        assert (await ask(service, bearer(READER) | {"Host": "robots.example"})).status_code == 200


async def test_an_address_that_others_reach_answers_every_host(store_url: str) -> None:
    async with running(store_url, host="192.0.2.1") as service:
        assert (await ask(service, {"Host": "robots.example"})).status_code == 200


async def test_status_answer_needs_a_key_and_counts_for_its_quota(store_url: str, keys: Path) -> None:
    path = QUESTION.replace("allowed", "check")
    async with keyed(store_url, keys) as service:
        without = await ask(service, path=path)
        assert (without.status_code, slug(without)) == (401, "no-key")
        assert "robots-verdict" not in without.headers
        answered = [await ask(service, bearer(LIMITED), path) for _ in range(4)]
        assert [response.status_code for response in answered] == [403, 403, 403, 429]
        assert [response.headers.get("robots-verdict") for response in answered] == ["disallow"] * 3 + [None]


@pytest.mark.parametrize(
    ("address", "caller"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("::1", "::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("fe80::1%eth0", "fe80::/64"),
        ("192.0.2.7:4711", "192.0.2.7"),
        ("[2001:db8:1:2:3:4:5:6]:4711", "2001:db8:1:2::/64"),
        ("[2001:db8:1:2::]", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7%eth0", "192.0.2.7"),
        ("unknown:8:9", "unknown:8:9"),
        ("", ""),
    ],
)
def test_a_caller_without_a_key_is_an_address_or_a_network_of_ipv6(address: str, caller: str) -> None:
    assert caller_of({"client": (address, 1), "state": {}}).id == caller


def test_an_address_becomes_a_caller_in_one_place() -> None:
    reads = re.compile(r"""["']client["']|peername|\.client\.host""")
    modules = Path(auth.__file__).parents[2].rglob("*.py")
    assert {path.name for path in modules if reads.search(path.read_text())} == {
        "caller.py",
        "access_log.py",
        "logs.py",
    }
