"""Ed25519 keys: private ones in PEM or as a JWK (RFC 8037), and what is published of them."""

import base64
import json
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from app.identity.public_jwk import base64url, public_jwk, thumbprint_of


def thumbprint(key: Ed25519PrivateKey) -> str:
    """The JWK thumbprint of the public key (RFC 7638), which identifies the key."""
    return thumbprint_of(_public(key))


def jwk(key: Ed25519PrivateKey) -> Mapping[str, str]:
    """The public key as a JWK (RFC 8037 2), identified by its thumbprint."""
    return public_jwk(_public(key))


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
        key = Ed25519PrivateKey.from_private_bytes(_unpadded(read["d"]))
        if "x" in read and read["x"].rstrip("=") != _public(key):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError('it is not the JWK of an Ed25519 private key: {"kty": "OKP", "crv": "Ed25519", ...}') from None
    return key


def _public(key: Ed25519PrivateKey) -> str:
    return base64url(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))


def _unpadded(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
