"""Sign requests: HTTP Message Signatures (RFC 9421) as draft-ietf-webbotauth-httpsig-protocol has them."""

import base64
import math
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from http_message_signatures import HTTPMessageSigner
from http_message_signatures.algorithms import ED25519

from app.identity.accept_signature import mark_wanted
from app.identity.coverage import LABEL, LIFETIME, SKEW, TAG, Covers, Mark, covered_path, new_nonce
from app.identity.keys import thumbprint

AgentForm = Literal["dictionary", "string"]
"""How Signature-Agent is written: a dictionary, as the draft has it since its version -00 in the IETF working group,
or the string of the earlier drafts, which some verifiers still expect.
"""

_STAND_INS = {
    "authority": "authority-stand-in.invalid",
    "path": "/path-stand-in",
    "nonce": "nonce-stand-in",
    "created": "253402214401",
    "expires": "253402214402",
}
"""What a template's request has in place of the values of those that are signed by it."""


class RequestSigner:
    """Signs GET requests with `key`; sites find the public key in the directory of `origin`.

    The library makes what is signed, once for all requests. So a signature takes little longer than Ed25519 itself, and
    a tenth of the time in which the library makes one.
    """

    def __init__(
        self,
        key: Ed25519PrivateKey,
        origin: str,
        form: AgentForm = "dictionary",
        covers: Covers = "path",
        member: str = LABEL,
    ) -> None:
        """`member` is the key of the origin in the dictionary. `key_id` is the thumbprint of the key."""
        self._key = key
        self.key_id = thumbprint(key)
        self._covers = covers
        in_dictionary = form == "dictionary"
        self._agent = f'{member}="{origin}"' if in_dictionary else f'"{origin}"'
        self._agent_component = f'"signature-agent";key="{member}"' if in_dictionary else '"signature-agent"'
        self._host_only = self._template('"@authority"')
        self._with_path = self._template('"@authority"', '"@method"', '"@path"')

    def mark_wanted(self, field: str, path: str) -> Mark | None:
        """The mark of a signature that fulfils an Accept-Signature of that path with its query; None if none does."""
        covered = {"@authority", "signature-agent", *(() if self._covered(path) is None else ("@method", "@path"))}
        return mark_wanted(field, self.key_id, covered)

    def headers(self, authority: str, path: str, at: float, mark: Mark | None = None) -> dict[str, str]:
        """The header fields of a GET that is sent from the instant `at` (Unix seconds) on, for LIFETIME.

        `authority` is that of an Origin. `path` is that of the request, with its query.
        """
        begin = math.floor(at)
        mark = Mark(LABEL, new_nonce()) if mark is None else mark
        return self.sign(authority, self._covered(path), begin - SKEW, begin + LIFETIME, mark)

    def sign(self, authority: str, path: str | None, created: int, expires: int, mark: Mark) -> dict[str, str]:
        """The header fields of a GET that is signed with these parameters. `path` is one of `covered_path`, or None."""
        base, parameters = self._host_only if path is None else self._with_path
        values = {"authority": authority, "path": path, "created": created, "expires": expires, "nonce": mark.nonce}
        signature = self._key.sign((base % values).encode("ascii"))
        return {
            "Signature-Agent": self._agent,
            "Signature-Input": f"{mark.label}={parameters % values}",
            "Signature": f"{mark.label}=:{base64.b64encode(signature).decode('ascii')}:",
        }

    def _covered(self, path: str) -> str | None:
        return covered_path(path) if self._covers == "path" else None

    def _template(self, *components: str) -> tuple[str, str]:
        """The signature base and the parameters in Signature-Input, to be filled in by the operator %."""
        url = f"https://{_STAND_INS['authority']}{_STAND_INS['path']}"
        prepared = HTTPMessageSigner(signature_algorithm=ED25519).prepare(
            SimpleNamespace(method="GET", url=url, headers={"Signature-Agent": self._agent}),
            key_id=self.key_id,
            created=datetime.fromtimestamp(int(_STAND_INS["created"]), UTC),
            expires=datetime.fromtimestamp(int(_STAND_INS["expires"]), UTC),
            nonce=_STAND_INS["nonce"],
            label=LABEL,
            tag=TAG,
            covered_component_ids=(*components, self._agent_component),
        )
        return _with_places(prepared.signature_base.decode("ascii")), _with_places(prepared.signature_params)


def _with_places(text: str) -> str:
    text = text.replace("%", "%%")
    for name, stand_in in _STAND_INS.items():
        text = text.replace(stand_in, f"%({name})s")
    return text
