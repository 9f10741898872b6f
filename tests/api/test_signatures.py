"""`sign` in `POST /v1/permits`: no signature without an allow, a slot, a key, and the right to it."""

import asyncio
import base64
import json
import os
import re
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from http_message_signatures import HTTPMessageVerifier, MappingKeyResolver
from http_message_signatures.algorithms import ED25519

from app.auth.keys import Scope, new_key
from app.identity.keys import thumbprint
from app.pacing.permits import Unsigned
from robots_core.robots.verdict import Permission, Reason
from tests.api.service import Service, counted, running, slug
from tests.faults.until import until
from tests.operator_token import TOKEN_HEADER
from tests.origins import Authority, Exchange, LoopbackOrigin, serve, text

pytestmark = pytest.mark.usefixtures("store_client")

RULES = "User-agent: *\nDisallow: /private/\nCrawl-delay: 1\n"
COMPLEX = "".join(f"Disallow: /{'*a' * 50}*b{number}\n" for number in range(3000))
AGENT = "https://bot.example.com"
USER_AGENT = "AcmeBot/2.0 (+https://bot.example.com/)"
AGENTS = f"""
[agents.AcmeBot]
profile = "acme"
[agents.PlainBot]
profile = "plain"
[agents.BareBot]
[profiles.plain]
user_agent = "PlainBot/1.0"
[profiles.acme]
user_agent = "{USER_AGENT}"
from = "bot@example.com"
signature_agent = "{AGENT}"
private_key = "acme.pem"
"""
KEYS = {
    "signer": ("read", '["acme"]'),
    "reader": ("read", None),
    "other": ("read", '["plain"]'),
    "ops": ("admin", None),
    "ops-signer": ("admin", '["plain", "acme"]'),
    "sender": ("ingest", None),
}
MAY = {"signer", "ops-signer"}


@pytest.fixture
def key() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.generate()


@pytest.fixture
def file(tmp_path: Path, key: Ed25519PrivateKey) -> Path:
    private = tmp_path / "acme.pem"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    private.chmod(0o600)
    path = tmp_path / "agents.toml"
    path.write_text(AGENTS)
    return path


class Fleet:
    """A service and its sites, by what their robots.txt does."""

    def __init__(self, service: Service, sites: dict[str, str]) -> None:
        self.service = service
        self.sites = sites

    async def permit(self, url: str, agent: str = "AcmeBot", key: str | None = None, **members: Any) -> Any:
        headers = {} if key is None else {"X-API-Key": key}
        body = {"url": url, "agent": agent, "sign": True, **members}
        response = await self.service.client.post("/v1/permits", json=body, headers=headers)
        if response.status_code != 200:
            return {"problem": slug(response)}
        return response.json()


@asynccontextmanager
async def fleet(store_url: str, file: Path, **settings: Any) -> AsyncIterator[Fleet]:
    ca = Authority()
    kinds = {
        "rules": text(200, RULES),
        "missing": text(404),
        "forbidden": text(403),
        "failing": text(503),
        "empty": text(200, ""),
        "slow": text(200, "User-agent: *\nCrawl-delay: 10\n"),
        "others": text(200, "User-agent: OtherBot\nDisallow: /\n"),
        "complex": text(200, "User-agent: *\nRobot-version: 2.0\n" + COMPLEX),
        "human": text(202, "<title>Human?</title>", {"Content-Type": "text/html"}),
        "usage": text(200, "User-agent: *\nContent-Signal: ai-train=no\n"),
        "unknown": text(200, ""),
        "far": text(200, "User-agent: *\nCrawl-delay: 10\n"),
        "gone": text(410),
        "down": text(500),
    }
    async with AsyncExitStack() as stack:
        origins: dict[str, LoopbackOrigin] = {}
        for kind, answer in kinds.items():
            tls = ca.server_context(f"{kind}.example.com")
            origins[kind] = await stack.enter_async_context(serve(answer, tls=tls))
        plain = await stack.enter_async_context(serve(text(200, RULES)))
        names = {f"{kind}.example.com": ["127.0.0.1"] for kind in (*kinds, "http")}
        service = await stack.enter_async_context(
            running(store_url, names=names, tls=ca.client_context(), agents_file=file, **settings)
        )
        sites = {kind: f"https://{kind}.example.com:{origin.port}" for kind, origin in origins.items()}
        yield Fleet(service, {**sites, "http": f"http://http.example.com:{plain.port}"})


