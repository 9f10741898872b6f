"""Sign requests: HTTP Message Signatures (RFC 9421) as draft-ietf-webbotauth-httpsig-protocol has them."""

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from http_message_signatures import HTTPMessageSigner
from http_message_signatures.algorithms import ED25519

from app.identity.coverage import LIFETIME, SKEW, Covers, covered_path, new_nonce
from app.identity.keys import thumbprint

TAG = "web-bot-auth"

LABEL = "sig1"
"""The label of the signature, and in the form `dictionary` the key of the Signature-Agent member."""

AgentForm = Literal["dictionary", "string"]
"""How Signature-Agent is written: a dictionary, as the draft has it since its version -00 in the IETF working group,
or the string of the earlier drafts, which some verifiers still expect.
"""

_AUTHORITY, _PATH, _NONCE = "authority-stand-in.invalid", "/path-stand-in", "nonce-stand-in"
_CREATED, _EXPIRES = 253402214401, 253402214402
"""Values of a template's request, which stand for those of the requests that are signed by it."""


class SignatureAgent(NamedTuple):
    """The value of the Signature-Agent field, and the component by which a signature covers it."""

    value: str
    component: str

    @classmethod
    def of(cls, origin: str, form: AgentForm, member: str = LABEL) -> "SignatureAgent":
        """The field for the origin that has the directory of keys."""
        if form == "dictionary":
            return cls(f'{member}="{origin}"', f'"signature-agent";key="{member}"')
        return cls(f'"{origin}"', '"signature-agent"')


@dataclass(frozen=True, slots=True)
class _Request:
    """A request as the library reads it."""

    method: str
    url: str
    headers: Mapping[str, str]


class _Template(NamedTuple):
    """The signature base and the value of Signature-Input, to be filled in by the operator %."""

    base: str
    signature_input: str


class RequestSigner:
    """Signs GET requests with `key`; sites find the public key in the directory that `agent` names.

    The library makes what is signed, once for all requests. So a signature takes little longer than Ed25519 itself, and
    a tenth of the time in which the library makes one.
    """

    def __init__(
        self, agent: SignatureAgent, key: Ed25519PrivateKey, label: str = LABEL, covers: Covers = "path"
    ) -> None:
        """`key_id` is the thumbprint of the key."""
        self.key_id = thumbprint(key)
        self._key = key
        self._agent = agent
        self._label = label
        self._covers = covers
        self._host_only = self._template('"@authority"')
        self._with_path = self._template('"@authority"', '"@method"', '"@path"')

    def headers(self, authority: str, path: str, at: float, nonce: str | None = None) -> dict[str, str]:
        """The header fields of a GET that is sent from the instant `at` (Unix seconds) on, for LIFETIME.

        `authority` is that of an Origin. `path` is that of the request, with its query.
        """
        begin, covered = math.floor(at), covered_path(path) if self._covers == "path" else None
        return self.sign(authority, covered, begin - SKEW, begin + LIFETIME, nonce or new_nonce())

    def sign(self, authority: str, path: str | None, created: int, expires: int, nonce: str) -> dict[str, str]:
        """The header fields of a GET that is signed with these parameters. `path` is one of `covered_path`, or None."""
        template = self._host_only if path is None else self._with_path
        values = {"authority": authority, "path": path, "created": created, "expires": expires, "nonce": nonce}
        signature = self._key.sign((template.base % values).encode("ascii"))
        return {
            "Signature-Agent": self._agent.value,
            "Signature-Input": template.signature_input % values,
            "Signature": f"{self._label}=:{base64.b64encode(signature).decode('ascii')}:",
        }

    def _template(self, *components: str) -> _Template:
        prepared = HTTPMessageSigner(signature_algorithm=ED25519).prepare(
            _Request("GET", f"https://{_AUTHORITY}{_PATH}", {"Signature-Agent": self._agent.value}),
            key_id=self.key_id,
            created=datetime.fromtimestamp(_CREATED, UTC),
            expires=datetime.fromtimestamp(_EXPIRES, UTC),
            nonce=_NONCE,
            label=self._label,
            tag=TAG,
            covered_component_ids=(*components, self._agent.component),
        )
        return _Template(
            _with_places(prepared.signature_base.decode("ascii")),
            _with_places(f"{self._label}={prepared.signature_params}"),
        )


def _with_places(text: str) -> str:
    text = text.replace("%", "%%")
    for stand_in, place in (
        (_AUTHORITY, "%(authority)s"),
        (_PATH, "%(path)s"),
        (str(_CREATED), "%(created)d"),
        (str(_EXPIRES), "%(expires)d"),
        (_NONCE, "%(nonce)s"),
    ):
        text = text.replace(stand_in, place)
    return text
