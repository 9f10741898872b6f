"""Private keys are read from PEM and JWK, and identified by their thumbprint."""

import base64
import json
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from app.identity.keys import read_key, thumbprint

# RFC 8037, appendix A.1 and A.3.
JWK = {
    "kty": "OKP",
    "crv": "Ed25519",
    "d": "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",
    "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
}
THUMBPRINT = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"


def pem(key: Ed25519PrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def public(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def test_a_key_is_read_as_pem_and_as_jwk() -> None:
    key = read_key(json.dumps(JWK))
    assert thumbprint(key) == THUMBPRINT
    assert public(read_key(pem(key))) == public(key)
    assert public(read_key(json.dumps({name: value for name, value in JWK.items() if name != "x"}))) == public(key)


def test_a_key_of_openssl_is_read(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(path)], check=True, capture_output=True)
    assert len(public(read_key(path.read_text()))) == 32


def openssl(*arguments: str) -> str:
    return subprocess.run(["openssl", *arguments], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "neither a private key in PEM nor a JWK"),
        ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "neither a private key in PEM nor a JWK"),
        ("{", "not the JWK of an Ed25519 private key"),
        ("{" * 100_000, "not the JWK of an Ed25519 private key"),
        (json.dumps({**JWK, "crv": "X25519"}), "not the JWK"),
        (json.dumps({**JWK, "d": 1}), "not the JWK"),
        (json.dumps({**JWK, "d": "AAAA"}), "not the JWK"),
        (json.dumps({**JWK, "x": 1}), "not the JWK"),
        (json.dumps({**JWK, "x": base64.urlsafe_b64encode(bytes(32)).decode()}), "not the JWK"),
        (json.dumps({"kty": "OKP", "crv": "Ed25519", "x": JWK["x"]}), "not the JWK"),
    ],
)
def test_anything_else_is_no_key(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        read_key(text)
    assert JWK["d"] not in str(raised.value)


def test_keys_of_other_kinds_are_refused() -> None:
    with pytest.raises(ValueError, match="not an Ed25519 key; make one with"):
        read_key(openssl("genpkey", "-algorithm", "x25519"))
    with pytest.raises(ValueError, match="encrypted; use one without a password"):
        read_key(openssl("genpkey", "-algorithm", "ed25519", "-aes256", "-pass", "pass:secret"))