def write_keys(path: Path) -> dict[str, str]:
    keys, tables = {}, []
    for name, (scope, sign) in KEYS.items():
        keys[name], table = new_key(name)
        table = table.replace('"read"', f'"{scope}"')
        tables.append(table + ("" if sign is None else f"sign = {sign}\n"))
    path.write_text("\n".join(tables))
    path.chmod(0o600)
    return keys


def verified(url: str, signed: dict[str, Any], key: Ed25519PrivateKey, method: str = "GET") -> Any:
    keys: dict[str, Any] = {thumbprint(key): key.public_key()}
    verifier = HTTPMessageVerifier(
        signature_algorithm=ED25519,
        key_resolver=MappingKeyResolver(public_keys=keys, private_keys={}),
    )
    verifier.validate_created_and_expires = lambda *_args, **_named: None  # type: ignore[method-assign] # the clock is the test's
    [found] = verifier.verify(SimpleNamespace(method=method, url=url, headers=signed["headers"]))
    return found


async def test_a_permit_brings_the_signed_header_fields(store_url: str, file: Path, key: Ed25519PrivateKey) -> None:
    async with fleet(store_url, file) as fleet_:
        url = f"{fleet_.sites['rules']}/a%20b?c=1"
        got = await fleet_.permit(url)
        signed = got["signed"]
        assert (got["verdict"], got["unsigned"]) == ("allow", None)
        assert list(signed["headers"]) == ["Signature-Agent", "Signature-Input", "Signature", "User-Agent", "From"]
        assert signed["headers"]["User-Agent"] == USER_AGENT
        assert signed["headers"]["From"] == "bot@example.com"
        assert (signed["method"], f"https://{signed['host']}") == ("GET", fleet_.sites["rules"])
        found = verified(url, signed, key)
        assert found.covered_components['"@path"'] == "/a%20b"
        slot = datetime.fromisoformat(got["go_at"]).timestamp()
        assert slot - 6.001 <= found.parameters["created"] <= slot - 5
        assert found.parameters["expires"] - found.parameters["created"] == 65
        assert datetime.fromisoformat(signed["expires"]).timestamp() == found.parameters["expires"]
        changed = await fleet_.permit(f"{fleet_.sites['rules']}/a/../b")
        assert '"@path"' not in verified(f"{fleet_.sites['rules']}/b", changed["signed"], key).covered_components
        assert await counted(fleet_.service, "robots_permits_signed_total", profile="acme") == 2


@pytest.fixture
def covering_the_host(file: Path) -> Path:
    file.write_text(f'{AGENTS}signature_covers = "authority"\n')
    return file


async def test_a_profile_may_cover_the_host_alone(
    store_url: str, covering_the_host: Path, key: Ed25519PrivateKey
) -> None:
    async with fleet(store_url, covering_the_host) as fleet_:
        site = fleet_.sites["rules"]
        found = verified(f"{site}/rewritten", (await fleet_.permit(f"{site}/a"))["signed"], key)
    assert list(found.covered_components)[:-1] == ['"@authority"', '"signature-agent";key="sig1"']


async def test_nothing_is_signed_for_who_does_not_ask(store_url: str, file: Path) -> None:
    async with fleet(store_url, file) as fleet_:
        got = await fleet_.permit(f"{fleet_.sites['rules']}/a", sign=False)
        assert got["permit"] is not None
        assert not {"signed", "unsigned"} & got.keys()


async def test_a_signature_needs_an_https_url_with_an_exact_host(store_url: str, file: Path) -> None:
    async with fleet(store_url, file) as fleet_:
        site = fleet_.sites["rules"]
        port = site.rpartition(":")[2]
        for url, reason in {
            f"{site}/a": None,
            f"{site.replace('rules', 'RULES')}/a": None,
            f"https://rules.example.com.:{port}/a": "ambiguous-host",
            f"https://rules.example.com。:{port}/a": "ambiguous-host",
            f"{fleet_.sites['http']}/a": "not-https",
        }.items():
            got = await fleet_.permit(url)
            assert (got["verdict"], got["unsigned"], got["signed"] is None) == ("allow", reason, reason is not None), (
                url
            )


