"""Signatures are those of the drafts and of the library, and cover a path only if every client sends it as written."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import httpx2
import pytest
import requests
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from http_message_signatures import HTTPMessageSigner, HTTPMessageVerifier, InvalidSignature, MappingKeyResolver
from http_message_signatures.algorithms import ED25519
from w3lib.url import safe_url_string

from app.identity.coverage import LABEL, LIFETIME, SKEW, TAG, Mark, covered_path
from app.identity.keys import read_key, thumbprint
from app.identity.signer import AgentForm, RequestSigner
from robots_core.origin import Origin, read_target
from tests.origins import LoopbackOrigin, serve, text

CASES = json.loads((Path(__file__).parents[1] / "cases" / "web-bot-auth.json").read_text("utf-8"))
AGENT = "https://bot.example.com"
NONCE = "bm9uY2U="
MARK = Mark(LABEL, NONCE)
AGENT_FIELDS: dict[AgentForm, tuple[str, str]] = {
    "dictionary": (f'sig1="{AGENT}"', '"signature-agent";key="sig1"'),
    "string": (f'"{AGENT}"', '"signature-agent"'),
}


@dataclass
class Message:
    method: str
    url: str
    headers: dict[str, str]


@pytest.mark.parametrize("case", CASES["requests"], ids=lambda case: case["source"])
def test_the_vectors_of_the_drafts_come_out_byte_for_byte(case: dict[str, Any]) -> None:
    key, mark = read_key(json.dumps(CASES["key"])), Mark(case["label"], case["nonce"])
    signer = RequestSigner(key, case["agent"], case["form"], member=case["member"])
    assert signer.sign("example.com", None, case["created"], case["expires"], mark) == {
        "Signature-Agent": case["signature_agent"],
        "Signature-Input": case["signature_input"],
        "Signature": case["signature"],
    }


def signed_by_the_library(
    key: Ed25519PrivateKey, form: AgentForm, url: str, covered: tuple[str, ...]
) -> dict[str, str]:
    agent, component = AGENT_FIELDS[form]
    message = Message("GET", url, {"Signature-Agent": agent})
    name = thumbprint(key)
    resolver = MappingKeyResolver(public_keys={}, private_keys={name: key})
    HTTPMessageSigner(signature_algorithm=ED25519, key_resolver=resolver).sign(
        message,
        key_id=name,
        created=datetime.fromtimestamp(1000, UTC),
        expires=datetime.fromtimestamp(1065, UTC),
        nonce=NONCE,
        label=LABEL,
        tag=TAG,
        covered_component_ids=(*covered, component),
    )
    return message.headers


@pytest.mark.parametrize("form", AGENT_FIELDS)
@pytest.mark.parametrize(
    "url",
    [
        "https://www.example.com/",
        "https://WWW.example.com:443/a/b%20c;d=1?b=2",
        "https://www.example.com:8443/%25s%E2%82%AC~!$&'()*+,;=:@",
        "https://[2001:db8::1]:8443/a//b/",
        "http://a_b.example/x",
    ],
)
def test_a_template_signs_as_the_library_does(form: AgentForm, url: str) -> None:
    key = Ed25519PrivateKey.generate()
    signer, target = RequestSigner(key, AGENT, form), read_target(url)
    path = covered_path(target.path)
    assert path is not None
    authority = target.origin.authority
    assert signer.sign(authority, path, 1000, 1065, MARK) == signed_by_the_library(
        key, form, url, ('"@authority"', '"@method"', '"@path"')
    )
    assert signer.sign(authority, None, 1000, 1065, MARK) == signed_by_the_library(key, form, url, ('"@authority"',))


@pytest.mark.parametrize("form", AGENT_FIELDS)
def test_what_a_signature_covers_cannot_be_changed(form: AgentForm) -> None:
    key = Ed25519PrivateKey.generate()
    headers = RequestSigner(key, AGENT, form).headers("www.example.com", "/a", datetime.now(UTC).timestamp())
    keys: dict[str, Any] = {thumbprint(key): key.public_key()}
    verifier = HTTPMessageVerifier(
        signature_algorithm=ED25519, key_resolver=MappingKeyResolver(public_keys=keys, private_keys={})
    )

    def verify(method: str = "GET", url: str = "https://www.example.com/a", **changed: str) -> None:
        verifier.verify(Message(method, url, {**headers, **changed}), expect_tag=TAG)

    verify()
    verify(url="https://www.example.com/a?not=covered")
    refused: list[dict[str, str]] = [
        {"method": "HEAD"},
        {"url": "https://www.example.com/b"},
        {"url": "https://www.example.org/a"},
        {"url": "https://www.example.com:8443/a"},
        {"Signature-Agent": headers["Signature-Agent"].replace(".com", ".org")},
    ]
    for name in ("created", "expires", "nonce"):
        found = re.search(rf';{name}="?', headers["Signature-Input"])
        assert found is not None
        at = found.end()
        digit = "7" if headers["Signature-Input"][at] == "8" else "8"
        changed = headers["Signature-Input"][:at] + digit + headers["Signature-Input"][at + 1 :]
        refused.append({"Signature-Input": changed})
    for change in refused:
        with pytest.raises(InvalidSignature):
            verify(**change)


def test_a_signature_holds_from_just_before_its_instant() -> None:
    signer = RequestSigner(Ed25519PrivateKey.generate(), AGENT)
    first, second = (signer.headers("a.example", "/", 1e9 + 0.9)["Signature-Input"] for _ in range(2))
    assert f";created={10**9 - SKEW};" in first
    assert f";expires={10**9 + LIFETIME};" in first
    assert first != second  # by their nonces


@pytest.mark.parametrize(
    "origin", [Origin("http", "2001:db8::1", 8080), Origin("https", "a_b.example", 443), Origin("http", "1.2.3.4", 80)]
)
def test_every_kind_of_host_can_be_signed_for(origin: Origin) -> None:
    key = Ed25519PrivateKey.generate()
    signed = RequestSigner(key, AGENT).sign(origin.authority, None, 1000, 1065, MARK)
    assert signed == signed_by_the_library(key, "dictionary", f"{origin.key}/", ('"@authority"',))


# Paths.

ESCAPES = [f"%{byte:02X}" for byte in range(256) if covered_path(f"/a%{byte:02X}b")]
PLAIN = [chr(byte) for byte in range(0x21, 0x7F) if covered_path(f"/a{chr(byte)}b") and chr(byte) != "?"]
EVERYTHING = f"/a{''.join(PLAIN)}/{''.join(ESCAPES)}//.b/..c/%5C/"


def by_requests(url: str) -> None:
    requests.get(url, timeout=10)


async def by_aiohttp(url: str) -> None:
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        await response.read()


async def by_httpx(url: str) -> None:
    async with httpx.AsyncClient() as client:
        await client.get(url)


async def by_httpx2(url: str) -> None:
    async with httpx2.AsyncClient() as client:
        await client.get(url)


async def by_node(url: str) -> None:
    process = await asyncio.create_subprocess_exec("node", "-e", "fetch(process.argv[1])", url)
    assert await process.wait() == 0


CLIENTS: dict[str, Callable[[str], Awaitable[None]]] = {
    "requests": lambda url: asyncio.to_thread(by_requests, url),
    "aiohttp": by_aiohttp,
    "httpx": by_httpx,
    "httpx2": by_httpx2,
    "node": by_node,
}


@asynccontextmanager
async def site() -> AsyncIterator[LoopbackOrigin]:
    async with serve(text(200, "")) as origin:
        yield origin


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_covered_path_is_sent_as_it_is_written(client: str) -> None:
    assert covered_path(EVERYTHING) == EVERYTHING
    async with site() as origin:
        await CLIENTS[client](origin.url + EVERYTHING)
    assert origin.requests[0].split(b" ")[1].decode() == EVERYTHING


def test_scrapy_sends_a_covered_path_as_it_is_written() -> None:
    assert safe_url_string(f"https://a.example{EVERYTHING}") == f"https://a.example{EVERYTHING}"


@pytest.mark.parametrize(
    "path",
    [
        "/a/../b",
        "/a/./b",
        "/a/..",
        "/.",
        "//a",
        "/a%7Eb",
        "/a%2Eb",
        "/a%2Fb",
        "/a%c3%a4",
        "/%",
        "/%zz",
        "/a b",
        "/ä",
        '/a"b',
        "/a[1]",
        "/a|b",
        "/a^b",
        "/a\\b",
        "/a`b",
        "/a{b}",
        "/a\nb",
        "/a\n",
        "*",
        "",
    ],
)
def test_a_path_that_some_client_changes_is_not_covered(path: str) -> None:
    assert covered_path(path) is None


def test_the_query_is_never_covered() -> None:
    assert covered_path("/a?b=/../c") == "/a"
    assert len(ESCAPES) > 150
    assert len(PLAIN) > 75
