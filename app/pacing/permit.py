"""Permits: the text that names a reserved slot, which the caller sends back to report the outcome.

A permit is `<payload>.<tag>`: the slot as JSON, and its HMAC-SHA256 under the fleet's secret. Only a process of the
fleet can write the tag, so a caller can neither name an origin that it has no slot at, nor alter its slot.
"""

import base64
import hmac
import json
from collections.abc import Iterable
from dataclasses import dataclass

from app.pacing.slots import PaceKey

MAX_CHARS = 1024
"""Characters of the longest permit that is read."""

TAG_BYTES = 16
"""Bytes of the HMAC in a permit: 128 bits, of which each guess costs a request."""


class BadPermit(ValueError):
    """A text that is not a permit of this fleet."""


@dataclass(frozen=True, slots=True)
class SlotRef:
    """A reserved slot: its queue and its name there."""

    key: PaceKey
    name: str

    @property
    def token(self) -> str:
        """The random part of the name; "" if the slot was given without the store."""
        parts = self.name.split(":")
        return parts[1] if len(parts) == 3 else ""


def sign(slot: SlotRef, secret: bytes) -> str:
    """The permit for this slot."""
    fields = [slot.key.site, slot.key.agent, slot.name]
    payload = _base64(json.dumps(fields, separators=(",", ":")).encode())
    return f"{payload}.{_tag(payload, secret)}"


def verify(permit: str, secrets: Iterable[bytes]) -> SlotRef:
    """The slot of a permit that was signed with one of the secrets; raises BadPermit for any other text."""
    payload, _, tag = permit.rpartition(".")
    readable = len(permit) <= MAX_CHARS and permit.isascii()
    if readable and any(hmac.compare_digest(tag, _tag(payload, secret)) for secret in secrets):
        return _read(payload)
    raise BadPermit(f"{permit[:100]!r} is not a permit that this service issued.")


def _read(payload: str) -> SlotRef:
    # The payload is signed, so `sign` wrote it, unless someone else knows the secret.
    try:
        fields = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, RecursionError):
        fields = None
    match fields:
        case [str(site), str(agent), str(name)]:
            return SlotRef(PaceKey(site, agent), name)
        case _:
            raise BadPermit("The permit is signed but does not hold a slot.")


def _tag(payload: str, secret: bytes) -> str:
    return _base64(hmac.digest(secret, payload.encode("ascii"), "sha256")[:TAG_BYTES])


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
