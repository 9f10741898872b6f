"""Ed25519 keys: private ones in PEM or as a JWK (RFC 8037), and what is published of them."""

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key


def thumbprint(key: Ed25519PrivateKey) -> str:
    """The JWK thumbprint of the public key (RFC 7638), which identifies the key."""
    return thumbprint_of(_public(key))


def thumbprint_of(x: str) -> str:
    """The thumbprint of the public key that is `x` in base64url."""
    members = {"crv": "Ed25519", "kty": "OKP", "x": x}
    return _base64url(hashlib.sha256(json.dumps(members, separators=(",", ":")).encode()).digest())


def jwk(key: Ed25519PrivateKey) -> Mapping[str, str]:
    """The public key as a JWK (RFC 8037 2), as a directory has it."""
    return {"kty": "OKP", "crv": "Ed25519", "kid": thumbprint(key), "x": _public(key), "use": "sig"}


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
        read: Any = json.loads(text)
        if (read["kty"], read["crv"]) != ("OKP", "Ed25519"):
            raise ValueError
        private = base64.b64decode(read["d"].rstrip("=") + "=", altchars=b"-_", validate=True)
        key = Ed25519PrivateKey.from_private_bytes(private)
        if "x" in read and read["x"].rstrip("=") != _public(key):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError('it is not the JWK of an Ed25519 private key: {"kty": "OKP", "crv": "Ed25519", ...}') from None
    return key


def _public(key: Ed25519PrivateKey) -> str:
    return _base64url(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
