"""The pace that a client keeps by itself while the service is silent. No I/O."""

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

from robots_decisions.question import site_key

MIN_INTERVAL, MAX_INTERVAL = 1.0, 86_400.0
"""Seconds between two pages of a site for which no interval is known, and the longest that is kept."""

SITES = 65_536
"""Sites that are remembered: those that were used last."""


@dataclass(slots=True)
class _Site:
    interval: float = MIN_INTERVAL
    free: float = 0.0


class OwnSlot(NamedTuple):
    """A slot in `wait` seconds. If `taken` is false, it is too far away."""

    site: str
    wait: float
    interval: float
    taken: bool
    ends: float


class LocalPace:
    """At least a second for each host, or the last known interval. Instants are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._sites: OrderedDict[str, _Site] = OrderedDict()
        self._lock = Lock()

    def learn(self, url: str, interval: float, begun: float) -> None:
        """Note the interval of a slot that the service granted, and when it began."""
        with self._lock:
            site = self._site(site_key(url))
            site.interval = min(max(interval, MIN_INTERVAL), MAX_INTERVAL)
            site.free = max(site.free, begun + site.interval)

    def take(self, url: str, now: float, within: float) -> OwnSlot:
        """Take the next slot, if it begins within so many seconds."""
        name = site_key(url)
        with self._lock:
            site = self._site(name)
            at = max(site.free, now)
            taken = at - now <= within
            if taken:
                site.free = at + site.interval
            return OwnSlot(name, at - now, site.interval, taken, site.free)

    def give_back(self, slot: OwnSlot) -> None:
        """Give back a slot that was not used, unless another has been taken after it."""
        with self._lock:
            site = self._site(slot.site)
            if site.free == slot.ends:
                site.free = slot.ends - slot.interval

    def _site(self, name: str) -> _Site:
        site = self._sites.get(name)
        if site is None:
            site = self._sites[name] = _Site()
            if len(self._sites) > SITES:
                self._sites.popitem(last=False)
        else:
            self._sites.move_to_end(name)
        return site
