"""A file of agents with a crawler that signs, and its keys."""

import json
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

HOST = "bot.example.com"


def write_key(path: Path) -> Ed25519PrivateKey:
    key = Ed25519PrivateKey.generate()
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    path.chmod(0o600)
    return key


def write_agents(path: Path, private_key: str, published: list[str], more: str = "", host: str = HOST) -> Path:
    path.write_text(
        f"""[agents.AcmeBot]
operator = "Acme"
profile = "acme"
[profiles.acme]
user_agent = "AcmeBot/2.0 (+https://bot.example.com/)"
from = "bot@example.com"
signature_agent = "https://{host}"
private_key = "{private_key}"
published_keys = {json.dumps(published)}
{more}"""
    )
    return path
