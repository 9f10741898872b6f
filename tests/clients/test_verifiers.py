"""Verifiers that are not ours accept what the service signs, and nothing that is changed."""

import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from app.identity.coverage import LIFETIME
from app.identity.signer import AgentForm
from app.identity.well_known import DIRECTORY_PATH
from tests.api.service import Service, running
from tests.clients.crawling import ROOT
from tests.clients.verifiers import BOTGATE, BOTGATE_PROFILES, Directory, Message, SignedRequest, Verified, verified
from tests.identity.agents import HOST, write_agents, write_key
from tests.origins import Authority, serve, text

pytestmark = [
    pytest.mark.usefixtures("store_client", "packages"),
    pytest.mark.timeout(600),
]  # npm may have to install them

SITE = "www.example.com"
READ_BY: Final[dict[AgentForm, set[str]]] = {
    "dictionary": {"http-message-sig", "http-message-signatures", "botgate ietf-draft-00"},
    "string": {"http-message-sig", "http-message-signatures", "botgate cloudflare-2026-10", "web-bot-auth"},
}
"""The verifiers that read a form of Signature-Agent, as docs/how-to/sign-requests.md says."""

DIRECTORY_READERS = ("http-message-sig", "http-message-signatures")
CLOCK_SKEW = 5
"""Seconds for which some of them accept a signature that has expired."""

FIELDS = ("Signature-Agent", "Signature-Input", "Signature")
each_form = pytest.mark.parametrize("form", READ_BY)

BOTGATES = {f"botgate {profile}" for profile in BOTGATE_PROFILES}


@pytest.fixture(scope="module")
def packages() -> None:
    """Those of npm."""
    subprocess.run(["make", "--silent", "clients/javascript/node_modules/.package-lock.json"], cwd=ROOT, check=True)


def readers(form: AgentForm) -> set[str]:
    return READ_BY[form] - (BOTGATES if BOTGATE is None else set())


def accepted_by(found: Verified) -> set[str]:
    return {name for name, count in found.items() if count}


class Signing:
    """A service that signs, and a site."""

    def __init__(self, service: Service, port: int, form: AgentForm) -> None:
        self.service = service
        self.site = f"{SITE}:{port}"
        parameters = {"key": "sig1"} if form == "dictionary" else {}
        self.agent = {"name": "signature-agent", "parameters": parameters}

    async def request(self) -> SignedRequest:
        path = "/a/b%20c;d=1"
        body = {"url": f"https://{self.site}{path}?e=2", "agent": "AcmeBot", "sign": True}
        answer = (await self.service.client.post("/v1/permits", json=body)).json()
        assert answer["wait"] < 4  # web-bot-auth accepts no `created` in the future, which is 5 s before the slot
        signed = answer["signed"]
        headers = {name: signed["headers"][name] for name in FIELDS}
        return SignedRequest(signed["method"], signed["host"], path, headers, self.agent)

    async def directory(self) -> Directory:
        response = await self.service.client.get(DIRECTORY_PATH, headers={"Host": HOST})
        headers = {name.title(): value for name, value in response.headers.items()}
        return Directory(HOST, DIRECTORY_PATH, headers, response.text)


@asynccontextmanager
async def signing(store_url: str, tmp_path: Path, form: AgentForm) -> AsyncIterator[Signing]:
    """Its clock is right."""
    ca = Authority()
    for name in ("now.pem", "next.pem"):
        write_key(tmp_path / name)
    more = f'signature_agent_form = "{form}"'
    async with AsyncExitStack() as stack:
        origin = await stack.enter_async_context(serve(text(404), tls=ca.server_context(SITE)))
        service = await stack.enter_async_context(
            running(
                store_url,
                names={SITE: ["127.0.0.1"]},
                tls=ca.client_context(),
                agents_file=write_agents(tmp_path / "agents.toml", "now.pem", ["next.pem"], more),
            )
        )
        service.now = time.time()
        yield Signing(service, origin.port, form)


def changes(value: str) -> Iterator[tuple[int, str]]:
    """Every value that has another character at one place, with this place."""
    for at, character in enumerate(value):
        other = chr(ord(character) + 1) if character < "~" else " "
        yield at, value[:at] + other + value[at + 1 :]


