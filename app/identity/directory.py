"""The directory of public keys (draft-meunier-webbotauth-httpsig-directory), signed with each of them, and the card."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import NamedTuple, TypeAlias

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from http_message_signatures import HTTPMessageSigner, MappingKeyResolver
from http_message_signatures.algorithms import ED25519

from app.identity.coverage import SKEW
from app.identity.crawler_page import mail_link
from app.identity.keys import jwk, thumbprint
from app.identity.well_known import CARD_PATH, CRAWLER_PAGES, DIRECTORY_PATH

DIRECTORY_MEDIA_TYPE = "application/http-message-signatures-directory+json"

DIRECTORY_TAG = "http-message-signatures-directory"

MAX_AGE = 3600
"""Seconds for which a directory may be cached: a key that is removed is accepted for as long."""

BINDING_LIFETIME = 24 * 3600
"""Seconds for which the signatures of a directory hold, longer than any cache has it."""

SIGNED_FOR = 60.0
"""Seconds for which a signed directory is answered again."""


SignedDirectory: TypeAlias = tuple[bytes, Mapping[str, str]]
"""The body and the header fields of an answer."""


class KeyDirectory:
    """The public halves of `keys`, for the authority at which sites look for them. The body does not change."""

    def __init__(self, authority: str, keys: Sequence[Ed25519PrivateKey]) -> None:
        """A key that is there twice counts once."""
        self._authority = authority
        self._keys = {thumbprint(key): key for key in keys}
        self._body = json.dumps({"keys": [jwk(key) for key in self._keys.values()]}, separators=(",", ":")).encode()
        self._signed: tuple[float, SignedDirectory] | None = None

    def at(self, now: float) -> SignedDirectory:
        """The directory, signed within the last minute before `now` (Unix seconds)."""
        if self._signed is None or not 0 <= now - self._signed[0] < SIGNED_FOR:
            created = int(now) - SKEW
            self._signed = now, self.signed(created, created + BINDING_LIFETIME)
        return self._signed[1]

    def signed(self, created: int, expires: int) -> SignedDirectory:
        """The directory, signed with these parameters."""
        digest = base64.b64encode(hashlib.sha256(self._body).digest()).decode("ascii")
        headers = {
            "Content-Type": DIRECTORY_MEDIA_TYPE,
            "Cache-Control": f"max-age={MAX_AGE}",
            "Content-Digest": f"sha-256=:{digest}:",
        }
        request = SimpleNamespace(method="GET", url=f"https://{self._authority}{DIRECTORY_PATH}", headers={})
        response = SimpleNamespace(status_code=200, headers=headers, request=request)
        resolver = MappingKeyResolver(public_keys={}, private_keys=dict(self._keys))
        signer = HTTPMessageSigner(signature_algorithm=ED25519, key_resolver=resolver)
        for number, name in enumerate(self._keys):
            signer.sign(
                response,
                key_id=name,
                created=datetime.fromtimestamp(created, UTC),
                expires=datetime.fromtimestamp(expires, UTC),
                label=f"binding{number}",
                tag=DIRECTORY_TAG,
                covered_component_ids=('"@authority";req', '"content-digest"'),
                append_if_signature_exists=number > 0,
                use_existing_digest=True,
            )
        return self._body, headers


def card(origin: str, user_agent: str, contact: str | None, name: str, token: str | None) -> bytes:
    """The Signature Agent Card of the crawler `name` (draft-meunier-webbotauth-registry), as JSON.

    `contact` is a mail address; with a `token`, the crawler has a page. Without what parsers of today refuse, such as
    `rfc9309-compliance`.
    """
    about = {"expected-user-agent": user_agent, "trigger": "crawler", "rate-control": "429"}
    members = {
        "client_id": origin + CARD_PATH,
        "client_name": name,
        **({} if token is None else {"client_uri": origin + CRAWLER_PAGES + token}),
        **({} if contact is None else {"contacts": [mail_link(contact)]}),
        "jwks_uri": origin + DIRECTORY_PATH,
        "web_bot_auth": about if token is None else {**about, "rfc9309-product-token": token},
    }
    return json.dumps(members, separators=(",", ":")).encode()


class Identity(NamedTuple):
    """What sites find at the origin that Signature-Agent names.

    `signing` are the thumbprints of the keys that sign; the directory may have more. `pages` are of crawlers, by
    lower-case token.
    """

    directory: KeyDirectory
    signing: Sequence[str]
    card: bytes
    pages: Mapping[str, bytes]
