"""Web Bot Auth: requests signed with an Ed25519 key (RFC 9421, draft-ietf-webbotauth-httpsig-protocol).

Needs the extra `signatures`, so only what reads a key imports this.
"""

import base64
import hashlib
import json
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from http_message_signatures import HTTPMessageSigner, MappingKeyResolver
from http_message_signatures.algorithms import ED25519

from app.fetch.response import Headers
from robots_core.origin import Origin

LIFETIME = 300
"""Seconds for which a signature is valid."""

TAG = "web-bot-auth"

_LABEL = "sig1"
_COVERED = ('"@authority"', f'"signature-agent";key="{_LABEL}"')
_NONCE_BYTES = 64


@dataclass(frozen=True, slots=True)
class _Request:
    """A request as the library reads it, which adds the fields of the signature to `headers`."""

    method: str
    url: str
    headers: dict[str, str]


class WebBotAuth:
    """Signs requests with `key`. Sites find the public key in the directory at the URL `agent`.

    A signature covers the host and the directory, so that it is of no use for another site.
    """

    def __init__(self, agent: str, key: Ed25519PrivateKey) -> None:
        self._agent = f'{_LABEL}="{agent}"'
        self.key_id = thumbprint(key)
        self._signer = HTTPMessageSigner(
            signature_algorithm=ED25519,
            key_resolver=MappingKeyResolver(public_keys={}, private_keys={self.key_id: key}),
        )

    def headers(self, origin: Origin, now: float) -> Headers:
        """The header fields of a request to the origin at `now` (Unix seconds)."""
        # Without the path: it is not covered, and the library refuses paths that it cannot parse.
        request = _Request("GET", f"{origin.scheme}://{origin.authority}/", {"Signature-Agent": self._agent})
        self._signer.sign(
            request,
            key_id=self.key_id,
            created=datetime.fromtimestamp(int(now), UTC),
            expires=datetime.fromtimestamp(int(now) + LIFETIME, UTC),
            nonce=secrets.token_urlsafe(_NONCE_BYTES),
            label=_LABEL,
            tag=TAG,
            covered_component_ids=_COVERED,
        )
        return [(name.encode("ascii"), value.encode("ascii")) for name, value in request.headers.items()]


def thumbprint(key: Ed25519PrivateKey) -> str:
    """The JWK thumbprint of the public key (RFC 7638), which identifies the key."""
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    members = {"crv": "Ed25519", "kty": "OKP", "x": _base64url(public)}
    return _base64url(hashlib.sha256(json.dumps(members, separators=(",", ":")).encode()).digest())


def read_key(text: str) -> Ed25519PrivateKey:
    """Read a private key as PEM or JWK. Raises ValueError, which does not quote it."""
    if text.lstrip().startswith("{"):
        return _read_jwk(text)
    try:
        key = load_pem_private_key(text.encode(), None)
    except TypeError:
        raise ValueError("the key is encrypted; use one without a password") from None
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError("it is neither a private key in PEM nor a JWK") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError("it is not an Ed25519 key; make one with `openssl genpkey -algorithm ed25519`")
    return key


def _read_jwk(text: str) -> Ed25519PrivateKey:
    try:
        jwk: Any = json.loads(text)
        if (jwk["kty"], jwk["crv"]) != ("OKP", "Ed25519"):
            raise ValueError
        key = Ed25519PrivateKey.from_private_bytes(_unpadded(jwk["d"]))
        public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        if "x" in jwk and _unpadded(jwk["x"]) != public:
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError('it is not the JWK of an Ed25519 private key: {"kty": "OKP", "crv": "Ed25519", ...}') from None
    return key


def _unpadded(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
