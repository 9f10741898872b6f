"""Which fetches of a log came faster than the rate then in force."""

from collections.abc import Mapping
from typing import Any

_LONGEST = 86_400.0
"""Seconds that a fetch can oblige the next one to wait, so that a hostile file cannot fill the memory."""

CRAWLERS = 10_000
"""Crawlers of an origin whose turns are known: those that fetched last."""

_ROUNDING = 1e-6  # seconds by which sums of intervals may be wrong


class PaceAudit:
    """Takes the fetches of each origin in the order of their times, and finds those before their turn.

    The turn of a crawler's fetch is one interval after that of the fetch before, and not before that fetch; one that
    came too early takes no turn. `tolerance` are the seconds by which the times of a log may be wrong.
    """

    def __init__(self, tolerance: float) -> None:
        self._tolerance = tolerance
        self._origin = ""
        self._due: dict[str, float] = {}
        self._at = 0.0

    def early(self, origin: str, agent: str, at: float, interval: float | None) -> float | None:
        """The seconds by which a fetch at an instant came too early, None if it did not."""
        if origin != self._origin:
            self._origin, self._due = origin, {}
        self._at = at
        due = self._due.get(agent, at)
        if interval is not None and due - at > self._tolerance + _ROUNDING:
            return round(due - at, 3)
        self._due.pop(agent, None)
        if interval:
            self._due[agent] = max(at, due) + min(interval, _LONGEST)
            if len(self._due) > CRAWLERS:
                del self._due[next(iter(self._due))]
        return None

    def saved(self) -> Mapping[str, Any]:
        """What an interrupted audit goes on with: the turns that are still to come, since logs name many crawlers."""
        return {"origin": self._origin, "due": {name: due for name, due in self._due.items() if due > self._at}}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on where an audit was interrupted."""
        self._origin, self._due = saved["origin"], dict(saved["due"])
