"""The directory of public keys and the card: by Host, open, signed by each key, and rotated without a gap."""

import base64
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from operator import eq
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from http_message_signatures import HTTPMessageVerifier, InvalidSignature, MappingKeyResolver
from http_message_signatures.algorithms import ED25519
from redis.asyncio import Redis

from app.auth.keys import new_key
from app.identity.coverage import TAG
from app.identity.directory import DIRECTORY_MEDIA_TYPE, DIRECTORY_TAG, KeyDirectory
from app.identity.keys import read_key, thumbprint
from app.identity.well_known import CARD_PATH, DIRECTORY_PATH
from app.main.agents_file import load
from tests.api.service import Service, running, slug
from tests.faults.until import until
from tests.identity.agents import HOST, write_agents, write_key

CASES = json.loads((Path(__file__).parents[1] / "cases" / "web-bot-auth.json").read_text("utf-8"))


def verify(response: httpx.Response, public: dict[str, Ed25519PublicKey], host: str = HOST) -> list[str]:
    """The keys whose signatures of the directory hold, for that host. Raises InvalidSignature."""
    request = SimpleNamespace(method="GET", url=f"https://{host}{DIRECTORY_PATH}", headers={})
    message = SimpleNamespace(status_code=200, headers=dict(response.headers), request=request)
    keys: dict[str, Any] = dict(public)
    verifier = HTTPMessageVerifier(
        signature_algorithm=ED25519, key_resolver=MappingKeyResolver(public_keys=keys, private_keys={})
    )
    found = verifier.verify(message, expect_tag=DIRECTORY_TAG, body=response.content)
    return [str(it.parameters["keyid"]) for it in found]


def published(response: httpx.Response) -> dict[str, Ed25519PublicKey]:
    keys = response.json()["keys"]
    return {it["kid"]: Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(it["x"] + "=")) for it in keys}


def test_the_vector_of_the_draft_comes_out_byte_for_byte() -> None:
    case = CASES["directory"]
    directory = KeyDirectory(case["authority"], [read_key(json.dumps(CASES["key"]))])
    body, headers = directory.signed(case["created"], case["expires"])
    assert body.decode() == case["body"]
    for name in ("Content-Digest", "Signature-Input", "Signature"):
        expected = case[name.lower().replace("-", "_")]
        assert headers[name] == expected


async def get(service: Service, path: str = DIRECTORY_PATH, host: str = HOST) -> httpx.Response:
    return await service.client.get(path, headers={"Host": host, "Authorization": ""})


@pytest.mark.parametrize("keyed", [False, True], ids=["loopback", "API keys"])
async def test_sites_get_the_directory_of_the_host_they_ask(
    store_url: str, store_client: Redis, tmp_path: Path, keyed: bool
) -> None:
    keys = [write_key(tmp_path / name) for name in ("now.pem", "next.pem")]
    file = write_agents(tmp_path / "agents.toml", "now.pem", ["next.pem"])
    settings: dict[str, Any] = {"agents_file": file}
    if keyed:
        settings["api_keys_file"] = tmp_path / "keys.toml"
        settings["api_keys_file"].write_text(new_key("crawler")[1])
        settings["api_keys_file"].chmod(0o600)
    async with running(store_url, **settings) as service:
        service.now = time.time()
        response = await get(service)
        assert response.status_code == 200
        assert response.headers["content-type"] == DIRECTORY_MEDIA_TYPE
        assert response.headers["cache-control"] == "max-age=3600"
        assert verify(response, published(response)) == list(map(thumbprint, keys))
        assert list(published(response)) == list(map(thumbprint, keys))
        assert (await get(service, host="BOT.example.com:443")).content == response.content
        with pytest.raises(InvalidSignature):
            verify(response, published(response), host="mirror.example.com")
        elsewhere = httpx.Response(200, headers=response.headers, content=response.content.replace(b"sig", b"enc"))
        with pytest.raises(InvalidSignature):
            verify(elsewhere, published(response))
        for host in ("other.example.com", "localhost", "bot.example.com:8443", ""):
            other = await get(service, host=host)
            assert (other.status_code, slug(other)) == (404, "not-found"), host
        card = await get(service, CARD_PATH)
        assert card.json() == {
            "client_id": f"https://{HOST}{CARD_PATH}",
            "client_name": "Acme",
            "client_uri": f"https://{HOST}/bot/AcmeBot",
            "contacts": ["mailto:bot@example.com"],
            "jwks_uri": f"https://{HOST}{DIRECTORY_PATH}",
            "web_bot_auth": {
                "expected-user-agent": "AcmeBot/2.0 (+https://bot.example.com/)",
                "rfc9309-product-token": "AcmeBot",
                "trigger": "crawler",
                "rate-control": "429",
            },
        }
        assert (await get(service, CARD_PATH, "other.example.com")).status_code == 404