WANTED = {
    'sig2=("@authority" "@path");created;nonce="n0nce ~[]";tag="web-bot-auth"': ("sig2", "n0nce ~[]"),
    'a=("@query");tag="web-bot-auth", b=("@method" "signature-agent";key="b");tag="web-bot-auth"': ("b", None),
    'sig1=("@authority");expires;alg="ed25519";keyid="{key}";tag="web-bot-auth"': ("sig1", None),
    'sig1=();tag="web-bot-auth"': ("sig1", None),
    'sig1=("@authority")': None,
    'sig1=("@authority");tag="another"': None,
    'sig1=("@authority" "content-digest");tag="web-bot-auth"': None,
    'sig1=("@authority");alg="hmac-sha256";tag="web-bot-auth"': None,
    'sig1=("@authority");keyid="another";tag="web-bot-auth"': None,
    'sig1=("@authority");nonce="a\\"b";tag="web-bot-auth"': None,
    'sig1=("@authority");nonce=1;tag="web-bot-auth"': None,
    'sig1=(1 :YQ==:);tag="web-bot-auth"': None,
    'sig1="@authority";tag="web-bot-auth"': None,
    'sig1=?1;tag="web-bot-auth"': None,
    'sig1=(tok);tag="web-bot-auth"': None,
    "sig1=(": None,
    "ä": None,
    "": None,
}


async def test_a_signature_is_as_the_page_asks_or_there_is_none(
    store_url: str, file: Path, key: Ed25519PrivateKey
) -> None:
    async with fleet(store_url, file) as fleet_:
        url = f"{fleet_.sites['empty']}/a"
        for field, expected in WANTED.items():
            field = field.replace("{key}", thumbprint(key))
            got = await fleet_.permit(url, sign=False, accept_signature=field, max_wait=3600)
            assert got["permit"], field
            if expected is None:
                assert (got["signed"], got["unsigned"]) == (None, "not-as-asked"), field
                continue
            label, nonce = expected
            found = verified(url, got["signed"], key)
            assert found.label == label, field
            assert nonce is None or found.nonce == nonce
            assert found.parameters["tag"] == "web-bot-auth"
        rewritten = f"{fleet_.sites['empty']}/a/../b"
        for covered, reason in (("@authority", None), ("@path", "not-as-asked")):
            got = await fleet_.permit(
                rewritten, accept_signature=f'sig1=("{covered}");tag="web-bot-auth"', max_wait=3600
            )
            assert got["unsigned"] == reason


async def test_a_slot_far_away_is_not_signed_for(store_url: str, file: Path) -> None:
    async with fleet(store_url, file) as fleet_:
        url = f"{fleet_.sites['slow']}/a"
        await fleet_.permit(url, sign=False, cost=32, max_wait=3600)
        got = await fleet_.permit(url, max_wait=3600)
        assert got["wait"] > 300
        assert (got["permit"] is not None, got["signed"], got["unsigned"]) == (True, None, "too-far")


async def overridden(fleet_: Fleet, kind: str, action: str, headers: dict[str, str]) -> None:
    body = {"scope": fleet_.sites[kind], "action": action, "reason": "test"}
    response = await fleet_.service.client.put(f"/v1/overrides/{kind}-{action}", json=body, headers=headers)
    assert response.status_code < 300, response.text


def questions(fleet_: Fleet) -> Iterator[dict[str, Any]]:
    """Every verdict, reason, scheme, kind of host, agent and slot, in one order."""
    paths, agents, waits = ("/a", "/private/a"), ("AcmeBot", "PlainBot", "BareBot", "Googlebot"), (0, 60, 3600)
    signed = {"agent": "AcmeBot", "max_wait": 3600, "sign": True}
    yield {**signed, "url": f"{fleet_.sites['unknown']}/a", "wait": 0}
    for kind in ("others", "gone", "down", "human"):
        yield {**signed, "url": f"{fleet_.sites[kind]}/a"}
    yield {**signed, "url": f"{fleet_.sites['complex']}/{'a' * 2000}", "dialect": "v2"}
    yield {**signed, "url": f"{fleet_.sites['usage']}/a", "purpose": "ai-train", "enforce": True}
    yield {**signed, "url": f"{fleet_.sites['rules']}/robots.txt"}
    yield {**signed, "url": "https://10.0.0.1/a"}
    yield {**signed, "url": f"{fleet_.sites['others'].replace('.com', '.com.')}/a"}
    yield {**signed, "url": f"{fleet_.sites['gone']}/a", "sign": False}
    for _ in range(2):
        yield {**signed, "url": f"{fleet_.sites['far']}/a", "cost": 100}
    sites = [fleet_.sites[kind] for kind in ("rules", "missing", "forbidden", "failing", "empty", "slow", "http")]
    for site, path, agent, wait in product(sites, paths, agents, waits):
        yield {"url": site + path, "agent": agent, "max_wait": wait, "sign": True}
    yield {"url": "nonsense", "agent": "AcmeBot", "sign": True}


