"""Fetch profiles: a site that answers crawlers differently is fetched once as each, and the files are kept apart."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from http_message_signatures import HTTPMessageVerifier, MappingKeyResolver
from http_message_signatures.algorithms import ED25519
from redis.asyncio import Redis

from app.identity.keys import thumbprint
from tests.api.service import Service, running, slug
from tests.faults.until import until
from tests.origins import Exchange, LoopbackOrigin, redirect, serve, text

FILE = """
[agents.AcmeBot]
profile = "acme"

[agents.AcmeNews]
profile = "acme"

[agents.FarBot]
profile = "far"

[agents.PlainBot]

[profiles.acme]
user_agent = "AcmeBot/2.0 (+https://www.example.com/bot)"
from = "bot@example.com"

[profiles.far]
user_agent = "FarBot/1.0"
"""
CLOSED, OPEN = "User-agent: *\nDisallow: /\n", "User-agent: *\nDisallow: /private/\n"


def fields(request: bytes) -> dict[str, str]:
    lines = request.decode("latin-1").split("\r\n")[1:]
    return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}


async def by_user_agent(exchange: Exchange) -> None:
    """Answer AcmeBot with an open file, and all others with a closed one."""
    agent = fields(exchange.head)["user-agent"]
    await exchange.send(text(200, OPEN if agent.startswith("AcmeBot") else CLOSED))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "agents.toml"
    path.write_text(FILE)
    return path


@asynccontextmanager
async def fleet(store_url: str, file: Path, size: int = 1) -> AsyncIterator[tuple[LoopbackOrigin, list[Service]]]:
    """A site that answers by User-Agent, and instances that share a store."""
    async with AsyncExitStack() as stack:
        origin = await stack.enter_async_context(serve(by_user_agent))
        services = [await stack.enter_async_context(running(store_url, agents_file=file)) for _ in range(size)]
        yield origin, services


async def verdicts(service: Service, origin: LoopbackOrigin, *agents: str) -> list[str]:
    return [(await service.allowed(f"{origin.url}/page", agent))["verdict"] for agent in agents]


def user_agents(origin: LoopbackOrigin) -> list[str]:
    return sorted(fields(request)["user-agent"].partition("/")[0] for request in origin.requests)


async def test_each_profile_is_fetched_once_for_the_fleet(store_url: str, store_client: Redis, file: Path) -> None:
    async with fleet(store_url, file, 2) as (origin, (one, other)):
        agents = ("AcmeBot", "AcmeNews", "FarBot", "PlainBot", "Googlebot")
        asked = [verdicts(service, origin, *agents) for service in (one, other) for _ in range(3)]
        for found in await asyncio.gather(*asked):
            assert found == ["allow", "allow", "disallow", "disallow", "disallow"]
        assert user_agents(origin) == ["AcmeBot", "FarBot", "RobotsDecisions"]
        [acme] = [fields(it) for it in origin.requests if fields(it)["user-agent"].startswith("AcmeBot")]
        assert acme["user-agent"] == "AcmeBot/2.0 (+https://www.example.com/bot)"
        assert acme["from"] == "bot@example.com"
        assert [request for request in origin.requests if "from" in fields(request)] == [
            it for it in origin.requests if fields(it)["user-agent"] == acme["user-agent"]
        ]


async def test_without_profiles_the_store_has_the_keys_of_before(store_url: str, store_client: Redis) -> None:
    async with serve(by_user_agent) as origin, running(store_url) as service:
        await service.allowed(f"{origin.url}/page", "AcmeBot")
        keys = [key async for key in store_client.scan_iter("robots:{http://*")]
        assert keys == [f"robots:{{http://127.0.0.1:{origin.port}}}".encode()]


async def test_batches_and_streams_keep_the_files_apart(store_url: str, store_client: Redis, file: Path) -> None:
    async with fleet(store_url, file) as (origin, (service,)):
        items = [{"url": f"{origin.url}/{n}", "agent": agent} for n in range(5) for agent in ("AcmeBot", "PlainBot")]
        for _ in range(2):
            answers = (await service.client.post("/v1/allowed", json={"items": items})).json()["answers"]
            assert [answer["verdict"] for answer in answers] == ["allow", "disallow"] * 5
            permits = (await service.client.post("/v1/permits/batch", json={"items": items})).json()["permits"]
            assert [answer["verdict"] for answer in permits] == ["allow", "disallow"] * 5
        assert user_agents(origin) == ["AcmeBot", "RobotsDecisions"]


async def facts(service: Service, method: str, path: str, origin: LoopbackOrigin, **query: str) -> Any:
    response = await service.client.request(method, path, params={"url": origin.url, **query})
    assert response.status_code < 300, response.text
    return response.json() if response.content else None


async def test_files_history_refresh_and_purge_are_by_profile(store_url: str, store_client: Redis, file: Path) -> None:
    async with fleet(store_url, file, 2) as (origin, (one, other)):
        for service in (one, other):
            assert await verdicts(service, origin, "AcmeBot", "PlainBot") == ["allow", "disallow"]
        assert (await facts(one, "GET", "/v1/robots", origin))["text"] == CLOSED
        assert (await facts(one, "GET", "/v1/robots", origin, agent="AcmeNews"))["text"] == OPEN
        acme = await facts(one, "GET", "/v1/robots", origin, profile="acme")
        assert acme["text"] == OPEN
        assert acme["robots"]["url"] == f"{origin.url}/robots.txt"
        assert (await facts(one, "GET", "/v1/robots", origin, agent="AcmeBot", profile="default"))["text"] == CLOSED
        versions = [
            (await facts(other, "GET", "/v1/robots/history", origin, **query))["versions"][0]["id"]
            for query in (
                {},
                {"profile": "acme"},
                {"agent": "AcmeNews"},
                {"agent": "AcmeBot", "profile": "default"},
            )
        ]
        assert versions[0] != versions[1]
        assert versions[2:] == [versions[1], versions[0]]
        for agent, verdict in (("AcmeBot", "allow"), ("PlainBot", "disallow")):
            answer = await one.allowed(f"{origin.url}/page", agent, as_of="2026-11-21T18:30:00Z")
            assert (answer["verdict"], answer["robots"]["source"]) == (verdict, "history")
        assert len(origin.requests) == 2
        await facts(one, "POST", "/v1/robots/refresh", origin, profile="acme")
        assert user_agents(origin) == ["AcmeBot", "AcmeBot", "RobotsDecisions"]
        await facts(one, "DELETE", "/v1/robots", origin, profile="acme")
        other.now += 1  # what was fetched in the instant of a purge is not kept

        async def source() -> str:
            answer = await other.allowed(f"{origin.url}/page", "AcmeBot")
            return str(answer["robots"]["source"])

        # The other instance hears of the purge; its copy of the default profile stays.
        await until(source, lambda found: found == "fetched")
        assert await verdicts(other, origin, "AcmeBot", "PlainBot") == ["allow", "disallow"]
        assert user_agents(origin) == ["AcmeBot"] * 3 + ["RobotsDecisions"]


async def test_unknown_profile_is_refused_with_the_known_ones(store_url: str, store_client: Redis, file: Path) -> None:
    async with fleet(store_url, file) as (origin, (service,)):
        for method, path in (
            ("GET", "/v1/robots"),
            ("DELETE", "/v1/robots"),
            ("POST", "/v1/robots/refresh"),
            ("GET", "/v1/robots/history"),
            ("GET", "/v1/robots/diff"),
        ):
            response = await service.client.request(method, path, params={"url": origin.url, "profile": "akme"})
            assert (response.status_code, slug(response)) == (422, "bad-profile"), path
            assert response.json()["detail"] == "Unknown profile 'akme'. Choose one of: default, acme, far."
        assert origin.requests == []


async def test_every_hop_of_a_redirect_says_who_asks(store_url: str, store_client: Redis, file: Path) -> None:
    async with serve(by_user_agent) as last, serve(redirect(f"{last.url}/moved.txt")) as first:
        async with running(store_url, agents_file=file) as service:
            answer = await service.allowed(f"{first.url}/page", "AcmeBot")
        assert answer["verdict"] == "allow"
        assert answer["robots"]["final_url"] == f"{last.url}/moved.txt"
        assert [fields(it)["from"] for it in (*first.requests, *last.requests)] == ["bot@example.com"] * 2


async def test_origins_that_fail_are_listed_with_their_profile(store_url: str, store_client: Redis, file: Path) -> None:
    async def failing(exchange: Exchange) -> None:
        acme = fields(exchange.head)["user-agent"].startswith("AcmeBot")
        await exchange.send(text(503) if acme else text(200, CLOSED))

    async with serve(failing) as origin, running(store_url, agents_file=file) as service:
        assert await verdicts(service, origin, "AcmeBot", "PlainBot") == ["defer", "disallow"]
        [row] = (await service.client.get("/v1/origins")).json()["origins"]
        assert (row["origin"], row["profile"], row["status"]) == (origin.url, "acme", 503)


async def test_sighup_gives_an_agent_another_profile(store_url: str, store_client: Redis, file: Path) -> None:
    async with fleet(store_url, file) as (origin, (service,)):
        assert await verdicts(service, origin, "AcmeBot", "PlainBot") == ["allow", "disallow"]
        change(file)
        os.kill(os.getpid(), signal.SIGHUP)

        async def found() -> list[str]:
            return await verdicts(service, origin, "AcmeBot", "PlainBot")

        await until(found, lambda found: found == ["disallow", "allow"])
        assert user_agents(origin) == ["AcmeBot", "RobotsDecisions"]


async def test_a_service_signs_as_its_file_of_agents_says(
    store_url: str, store_client: Redis, file: Path, tmp_path: Path
) -> None:
    key = Ed25519PrivateKey.generate()
    add_signature(file, key)
    async with fleet(store_url, file) as (origin, (service,)):
        service.now = time.time()  # the verifier's clock
        assert await verdicts(service, origin, "AcmeBot", "PlainBot", "FarBot") == ["allow", "disallow", "disallow"]
        signed = [fields(it) for it in origin.requests if "signature" in fields(it)]
        assert [it["user-agent"].partition("/")[0] for it in signed] == ["FarBot"]
        request = SimpleNamespace(method="GET", url=f"{origin.url}/robots.txt", headers=signed[0])
        keys: dict[str, Any] = {thumbprint(key): key.public_key()}
        resolver = MappingKeyResolver(public_keys=keys, private_keys={})
        verifier = HTTPMessageVerifier(signature_algorithm=ED25519, key_resolver=resolver)
        [found] = verifier.verify(request, expect_tag="web-bot-auth")
        assert found.covered_components['"@authority"'] == f"127.0.0.1:{origin.port}"


def add_signature(file: Path, key: Ed25519PrivateKey) -> None:
    private = file.parent / "far.pem"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    private.chmod(0o600)
    with file.open("a") as table:
        table.write('signature_agent = "https://bot.example.com"\nprivate_key = "far.pem"\n')


def change(file: Path) -> None:
    file.write_text('[agents.PlainBot]\nprofile = "acme"\n[profiles.acme]\nuser_agent = "AcmeBot/2.0"\n')
