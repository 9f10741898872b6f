"""Sign and verify marks of the decision log. Needs the extra `signatures`, so only what has a key imports this."""

import base64
import binascii
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from app.files.toml_file import read_file
from app.identity.keys import read_key

SIGNING_KEY_LIMIT: Final = 64 * 1024
"""Bytes of the longest file of a key."""


def load_key(path: Path) -> Ed25519PrivateKey:
    """The private key in a file that other users cannot read or change, as PEM or JWK; raises ValueError."""
    return read_key(read_file(path, SIGNING_KEY_LIMIT, private=True))


def load_public_key(path: Path) -> Ed25519PublicKey:
    """The public key in a file of PEM; raises ValueError."""
    try:
        key = load_pem_public_key(path.read_bytes())
    except OSError as error:
        raise ValueError(f"it cannot be read: {error.strerror}") from None
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError("it is not a public key in PEM; get it with `openssl pkey -in KEY -pubout`") from None
    if not isinstance(key, Ed25519PublicKey):
        raise ValueError("it is not an Ed25519 key")
    return key


def is_signed(key: Ed25519PublicKey, text: bytes, signature: bytes) -> bool:
    """Whether `signature`, in Base64, is that of the text."""
    try:
        key.verify(base64.b64decode(signature, validate=True), text)
    except (InvalidSignature, binascii.Error):
        return False
    return True
