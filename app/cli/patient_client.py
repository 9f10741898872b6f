"""A client for many requests: it waits while the service is busy, and while it restarts."""

import asyncio
from collections.abc import Mapping
from typing import Any

from app.cli.client import Answer, ServiceClient, ServiceNotReached

ATTEMPTS = 8
"""Attempts at one request while the service is busy, at most."""

RETRY_DELAYS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""Seconds between attempts while the service does not respond: it may be restarting."""

BUSY_DELAY, MAX_BUSY_DELAY = 5.0, 120.0
"""Seconds to pause when the service is busy and sends no Retry-After, and the longest Retry-After that is obeyed."""

_BUSY = frozenset({429, 503})


class PatientClient:
    """Sends requests of many tasks. If one meets a busy service, all of them pause."""

    def __init__(self, service: ServiceClient) -> None:
        self._service = service
        self._paused_until = 0.0

    async def get(self, path: str, parameters: Mapping[str, Any]) -> Answer | None:
        """GET a path; None if the service stays busy. Raise ServiceNotReached if it does not come back."""
        delays = iter(RETRY_DELAYS)
        for _ in range(ATTEMPTS):
            await self._wait_for_pause()
            try:
                answer = await self._service.get(path, parameters)
            except ServiceNotReached:
                delay = next(delays, None)
                if delay is None:
                    raise
                self._pause(delay)
                continue
            if answer.status not in _BUSY:
                return answer
            self._pause(_retry_after(answer))
        return None

    def _pause(self, seconds: float) -> None:
        self._paused_until = max(self._paused_until, asyncio.get_running_loop().time() + seconds)

    async def _wait_for_pause(self) -> None:
        now = asyncio.get_running_loop().time
        while (remaining := self._paused_until - now()) > 0:  # noqa: ASYNC110 - extended by other requests
            await asyncio.sleep(remaining)


def _retry_after(answer: Answer) -> float:
    header = answer.headers.get("retry-after", "")
    seconds = float(header) if header.isascii() and header.isdigit() and len(header) < 10 else BUSY_DELAY
    return min(max(seconds, RETRY_DELAYS[0]), MAX_BUSY_DELAY)