def with_part(message: Message, part: str, value: str) -> Message:
    if part in message.headers:
        return replace(message, headers={**message.headers, part: value})
    return replace(message, **{part: value})  # type: ignore[arg-type]


def padded_in(field: str) -> list[int]:
    """The last character of each signature: it has two bits of it, and four of padding, which most verifiers ignore.

    RFC 9651 4.2.7 has them do so.
    """
    return [at for at in range(len(field)) if field.startswith("==:", at + 1)]


@each_form
async def test_the_form_says_who_reads_a_signature(store_url: str, tmp_path: Path, form: AgentForm) -> None:
    async with signing(store_url, tmp_path, form) as it:
        directory = await it.directory()
        [found] = await verified(directory, [await it.request()])
    assert accepted_by(found) == readers(form)


@each_form
async def test_a_signature_is_for_one_page_and_a_minute(store_url: str, tmp_path: Path, form: AgentForm) -> None:
    async with signing(store_url, tmp_path, form) as it:
        request = await it.request()
        signer = it.service.app.state.services.profiles()["acme"].signer
        expired = signer.headers(request.host, request.path, time.time() - LIFETIME - CLOCK_SKEW - 1)
        unnamed = {name: value for name, value in request.headers.items() if name != "Signature-Agent"}
        refused: list[Message] = [
            replace(request, headers=expired),
            replace(request, host=f"www.example.org:{it.site.rpartition(':')[2]}"),
            replace(request, host=SITE),
            replace(request, path="/a/b"),
            replace(request, method="HEAD"),
            replace(request, headers=unnamed),
            replace(request, headers={**expired, "Signature": request.headers["Signature"]}),
        ]
        *found, last = await verified(await it.directory(), [*refused, request])
    assert [accepted_by(one) for one in found] == [set()] * len(refused)
    assert accepted_by(last) == readers(form)


@each_form
@pytest.mark.parametrize("part", ["method", "host", "path", *FIELDS])
async def test_a_request_with_a_changed_byte_is_refused(
    store_url: str, tmp_path: Path, form: AgentForm, part: str
) -> None:
    async with signing(store_url, tmp_path, form) as it:
        request = await it.request()
        value = request.headers[part] if part in FIELDS else getattr(request, part)
        changed = list(changes(value))
        messages = [with_part(request, part, other) for _, other in changed]
        *found, last = await verified(await it.directory(), [*messages, request])
    assert accepted_by(last) == readers(form)
    accepted = {at: accepted_by(one) for (at, _), one in zip(changed, found, strict=True) if accepted_by(one)}
    assert accepted == (dict.fromkeys(padded_in(value), readers(form) - BOTGATES) if part == "Signature" else {})


async def test_a_directory_is_signed_by_its_keys_for_its_host_and_a_day(store_url: str, tmp_path: Path) -> None:
    async with signing(store_url, tmp_path, "dictionary") as it:
        now = it.service.now
        it.service.now = now - 24 * 3600
        expired = await it.directory()
        it.service.now = now
        directory = await it.directory()
    elsewhere = replace(directory, host="bot.example.org")
    found = await verified(directory, [directory, elsewhere, expired])
    assert found == [dict.fromkeys(DIRECTORY_READERS, count) for count in (2, 0, 0)]


@pytest.mark.parametrize("part", ["host", "body", "Content-Digest", "Signature-Input", "Signature"])
async def test_a_directory_with_a_changed_byte_lacks_a_signature(store_url: str, tmp_path: Path, part: str) -> None:
    """The path is not among what the draft has a directory cover."""
    async with signing(store_url, tmp_path, "dictionary") as it:
        directory = await it.directory()
    value = directory.headers[part] if part in directory.headers else getattr(directory, part)
    changed = list(changes(value))
    messages = [with_part(directory, part, other) for _, other in changed]
    *found, last = await verified(directory, [*messages, directory])
    assert last == dict.fromkeys(DIRECTORY_READERS, 2)
    accepted = {at for (at, _), one in zip(changed, found, strict=True) if 2 in one.values()}
    assert accepted == (set(padded_in(value)) if part == "Signature" else set())
