"""Verifiers of signatures that are not ours, used as a site would, with the keys of a directory."""

import asyncio
import base64
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, run
from types import SimpleNamespace
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from http_message_signatures import HTTPMessageVerifier, InvalidSignature, MappingKeyResolver
from http_message_signatures.algorithms import ED25519

from app.identity.coverage import TAG
from app.identity.directory import DIRECTORY_TAG
from tests.clients.crawling import ROOT

BOTGATE: Final = shutil.which("botgate", path=str(Path(sys.executable).parent))
"""The program, or None on a platform for which it has no wheel."""

BOTGATE_PROFILES: Final = ("ietf-draft-00", "cloudflare-2026-10")

Verified = Mapping[str, int]
"""How many signatures of a message hold, by the verifier's name."""


@dataclass(frozen=True)
class SignedRequest:
    """A request as a site receives it. `agent` is the component Signature-Agent, as http-message-sig has it."""

    method: str
    host: str
    path: str
    headers: Mapping[str, str]
    agent: Any


@dataclass(frozen=True)
class Directory:
    """A directory of keys as a site receives it."""

    host: str
    path: str
    headers: Mapping[str, str]
    body: str


Message = SignedRequest | Directory


async def verified(directory: Directory, messages: Sequence[Message]) -> list[Verified]:
    """What each verifier says of each message. All have the keys of the directory."""
    each = [asyncio.to_thread(by, directory, messages) for by in (_by_node, _by_python, _by_botgate)]
    found = zip(*await asyncio.gather(*each), strict=True)
    return [{name: count for of_some in of_one for name, count in of_some.items()} for of_one in found]


def _by_node(directory: Directory, messages: Sequence[Message]) -> list[Verified]:
    command = ["node", str(ROOT / "clients" / "javascript" / "test" / "verify.js")]
    asked = json.dumps({"directory": asdict(directory), "messages": [asdict(message) for message in messages]})
    found: list[Verified] = json.loads(run(command, input=asked, stdout=PIPE, text=True, check=True).stdout)
    return found


def _by_python(directory: Directory, messages: Sequence[Message]) -> list[Verified]:
    keys: dict[str, Any] = {
        key["kid"]: Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(key["x"] + "="))
        for key in json.loads(directory.body)["keys"]
    }
    resolver = MappingKeyResolver(public_keys=keys, private_keys={})
    verifier = HTTPMessageVerifier(signature_algorithm=ED25519, key_resolver=resolver)

    def count(message: Message) -> int:
        url = f"https://{message.host}{message.path}"
        try:
            if isinstance(message, SignedRequest):
                received = SimpleNamespace(method=message.method, url=url, headers=message.headers)
                return len(verifier.verify(received, expect_tag=TAG))
            request = SimpleNamespace(method="GET", url=url, headers={})
            response = SimpleNamespace(status_code=200, headers=message.headers, request=request)
            return len(verifier.verify(response, expect_tag=DIRECTORY_TAG, body=message.body.encode()))
        except InvalidSignature:
            return 0

    return [{"http-message-signatures": count(message)} for message in messages]


def _by_botgate(directory: Directory, messages: Sequence[Message]) -> list[Verified]:
    """It verifies requests alone."""
    if BOTGATE is None:
        return [{}] * len(messages)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(4) as threads:
        keys = Path(folder, "directory.json")
        keys.write_text(directory.body)

        def count(number: int, message: SignedRequest, profile: str) -> int:
            request = Path(folder, f"{number}-{profile}.http")
            lines = [f"{message.method} {message.path} HTTP/1.1", f"Host: {message.host}"]
            lines += [f"{name}: {value}" for name, value in message.headers.items()]
            request.write_text("\r\n".join([*lines, "", ""]), newline="")
            options = ["--jwks", str(keys), "--profile", profile, "--context", f"https://{message.host}/"]
            ended = run(
                [str(BOTGATE), "verify", request, *options], cwd=folder, stdout=DEVNULL, stderr=DEVNULL, check=False
            )
            return int(ended.returncode == 0)

        def verified_by(number: int, message: Message) -> Verified:
            if isinstance(message, Directory):
                return {}
            return {f"botgate {profile}": count(number, message, profile) for profile in BOTGATE_PROFILES}

        return list(threads.map(verified_by, range(len(messages)), messages))
