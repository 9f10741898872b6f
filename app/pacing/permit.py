"""Permits: the text a caller is given for a slot, and sends back to report what came of it.

A permit is `<payload>.<tag>`: the slots as JSON, and their HMAC-SHA256 under a secret of the fleet. The tag is what is
trusted: only a process of the fleet can write one, so a caller can neither name an origin that it has no slot at, nor
alter the slot that it has.
"""

import base64
import hmac
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from app.pacing.slots import PaceKey

LONGEST = 1024
"""Characters of the longest permit that is read."""

TAG_BYTES = 16
"""Bytes of the HMAC that are kept: 128 bits, of which each guess costs a request."""

ADDRESS = "address:"
"""What the place of a lane begins with that an address is, and no origin."""


class BadPermit(ValueError):
    """A text that is not a permit of this fleet."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A slot by its lane and its name there."""

    lane: PaceKey
    name: str


def write(slots: Iterable[Taken], secret: bytes) -> str:
    """The permit for these slots: the origin's first, the address's behind it, where one was taken."""
    said = [[slot.lane.place, slot.lane.token, slot.name] for slot in slots]
    payload = _base64(json.dumps(said, separators=(",", ":")).encode())
    return f"{payload}.{_tag(payload, secret)}"


def read(permit: str, secrets: Iterable[bytes]) -> tuple[Taken, ...]:
    """The slots of a permit that was signed with one of the secrets; BadPermit for any other text."""
    payload, _, tag = permit.rpartition(".")
    readable = len(permit) <= LONGEST and permit.isascii()
    if readable and any(hmac.compare_digest(tag, _tag(payload, secret)) for secret in secrets):
        return _slots(payload)
    raise BadPermit(f"{permit[:100]!r} is not a permit that this service gave")


def _slots(payload: str) -> tuple[Taken, ...]:
    # Signed, so it is as `write` wrote it, unless whoever can read the secret in the store signed something else.
    try:
        said = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        slots = tuple(map(_slot, said))
    except (ValueError, TypeError, RecursionError):
        slots = ()
    if not slots:
        raise BadPermit("the permit is signed, and holds no slots")
    return slots


def _slot(said: Any) -> Taken:
    match said:
        case [str(place), (str() | None) as token, str(name)]:
            return Taken(PaceKey(place, token), name)
        case _:
            raise ValueError(said)


def _tag(payload: str, secret: bytes) -> str:
    return _base64(hmac.digest(secret, payload.encode("ascii"), "sha256")[:TAG_BYTES])


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
