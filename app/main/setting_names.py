"""Environment variables that look like settings but are not: misspelt ones, which would have no effect."""

import re
from collections.abc import Collection
from difflib import SequenceMatcher, get_close_matches
from typing import Final

from robots_core.robots.misspelt import dropped, slips

PREFIXES: Final = ("API_KEYS_", "DECISION_LOG_", "OPERATOR_TOKEN_", "PACE_", "PERMIT_SECRET_", "RECHECK_")
"""Prefixes of settings that no other program is known to use."""

OF_OTHERS: Final = frozenset({"LOGLEVEL", "PORTS"})
"""Names that differ from a setting by a letter, and that other programs read: Marathon sets PORTS beside PORT."""

_ALIKE: Final = 0.92
_LONGEST: Final = 100
_SERVICE: Final = "_SERVICE_HOST"
_LINK: Final = re.compile(r"_PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:ADDR|PORT|PROTO))?$")


def misspelt(names: Collection[str], settings: Collection[str]) -> dict[str, str]:
    """Which of the names are not settings but look like one, each with a hint, such as `did you mean PORT?`.

    The variables that Kubernetes sets for its services, such as REDIS_PORT, are left out.
    """
    services = {name.removesuffix(_SERVICE) for name in names if name.endswith(_SERVICE)}
    found = {}
    for name in names:
        upper = name.upper()
        if upper in settings or upper in OF_OTHERS or len(name) > _LONGEST or _of_kubernetes(name, services):
            continue
        if (hint := _hint(upper, settings)) is not None:
            found[name] = hint
    return found


def _of_kubernetes(name: str, services: Collection[str]) -> bool:
    if _LINK.search(name):
        return True
    return any(name == f"{each}_PORT" or name.startswith(f"{each}_SERVICE_") for each in services)


def _hint(name: str, settings: Collection[str]) -> str | None:
    # Underscores count for nothing here, since they are forgotten and doubled like letters.
    squeezed = {setting.replace("_", ""): setting for setting in settings}
    plain = name.replace("_", "")
    near = [word for word in squeezed if _is_slip(plain, word)] or [word for word in squeezed if _is_alike(plain, word)]
    if near:
        return f"did you mean {squeezed[max(near, key=lambda word: _likeness(plain, word))]}?"
    for prefix in PREFIXES:
        if name.startswith(prefix):
            same = sorted(setting for setting in settings if setting.startswith(prefix.rstrip("_")))
            best = get_close_matches(name, same, n=1, cutoff=0.85)
            return f"did you mean {best[0]}?" if best else f"the settings of that prefix are {', '.join(same)}."
    return None


def _is_slip(name: str, word: str) -> bool:
    # A slip changes the length by one at most, which rules out most words.
    return abs(len(name) - len(word)) <= 1 and name in {word, *slips(word), *dropped(word)}


def _is_alike(name: str, word: str) -> bool:
    # The ratio of the lengths is an upper bound, and so is quick_ratio(); both are cheap.
    if 2.0 * min(len(name), len(word)) / (len(name) + len(word)) < _ALIKE:
        return False
    pair = SequenceMatcher(None, name, word, autojunk=False)
    return pair.quick_ratio() >= _ALIKE and pair.ratio() >= _ALIKE


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()