async def test_no_signature_without_an_allow_and_a_slot(
    store_url: str, file: Path, key: Ed25519PrivateKey, tmp_path: Path
) -> None:
    keys = write_keys(tmp_path / "keys.toml")
    seen: dict[str, set[Any]] = {"reasons": set(), "unsigned": set(), "verdicts": set()}
    signed = 0

    def check(name: str, question: dict[str, Any], got: dict[str, Any]) -> None:
        nonlocal signed
        if "problem" in got or got.get("signed") is None:
            assert "Signature" not in json.dumps(got)
            if "problem" not in got:
                seen["unsigned"].add(got.get("unsigned"))
                seen["verdicts"].add(got["verdict"])
                seen["reasons"].add(got["reason"])
            return
        assert name in MAY
        assert question["sign"] is True
        assert question["url"].startswith("https://")
        assert question["agent"] == "AcmeBot"
        assert (got["verdict"], got["wait"] <= 300) == ("allow", True)
        assert got["permit"]
        verified(question["url"], got["signed"], key)
        seen["reasons"].add(got["reason"])
        signed += 1

    async with fleet(store_url, file, api_keys_file=tmp_path / "keys.toml", on_forbidden="deny") as fleet_:
        ops = {"X-API-Key": keys["ops"]}
        await overridden(fleet_, "missing", "deny", ops)
        await overridden(fleet_, "failing", "allow", ops)
        for name, text_ in {**keys, "none": "", "unknown": "signer.nonsense"}.items():
            headers = {"X-API-Key": text_} if text_ else {}
            asked = list(questions(fleet_))
            response = await fleet_.service.client.post("/v1/permits/batch", json={"items": asked}, headers=headers)
            if name in ("none", "unknown"):
                assert (response.status_code, "Signature" in response.text) == (401, False)
                continue
            for question, got in zip(asked, response.json()["permits"], strict=True):
                check(name, question, got)
            for question in asked[::7]:
                answer = await fleet_.service.client.post("/v1/permits", json=question, headers=headers)
                check(name, question, answer.json() if answer.status_code == 200 else {"problem": answer.json()})
    assert signed > 10
    assert seen["verdicts"] == set(Permission)
    assert seen["reasons"] == set(Reason)
    assert {scope for scope, _ in KEYS.values()} == set(Scope)
    # The two have tests of their own.
    assert seen["unsigned"] == {None, *get_args(Unsigned)} - {"not-as-asked", "key-revoked"}


async def test_a_key_signs_only_as_the_profiles_that_it_names(store_url: str, file: Path, tmp_path: Path) -> None:
    keys = write_keys(tmp_path / "keys.toml")
    async with fleet(store_url, file, api_keys_file=tmp_path / "keys.toml") as fleet_:
        url = f"{fleet_.sites['rules']}/a"
        for name, text_ in keys.items():
            got = await fleet_.permit(url, key=text_)
            assert got.get("problem") == (None if name in MAY else "may-not-sign"), name
        body = {"url": url, "agent": "AcmeBot", "sign": True}
        headers = {"X-API-Key": keys["other"]}
        response = await fleet_.service.client.post("/v1/permits", json=body, headers=headers)
        assert response.status_code == 403
        assert response.json()["detail"] == (
            "The API key 'other' may not sign as the profile 'acme' of 'AcmeBot'. Ask the operator of this service to "
            "add it to the key's `sign`, or ask without `sign`."
        )
        items = [body, {**body, "sign": False}]
        response = await fleet_.service.client.post("/v1/permits/batch", json={"items": items}, headers=headers)
        refused, given = response.json()["permits"]
        assert refused["problem"]["type"].endswith(":may-not-sign")
        assert given["permit"]


