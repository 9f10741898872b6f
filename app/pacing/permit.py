"""Permits: the text that names a reserved slot, which the caller sends back to report the outcome.

A permit is `<payload>.<tag>`: the slot as JSON, and its HMAC-SHA256 under the fleet's secret. Only a process of the
fleet can write the tag, so a caller can neither name an origin that it has no slot at, nor alter its slot.
"""

import base64
import hmac
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

import msgspec

from app.pacing.slots import PaceKey

MAX_CHARS = 1536
"""Characters of the longest permit that is read."""


TAG_BYTES = 16
"""Bytes of the HMAC in a permit: 128 bits, of which each guess costs a request."""


class BadPermit(ValueError):
    """A text that is not a permit of this fleet."""


class SlotRef(NamedTuple):
    """A reserved slot: the key of its page's origin, its queue, its name there, and when it begins (Unix seconds)."""

    origin: str
    key: PaceKey
    name: str
    go_at: float = 0.0

    @property
    def token(self) -> str:
        """The random part of the name; "" if the slot was given without the store."""
        parts = self.name.split(":")
        return parts[1] if len(parts) == 3 else ""


def sign(slot: SlotRef, secret: bytes) -> str:
    """The permit for this slot."""
    fields = [slot.origin, slot.key.agent, slot.name, slot.key.pool, round(slot.go_at, 6)]
    payload = _base64(msgspec.json.encode(fields))
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
    with suppress(ValueError, msgspec.DecodeError):
        data = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
        origin, agent, name, pool, go_at = msgspec.json.decode(data, type=tuple[str, str, str, str, float])
        return SlotRef(origin, PaceKey(pool, agent), name, go_at)
    raise BadPermit("The permit is signed but does not hold a slot.")


def _tag(payload: str, secret: bytes) -> str:
    return _base64(hmac.digest(secret, payload.encode("ascii"), "sha256")[:TAG_BYTES])


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
