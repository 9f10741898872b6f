"""The check whether sites find the keys that sign: in the directory at its origin, over TLS, as a site asks for it."""

import json
import logging
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from redis.asyncio import Redis

from app.fetch.client import Fetcher
from app.fetch.guard import AddressGuard, PortPolicy
from app.fetch.profile import FetchProfile
from app.identity import publication
from app.identity.keys import jwk
from app.identity.publication import PublishedKeys
from app.identity.well_known import DIRECTORY_PATH
from app.main.agents_file import load
from robots_core.origin import Target
from robots_core.robots.access import Busy, Fetched
from tests.api.service import counted, running
from tests.faults.until import until
from tests.identity.agents import HOST, write_agents, write_key
from tests.origins import Authority, Gate, Names, redirect, serve, text

ANOTHER = jwk(Ed25519PrivateKey.generate())
ODD: list[object] = [
    {"kty": "RSA", "n": "AQAB"},
    {"kty": "OKP", "crv": "Ed25519"},
    {"kty": "OKP", "crv": "X25519", "x": 7},
]
LACKS = "does not have it"
WRONG = {
    "another key": (text(200, json.dumps({"keys": [ANOTHER]})), LACKS),
    "odd keys": (text(200, json.dumps({"keys": ODD})), LACKS),
    "no keys": (text(200, json.dumps({"keys": []})), LACKS),
    "no list": (text(200, json.dumps({"keys": 7})), LACKS),
    "keys of text": (text(200, json.dumps({"keys": "keys"})), LACKS),
    "a list": (text(200, "[]"), LACKS),
    "a page": (text(200, "<html></html>", {"Content-Type": "text/html"}), LACKS),
    "deep": (text(200, "[" * 100_000), LACKS),
    "bytes": (text(200, b"\xff\xfe\x00"), LACKS),
    "empty": (text(200), LACKS),
    "missing": (text(404), "answers 404"),
    "failing": (text(503), "answers 503"),
    "no HTTP": (b"SSH-2.0\r\n\r\n", "cannot be fetched (bad_response)"),
    "a loop": (redirect(DIRECTORY_PATH), "answers 301"),
}


def fetcher(ca: Authority, address: str = "127.0.0.1") -> Fetcher:
    return Fetcher(
        profile=FetchProfile("RobotsDecisions/1"),
        guard=AddressGuard([ip_network("127.0.0.1/32")]),
        ports=PortPolicy(every=True),
        resolver=Names({HOST: [address]}),
        ssl_context=ca.client_context(),
    )


def signing_keys(agents: Path) -> dict[str, Sequence[str]]:
    return {authority: identity.signing for authority, identity in load(agents).identities.items()}


@pytest.mark.parametrize("wrong", WRONG)
async def test_a_key_that_sites_do_not_find_is_counted_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, wrong: str
) -> None:
    caplog.set_level(logging.INFO)
    ca, key = Authority(), write_key(tmp_path / "a.pem")
    reply, why = WRONG[wrong]
    right = text(200, json.dumps({"keys": [*ODD, ANOTHER, {name: jwk(key)[name] for name in ("kty", "crv", "x")}]}))
    async with serve(reply, right, tls=ca.server_context(HOST)) as origin:
        host = f"{HOST}:{origin.port}"
        signing = signing_keys(write_agents(tmp_path / "agents.toml", "a.pem", [], host=host))
        published = PublishedKeys(lambda: signing, fetcher(ca).get)
        await published.check()
        assert published.missing == 1
        assert f"signed with the key {jwk(key)['kid']}: https://{host}{DIRECTORY_PATH} {why}. " in caplog.text
        caplog.clear()
        await published.check()
        assert published.missing == 0
        assert f"has the signing key {jwk(key)['kid']} now" in caplog.text
        caplog.clear()
        await published.check()
        assert caplog.text == ""
    assert origin.requests[0].startswith(f"GET {DIRECTORY_PATH} HTTP/1.1\r\nHost: {host}\r\n".encode())


async def test_a_directory_that_cannot_be_asked_lacks_the_key(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_key(tmp_path / "a.pem")
    signing = signing_keys(write_agents(tmp_path / "agents.toml", "a.pem", []))
    ca = Authority()
    for address, why in (("10.0.0.1", "ALLOW_ADDRESSES"), ("127.0.0.1", "cannot be fetched (connection)")):
        published = PublishedKeys(lambda: signing, fetcher(ca, address).get)
        await published.check()
        assert published.missing == 1
        assert why in caplog.text


async def test_what_is_known_of_a_key_ends_with_it_and_outlasts_a_full_queue(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a.pem", "b.pem"):
        write_key(tmp_path / name)
    file, busy = tmp_path / "agents.toml", False
    ca = Authority()
    fetch = fetcher(ca, "10.0.0.1").get

    async def get(target: Target) -> Fetched:
        if busy:
            raise Busy(1)
        return await fetch(target)

    signing = signing_keys(write_agents(file, "a.pem", ["b.pem"]))
    published = PublishedKeys(lambda: signing, get)
    await published.check()
    await published.check()
    assert caplog.text.count("Sites cannot verify") == 1
    busy = True
    await published.check()
    assert published.missing == 1
    signing = signing_keys(write_agents(file, "b.pem", []))
    await published.check()
    assert published.missing == 0


async def test_a_service_asks_for_its_own_directory(
    store_url: str, store_client: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publication, "CHECK_INTERVAL", 0.05)
    ca = Authority()
    key = write_key(tmp_path / "a.pem")
    right = Gate(text(200, json.dumps({"keys": [jwk(key)]})))
    async with serve(text(404), right, tls=ca.server_context(HOST)) as origin:
        file = write_agents(tmp_path / "agents.toml", "a.pem", [], host=f"{HOST}:{origin.port}")
        names = {HOST: ["127.0.0.1"]}
        async with running(store_url, names=names, tls=ca.client_context(), agents_file=file) as service:

            async def missing() -> float:
                return await counted(service, "robots_signing_keys_unpublished")

            await until(missing, lambda found: found == 1)
            right.open.set()
            await until(missing, lambda found: found == 0)