async def test_a_directory_is_signed_anew_after_a_minute(store_url: str, store_client: Redis, tmp_path: Path) -> None:
    write_key(tmp_path / "now.pem")
    file = write_agents(tmp_path / "agents.toml", "now.pem", [])
    async with running(store_url, agents_file=file) as service:
        first, second = await get(service), await get(service)
        assert first.headers["signature"] == second.headers["signature"]
        service.now += 61
        third = await get(service)
        assert third.headers["signature"] != first.headers["signature"]
        assert third.content == first.content


async def test_a_rotation_leaves_no_moment_unverified(store_url: str, store_client: Redis, tmp_path: Path) -> None:
    """A site verifies each signature by a directory as old as its cache may have it."""
    for name in ("old.pem", "new.pem"):
        write_key(tmp_path / name)
    file = tmp_path / "agents.toml"
    steps = [("old.pem", []), ("old.pem", ["new.pem"]), ("new.pem", ["old.pem"]), ("new.pem", [])]
    write_agents(file, *steps[0])
    async with running(store_url, agents_file=file) as service:
        cached = published(await get(service))
        for step in steps[1:]:
            write_agents(file, *step)
            os.kill(os.getpid(), signal.SIGHUP)

            async def key_ids() -> list[str]:
                return list(published(await get(service)))

            expected = [thumbprint(read_key((tmp_path / name).read_text())) for name in (step[0], *step[1])]
            await until(key_ids, partial(eq, expected))
            signer = service.app.state.services.profiles()["acme"].signer
            assert signer is not None
            headers = signer.headers("www.example.com", "/", time.time())
            message = SimpleNamespace(method="GET", url="https://www.example.com/", headers=headers)
            for keys in (cached, published(await get(service))):
                resolver = MappingKeyResolver(public_keys=dict(keys), private_keys={})
                HTTPMessageVerifier(signature_algorithm=ED25519, key_resolver=resolver).verify(message, expect_tag=TAG)
            cached = published(await get(service))


async def test_profiles_of_one_origin_share_its_directory(tmp_path: Path) -> None:
    write_key(tmp_path / "a.pem")
    write_key(tmp_path / "b.pem")
    more = f'[profiles.b]\nuser_agent = "B/1"\nsignature_agent = "https://{HOST}"\nprivate_key = "b.pem"\n'
    identities = load(write_agents(tmp_path / "agents.toml", "a.pem", ["b.pem"], more)).identities
    assert list(identities) == [HOST]
    assert len(json.loads(identities[HOST].directory.at(0.0)[0])["keys"]) == 2


def test_published_keys_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    write_key(tmp_path / "a.pem")
    with pytest.raises(ValueError, match=r"the profile 'acme' has published_keys = 'none.pem'; it cannot be opened"):
        load(write_agents(tmp_path / "agents.toml", "a.pem", ["none.pem"]))
    (tmp_path / "bare.toml").write_text('[profiles.a]\nuser_agent = "A/1"\npublished_keys = ["a.pem"]\n')
    with pytest.raises(ValueError, match=r"has published_keys = \['a.pem'\], but no private_key, which signs"):
        load(tmp_path / "bare.toml")


def key_directory(file: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "app", "key-directory", *arguments]
    environment = {**os.environ, "AGENTS_FILE": str(file)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_command_prints_the_directory_for_a_static_host(tmp_path: Path) -> None:
    key = write_key(tmp_path / "a.pem")
    file = write_agents(tmp_path / "agents.toml", "a.pem", [])
    printed = key_directory(file)
    assert [it["kid"] for it in json.loads(printed.stdout)["keys"]] == [thumbprint(key)]
    fields = dict(line.split(": ", 1) for line in key_directory(file, HOST, "--headers").stdout.splitlines())
    response = httpx.Response(200, headers=fields, content=printed.stdout.rstrip("\n").encode())
    assert verify(response, published(response)) == [thumbprint(key)]
    other = key_directory(file, "other.example.com")
    assert (other.returncode, other.stdout) == (3, "")
    assert (
        "No profile has signature_agent = 'https://other.example.com'; the hosts are bot.example.com." in other.stderr
    )
    (tmp_path / "empty.toml").write_text("")
    assert "has no profile with a signature_agent" in key_directory(tmp_path / "empty.toml").stderr
