"""Where a host is, so that all hosts of one machine can share a pace."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TypeAlias

from app.pacing.local_pacer import Recent
from app.pacing.permit import ADDRESS
from app.pacing.slots import PaceKey
from app.redis.single_flight import SingleFlight
from app.robots.access import Busy

KEPT = 300.0
"""Seconds for which an address is believed, or that there is none."""

PATIENCE = 1.0
"""Seconds that a turn waits for a name server."""

Address: TypeAlias = IPv4Address | IPv6Address


class Addresses:
    """Lanes by address. `resolver` gives the addresses of a name, or raises OSError or Busy; `monotonic` is seconds."""

    def __init__(self, resolver: Callable[[str], Awaitable[Sequence[Address]]], monotonic: Callable[[], float]) -> None:
        self._resolver = resolver
        self._monotonic = monotonic
        self._known: Recent[str, tuple[float, str | None]] = Recent()
        self._lookups: SingleFlight[str, None] = SingleFlight()

    async def lane(self, host: str) -> PaceKey | None:
        """The lane of the host's address, of the least of them if it has several; None where it is not known in time.

        Hosts that take turns among several machines have one lane for all of them, whichever is named first.
        """
        until, found = self._known.get(host, (float("-inf"), None))
        if self._monotonic() >= until:
            lookup = self._lookups.start(host, lambda: self._look_up(host))
            await asyncio.wait([lookup], timeout=PATIENCE)
            found = self._known.get(host, (0.0, None))[1]
        return None if found is None else PaceKey(f"{ADDRESS}{found}", None)

    async def aclose(self) -> None:
        """End the look-ups that are under way."""
        await self._lookups.aclose()

    async def _look_up(self, host: str) -> None:
        self._known[host] = (self._monotonic() + KEPT, await self._least(host))

    async def _least(self, host: str) -> str | None:
        try:
            return str(ip_address(host))
        except ValueError:
            pass
        try:
            addresses = await self._resolver(host)
        except (OSError, Busy):
            return None
        return str(min(addresses, key=lambda address: (address.version, int(address)))) if addresses else None