async def test_a_revoked_key_signs_nothing_from_the_reload_on(store_url: str, file: Path, tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    keys = write_keys(path)
    async with fleet(store_url, file, api_keys_file=path) as fleet_:
        url = f"{fleet_.sites['empty']}/a"
        assert (await fleet_.permit(url, key=keys["signer"]))["signed"]
        path.write_text(path.read_text().replace('sign = ["acme"]', ""))
        os.kill(os.getpid(), signal.SIGHUP)

        async def problem() -> Any:
            return (await fleet_.permit(url, key=keys["signer"])).get("problem")

        await until(problem, lambda found: found == "may-not-sign")
        assert (await fleet_.permit(url, key=keys["ops-signer"]))["signed"]


@pytest.mark.parametrize(
    ("file_name", "removed", "unsigned"),
    [
        ("keys.toml", 'sign = ["acme"]', "key-revoked"),
        ("agents.toml", f'signature_agent = "{AGENT}"\nprivate_key = "acme.pem"\n', "no-key"),
    ],
)
async def test_nothing_is_signed_by_what_was_revoked_while_it_was_decided(
    store_url: str, file: Path, tmp_path: Path, file_name: str, removed: str, unsigned: str
) -> None:
    keys, changed, ca = write_keys(tmp_path / "keys.toml"), tmp_path / file_name, Authority()
    asked, answer = asyncio.Event(), asyncio.Event()

    async def robots(exchange: Exchange) -> None:
        asked.set()
        await answer.wait()
        await exchange.send(text(404))

    async with serve(robots, text(404), tls=ca.server_context("slow.example.com", "fast.example.com")) as origin:
        names = {"slow.example.com": ["127.0.0.1"], "fast.example.com": ["127.0.0.1"]}
        settings: dict[str, Any] = {"api_keys_file": tmp_path / "keys.toml", "agents_file": file, "fetch_timeout": 30.0}
        async with running(store_url, names=names, tls=ca.client_context(), **settings) as service:
            fleet_ = Fleet(service, {})
            slow = f"https://slow.example.com:{origin.port}/a"
            got = asyncio.create_task(fleet_.permit(slow, key=keys["signer"], wait=30))
            await asked.wait()
            changed.write_text(changed.read_text().replace(removed, ""))
            os.kill(os.getpid(), signal.SIGHUP)

            async def refusal() -> Any:
                found = await fleet_.permit(f"https://fast.example.com:{origin.port}/a", key=keys["signer"])
                return found.get("problem") or found["unsigned"]

            await until(refusal, lambda why: why in ("may-not-sign", "no-key"))
            answer.set()
            permit = await got
    assert (permit["permit"] is not None, permit["signed"], permit["unsigned"]) == (True, None, unsigned)


async def test_the_nonce_finds_the_decision_in_the_log(store_url: str, file: Path, tmp_path: Path) -> None:
    keys = write_keys(tmp_path / "keys.toml")
    log = tmp_path / "decisions.jsonl"
    settings = {"api_keys_file": tmp_path / "keys.toml", "decision_log": str(log), "decision_log_share": 0.000001}
    async with fleet(store_url, file, **settings) as fleet_:
        url = f"{fleet_.sites['rules']}/a"
        got = await fleet_.permit(url, key=keys["signer"])
        await fleet_.permit(f"{fleet_.sites['rules']}/private/", key=keys["signer"])
        await fleet_.permit(url, key=keys["signer"], sign=False)
    nonce = re.search(r';nonce="([^"]+)"', got["signed"]["headers"]["Signature-Input"])
    assert nonce is not None
    assert len(base64.b64decode(nonce[1])) == 64
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    [line] = [line for line in lines if line.get("nonce") == nonce[1]]
    assert (line["key"], line["url"], line["agent"], line["verdict"]) == ("signer", url, "AcmeBot", "allow")
    assert line["version"] is not None
    assert len([line for line in lines if "nonce" in line]) == 1


async def test_without_api_keys_every_caller_may_sign(store_url: str, file: Path) -> None:
    async with fleet(store_url, file) as fleet_:
        for headers in ({}, TOKEN_HEADER):
            body = {"url": f"{fleet_.sites['rules']}/a", "agent": "AcmeBot", "sign": True}
            response = await fleet_.service.client.post("/v1/permits", json=body, headers=headers)
            assert response.json()["signed"]
