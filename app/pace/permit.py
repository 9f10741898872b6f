"""What a caller is given for a slot, and gives back to tell what came of it: opaque to him, and not trusted by us."""

import base64
import json
import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from app.origin import BadUrl, read_target
from app.pace.alone import ALONE
from app.pace.slots import LONGEST_TOKEN, Lane

LONGEST = 1024
"""Characters of a permit that is read."""

ADDRESS = "address:"
"""What the place of a lane begins with that an address is, and no origin."""

_NAME = re.compile(r"[0-9]{1,20}:[0-9a-f]{16}:[A-Za-z0-9._@-]{1,64}|" + ALONE)
_TOKEN = re.compile(rf"[A-Za-z0-9_*-]{{1,{LONGEST_TOKEN}}}")


class BadPermit(ValueError):
    """A text that is no permit."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A slot by its lane and its name there."""

    lane: Lane
    name: str


def write(slots: tuple[Taken, ...]) -> str:
    """The permit for these slots: the origin's first, the address's behind it, where one was taken."""
    said = [[slot.lane.place, slot.lane.token, slot.name] for slot in slots]
    return base64.urlsafe_b64encode(json.dumps(said, separators=(",", ":")).encode()).rstrip(b"=").decode()


def read(permit: str) -> tuple[Taken, ...]:
    """The slots of a permit; BadPermit for anything that `write` does not write."""
    if len(permit) > LONGEST:
        raise BadPermit(f"a permit of {len(permit)} characters is none of ours")
    try:
        said = json.loads(base64.urlsafe_b64decode(permit.encode("ascii") + b"=" * (-len(permit) % 4)))
    except (ValueError, RecursionError):
        said = None
    taken = tuple(map(_read_slot, said)) if isinstance(said, list) else ()
    match taken:
        case (Taken(Lane(_, str())),) | (Taken(Lane(_, str())), Taken(Lane(_, None))):
            slots = tuple(slot for slot in taken if slot is not None)
            # Base64 and JSON can each be written in many ways, and here only in one.
            if write(slots) == permit:
                return slots
        case _:
            pass
    raise BadPermit(f"{permit[:100]!r} is no permit that this service gave")


def _read_slot(said: Any) -> Taken | None:
    match said:
        case [str(place), None, str(name)] if _NAME.fullmatch(name) and _is_address(place):
            return Taken(Lane(place, None), name)
        case [str(place), str(token), str(name)] if _NAME.fullmatch(name) and _TOKEN.fullmatch(token):
            lane = _origin_lane(place, token)
            return None if lane is None or lane.place != place else Taken(lane, name)
        case _:
            return None


def _is_address(place: str) -> bool:
    # An address may have a zone behind it, of any characters whatever: none that is a lane's has.
    if "%" in place:
        return False
    try:
        return place.startswith(ADDRESS) and f"{ADDRESS}{ip_address(place.removeprefix(ADDRESS))}" == place
    except ValueError:
        return False


def _origin_lane(place: str, token: str) -> Lane | None:
    try:
        return Lane.of(read_target(place).origin, token)
    except BadUrl:
        return None
