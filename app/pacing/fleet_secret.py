"""The secret that permits are signed with: from the settings, or agreed on by the fleet in the store."""

from contextlib import AbstractAsyncContextManager, nullcontext
from secrets import token_bytes
from typing import Final

from app.loop.background import BackgroundTask, periodically
from app.store.guarded_client import GuardedClient, StoreDown

STORED_AT: Final = "robots:permits:secret"

SECRET_BYTES = 32
"""Bytes of a generated secret."""

READ_INTERVAL = 30.0
"""Seconds between two reads of the store, which may have been emptied."""

MAX_ACCEPTED = 3
"""Secrets whose permits are accepted: the current one and the last two that it replaced."""


class FleetSecret:
    """The current secret, and those whose permits are still accepted.

    A process that has not reached the store yet signs with a secret of its own. Until it does, only this process
    accepts those permits. If the store is emptied, the current secret is written to it again.
    """

    def __init__(self, store: GuardedClient, setting: str | None = None) -> None:
        """`setting` is PERMIT_SECRET; if it is given, the store is not used."""
        self._store = store
        self._fixed = setting is not None
        self.accepted: tuple[bytes, ...] = (token_bytes(SECRET_BYTES) if setting is None else setting.encode(),)

    @property
    def current(self) -> bytes:
        """The secret to sign permits with."""
        return self.accepted[0]

    def running(self) -> AbstractAsyncContextManager[None]:
        """Follow the fleet's secret for as long as the block lasts."""
        if self._fixed:
            return nullcontext()
        return periodically(BackgroundTask.PERMIT_KEYS, self.agree, READ_INTERVAL, at_once=True)

    async def agree(self) -> None:
        """Write the current secret to the store if it has none, and adopt the one that it has.

        Without the store, nothing changes.
        """
        try:
            await self._store.command(STORED_AT, "SET", STORED_AT, self.current, "NX")
            stored = await self._store.command(STORED_AT, "GET", STORED_AT)
            if not isinstance(stored, bytes) or len(stored) != SECRET_BYTES:
                # Another type or length: not written by this service.
                await self._store.command(STORED_AT, "SET", STORED_AT, self.current)
                return
        except StoreDown:
            return
        self.accepted = (stored, *(secret for secret in self.accepted if secret != stored))[:MAX_ACCEPTED]
