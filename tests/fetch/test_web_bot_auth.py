"""Signed fetches (RFC 9421): a site verifies each request over a real socket, by the library's verifier."""

import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from http_message_signatures import HTTPMessageVerifier, InvalidSignature, MappingKeyResolver, VerifyResult
from http_message_signatures.algorithms import ED25519

from app.fetch.client import Fetcher
from app.fetch.guard import AddressGuard, PortPolicy
from app.fetch.profile import FetchProfile
from app.identity.coverage import LIFETIME, SKEW, TAG, Covers
from app.identity.keys import read_key, thumbprint
from app.identity.signer import RequestSigner
from app.main.agents_file import load
from robots_core.origin import Origin
from robots_core.robots.access import Successful
from tests.origins import NO_TLS, LoopbackOrigin, Names, redirect, serve, text

AGENT = "https://bot.example.com"
ROBOTS = "User-agent: *\nDisallow: /private\n"
COVERED = ('"@authority"', '"signature-agent";key="sig1"')


@dataclass
class Received:
    """A request as the site has it."""

    method: str
    url: str
    headers: dict[str, str]


def received(request: bytes) -> Received:
    first, *lines = request.decode("ascii").split("\r\n\r\n")[0].split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    method, target, _ = first.split(" ")
    return Received(method, f"http://{headers['Host']}{target}", headers)


PATH = ('"@authority"', '"@method"', '"@path"', '"signature-agent";key="sig1"')


def verify(request: Received, key: Ed25519PrivateKey) -> VerifyResult:
    """The signature of a request. Raises InvalidSignature."""
    keys: dict[str, Any] = {thumbprint(key): key.public_key()}
    verifier = HTTPMessageVerifier(
        signature_algorithm=ED25519, key_resolver=MappingKeyResolver(public_keys=keys, private_keys={})
    )
    [found] = verifier.verify(request, expect_tag=TAG, require_components=COVERED)
    return found


def covered(found: VerifyResult) -> tuple[str, ...]:
    """The components that a signature covers, without its parameters."""
    return tuple(found.covered_components)[:-1]


def fetcher(key: Ed25519PrivateKey, covers: Covers = "path") -> Fetcher:
    """A fetcher whose profile `acme` signs."""
    signer = RequestSigner(key, AGENT, covers=covers)
    return Fetcher(
        profile=FetchProfile("RobotsDecisions/1"),
        profiles=lambda: {"acme": FetchProfile("AcmeBot/2.0", signer=signer)},
        guard=AddressGuard([ip_network("127.0.0.1/32")]),
        ports=PortPolicy(every=True),
        resolver=Names({"www.example.com": ["127.0.0.1"], "other.example": ["127.0.0.1"]}),
        ssl_context=NO_TLS,
    )


def profiled(origin: LoopbackOrigin) -> Origin:
    return origin.named("www.example.com").with_profile("acme")


async def test_a_site_can_verify_who_asks() -> None:
    key = Ed25519PrivateKey.generate()
    async with serve(text(200, ROBOTS)) as origin:
        fetched = await fetcher(key).fetch(profiled(origin))
    assert isinstance(fetched.access, Successful)
    request = received(origin.requests[0])
    found = verify(request, key)
    assert covered(found) == PATH
    assert found.covered_components['"@path"'] == "/robots.txt"
    assert found.covered_components[COVERED[0]] == f"www.example.com:{origin.port}"
    assert found.covered_components[COVERED[1]] == f'"{AGENT}"'
    assert request.headers["Signature-Agent"] == f'sig1="{AGENT}"'
    assert found.parameters["keyid"] == thumbprint(key)
    assert int(found.parameters["expires"]) - int(found.parameters["created"]) == SKEW + LIFETIME
    assert len(str(found.nonce)) >= 64
    assert request.headers["User-Agent"] == "AcmeBot/2.0"


async def test_a_signature_holds_for_one_site_one_agent_and_one_key() -> None:
    key = Ed25519PrivateKey.generate()
    async with serve(text(200, ROBOTS)) as origin:
        await fetcher(key).fetch(profiled(origin))
    sent = received(origin.requests[0])
    assert verify(sent, key).label == "sig1"
    elsewhere = Received(sent.method, "http://other.example/robots.txt", sent.headers)
    renamed = Received(sent.method, sent.url, {**sent.headers, "Signature-Agent": 'sig1="https://b.example"'})
    for request, used in ((elsewhere, key), (renamed, key), (sent, Ed25519PrivateKey.generate())):
        with pytest.raises(InvalidSignature):
            verify(request, used)


