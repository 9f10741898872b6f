"""The secret that the fleet signs permits with: a setting's, or one that its processes agree on in the store."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from secrets import token_bytes
from typing import Final

from app.background import periodically
from app.redis.guarded_client import GuardedClient, StoreDown

KEY: Final = "robots:permits:secret"

LENGTH = 32
"""Bytes of a secret that is made here."""

EVERY = 30.0
"""Seconds between two looks at the store, which may have been emptied."""

ACCEPTED = 3
"""Permits of so many secrets are accepted: of the one in force, and of those that it replaced."""


class FleetSecret:
    """The secret in force, and those whose permits are still accepted.

    A process that never reached the store signs with a secret of its own: its permits are good at this process alone,
    until it has reached the store. A store that was emptied is given the secret again that was in force.
    """

    def __init__(self, calls: GuardedClient, given: str | None = None) -> None:
        """`given` is the setting PERMIT_SECRET; with it, the store is not asked."""
        self._calls = calls
        self._given = given is not None
        self.accepted: tuple[bytes, ...] = (token_bytes(LENGTH) if given is None else given.encode(),)

    @property
    def current(self) -> bytes:
        """What permits are signed with."""
        return self.accepted[0]

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """While the block lasts, use the fleet's secret."""
        if self._given:
            yield
            return
        await self.agree()
        async with periodically(self.agree, EVERY):
            yield

    async def agree(self) -> None:
        """Offer the secret in force to the store, and use what it has; without the store, nothing changes."""
        client = self._calls.client
        try:
            await self._calls.run(KEY, lambda: client.set(KEY, self.current, nx=True))
            held = await self._calls.run(KEY, lambda: client.get(KEY))
            if not isinstance(held, bytes) or len(held) != LENGTH:
                # Not ours: another type, or a value that somebody else wrote.
                await self._calls.run(KEY, lambda: client.set(KEY, self.current))
                return
        except StoreDown:
            return
        self.accepted = (held, *(secret for secret in self.accepted if secret != held))[:ACCEPTED]
