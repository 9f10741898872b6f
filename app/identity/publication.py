"""Whether the keys that sign are in the directory where sites look for them: a check from time to time.

The directory may be on a static host, or behind a proxy that changes Host, so the service asks as a site would.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Final

from app.identity.well_known import DIRECTORY_PATH
from app.loop.background import BackgroundTask, Surviving, periodically
from robots_core.origin import Target, read_target
from robots_core.robots.access import Blocked, Busy, Fetched, NotModified, Successful, Unavailable, Unreachable

CHECK_INTERVAL: Final = 300.0
"""Seconds between two checks of all directories."""

_log = logging.getLogger(__name__)


class PublishedKeys:
    """Checks the directories of the keys that sign.

    `signing` gives their thumbprints, by the authority of the directory; `get` fetches it, and may raise Busy.
    """

    def __init__(
        self, signing: Callable[[], Mapping[str, Sequence[str]]], get: Callable[[Target], Awaitable[Fetched]]
    ) -> None:
        self._signing = signing
        self._get = get
        self._missing: dict[tuple[str, str], str] = {}

    @property
    def missing(self) -> int:
        """How many keys that sign were not in their directory when it was last asked."""
        return len(self._missing)

    def checking(self) -> AbstractAsyncContextManager[None]:
        """Check while the block lasts, beginning with a pause, since the service itself may have the directory."""
        return periodically(BackgroundTask.PUBLISHED_KEYS, self.check, CHECK_INTERVAL)

    async def check(self) -> None:
        """Ask each directory once."""
        signing = self._signing()
        self._missing = {name: why for name, why in self._missing.items() if name[1] in signing.get(name[0], ())}
        for authority, keys in signing.items():
            with Surviving(BackgroundTask.PUBLISHED_KEYS, authority), suppress(Busy):
                fetched = await self._get(read_target(f"https://{authority}{DIRECTORY_PATH}"))
                for key in keys:
                    self._note(authority, key, _lack(fetched, key))

    def _note(self, authority: str, key: str, why: str | None) -> None:
        """Note why the directory does not have the key, None if it has it, and log a change."""
        if why is None:
            if self._missing.pop((authority, key), None) is not None:
                _log.info("https://%s%s has the signing key %s now.", authority, DIRECTORY_PATH, key)
            return
        if self._missing.get((authority, key)) != why:
            _log.warning(
                "Sites cannot verify requests signed with the key %s: https://%s%s %s. Route this path to the service "
                "with its Host unchanged, or publish what `robots-decisions-server key-directory` prints.",
                *(key, authority, DIRECTORY_PATH, why),
            )
        self._missing[authority, key] = why


def _lack(fetched: Fetched, key: str) -> str | None:
    """Why sites do not find the key by this answer, as the rest of a sentence; None if they do."""
    match fetched.access:
        case Successful(body=body):
            return None if key in _published(body) else "does not have it"
        case Unavailable(status=status) | Unreachable(status=int(status)):
            return f"answers {status}"
        case Unreachable(cause=cause):
            return f"cannot be fetched ({cause})"
        case Blocked():
            return "is at an address that the service may not fetch (ALLOW_ADDRESSES)"
        case NotModified():  # only to a conditional request
            return "answers 304"


def _published(body: bytes) -> set[str]:
    """The thumbprints of the keys in a directory; none in what is not one."""
    from app.identity.keys import thumbprint_of  # it needs the extra, which is there if a key signs

    try:
        keys: Any = json.loads(body)["keys"]
        return {thumbprint_of(key.get("x")) for key in keys if key.get("crv") == "Ed25519"}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return set()