async def test_each_hop_of_a_redirect_is_signed_anew() -> None:
    key = Ed25519PrivateKey.generate()
    async with AsyncExitStack() as stack:
        last = await stack.enter_async_context(serve(text(200, ROBOTS)))
        moved = redirect(f"http://other.example:{last.port}/a%zz/robots.txt")
        first = await stack.enter_async_context(serve(moved))
        fetched = await fetcher(key).fetch(profiled(first))
    assert isinstance(fetched.access, Successful)
    requests = [received(first.requests[0]), received(last.requests[0])]
    # A path with a broken escape is not covered, since the libraries of verifiers cannot read it.
    requests[1].url = f"http://other.example:{last.port}/"
    found = [verify(request, key) for request in requests]
    assert [covered(it) for it in found] == [PATH, COVERED]
    assert [it.covered_components['"@authority"'] for it in found] == [
        f"www.example.com:{first.port}",
        f"other.example:{last.port}",
    ]
    assert len({it.nonce for it in found}) == 2


async def test_a_profile_may_cover_the_host_alone() -> None:
    key = Ed25519PrivateKey.generate()
    async with serve(text(200, ROBOTS)) as origin:
        await fetcher(key, "authority").fetch(profiled(origin))
    request = received(origin.requests[0])
    request.url += "/changed"
    assert covered(verify(request, key)) == COVERED


async def test_only_the_profile_that_asks_for_it_is_signed() -> None:
    key = Ed25519PrivateKey.generate()
    async with serve(text(200, ROBOTS)) as origin:
        await fetcher(key).fetch(origin.named("www.example.com"))
    assert not [name for name in received(origin.requests[0]).headers if name.startswith("Signature")]


# The file of agents.


def pem(key: Ed25519PrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    key = tmp_path / "acme.pem"
    key.write_text(pem(Ed25519PrivateKey.generate()))
    key.chmod(0o600)
    return write(tmp_path / "agents.toml", 'private_key = "acme.pem"')


def write(path: Path, line: str, agent: str = f'signature_agent = "{AGENT}"') -> Path:
    path.write_text(f'[profiles.acme]\nuser_agent = "AcmeBot/2.0"\n{agent}\n{line}\n')
    return path


def test_a_profile_names_its_key_beside_the_file(file: Path) -> None:
    signer = load(file).profiles["acme"].signer
    assert isinstance(signer, RequestSigner)
    assert signer.key_id == thumbprint(read_key((file.parent / "acme.pem").read_text()))


@pytest.mark.parametrize("mode", [0o604, 0o620, 0o666])
def test_a_key_that_others_may_read_is_refused(file: Path, mode: int) -> None:
    (file.parent / "acme.pem").chmod(mode)
    message = f"the profile 'acme' has private_key = 'acme.pem'; its mode is {mode:04o}, so other users may read"
    with pytest.raises(ValueError, match=message):
        load(file)


@pytest.mark.parametrize(
    ("line", "agent", "message"),
    [
        ('private_key = "none.pem"', f'signature_agent = "{AGENT}"', "private_key = 'none.pem'; it cannot be opened"),
        ("", f'signature_agent = "{AGENT}"', "has signature_agent = 'https://bot.example.com', but no private_key"),
        (
            'private_key = "acme.pem"',
            "",
            "has private_key = 'acme.pem', but no signature_agent; a",
        ),
        (
            'private_key = "acme.pem"',
            'signature_agent = "http://a.example"',
            "has signature_agent = 'http://a.example'",
        ),
        ('private_key = "acme.pem"', "signature_agent = 'https://a\"b'", "has signature_agent = 'https://a\"b'"),
        ('private_key = "acme.pem"', 'signature_agent = "https://a.example/"', "expected a bare https origin"),
        ('private_key = "acme.pem"', 'signature_agent = "https://a.example/keys"', "expected a bare https origin"),
        ('private_key = "acme.pem"', 'signature_agent = "https://A.example"', "expected a bare https origin"),
        ('private_key = "acme.pem"', 'signature_agent = "https://a.example:443"', "expected a bare https origin"),
        ('private_key = "acme.pem"', 'signature_agent = "https://u@a.example"', "expected a bare https origin"),
        ('private_key = "acme.pem"', 'signature_agent = "bot.example.com"', "has signature_agent = 'bot.example.com'"),
        (
            'private_key = "acme.pem"\nsignature_agent_form = "list"',
            f'signature_agent = "{AGENT}"',
            "has signature_agent_form = 'list'; expected 'dictionary' or 'string'",
        ),
        (
            'private_key = "acme.pem"\nsignature_covers = "query"',
            f'signature_agent = "{AGENT}"',
            "has signature_covers = 'query'; expected 'path' or 'authority'",
        ),
        ('private_key = ""', f'signature_agent = "{AGENT}"', "has private_key = ''"),
    ],
)
def test_a_signature_that_cannot_be_made_is_refused(file: Path, line: str, agent: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"the profile 'acme' .*{message}"):
        load(write(file, line, agent))


def test_a_key_without_the_extra_says_what_to_install(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "app.identity.keys", None)
    with pytest.raises(ValueError, match=r"extra `signatures`: pip install 'robots-decisions-server\[signatures\]'"):
        load(file)
