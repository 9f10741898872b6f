"""The public half of an Ed25519 key as a JWK (RFC 8037 2), and its thumbprint (RFC 7638). Needs no library."""

import base64
import hashlib
import json
from collections.abc import Mapping


def public_jwk(x: str) -> Mapping[str, str]:
    """The key whose public half in base64url is `x`, as a directory has it."""
    return {"kty": "OKP", "crv": "Ed25519", "kid": thumbprint_of(x), "x": x, "use": "sig"}


def thumbprint_of(x: str) -> str:
    """The thumbprint of that key, which identifies it."""
    members = {"crv": "Ed25519", "kty": "OKP", "x": x}
    return base64url(hashlib.sha256(json.dumps(members, separators=(",", ":")).encode()).digest())


def base64url(data: bytes) -> str:
    """The data in base64url without padding, as in a JWK."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
