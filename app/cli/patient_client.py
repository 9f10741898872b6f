"""A client for many requests: it waits while the service is busy, and while it restarts if it answered before."""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from app.cli.client import Answer, ServiceClient, ServiceNotReached

REQUEST_ATTEMPTS = 8
"""Attempts at one request, at most, while the service answers no other one."""

RETRY_DELAYS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""Seconds between attempts while the service does not respond: it may be restarting."""

BUSY_DELAY, MAX_BUSY_DELAY = 5.0, 120.0
"""Seconds to pause when the service is busy and sends no Retry-After, and the longest Retry-After that is obeyed."""

BUSY = frozenset({429, 503})


class PatientClient:
    """Sends requests of many tasks. If one meets a busy service, all of them pause."""

    def __init__(self, service: ServiceClient) -> None:
        self._service = service
        self._paused_until = 0.0
        self._answered = 0
        self._reached = False

    async def get(self, path: str, parameters: Mapping[str, Any]) -> Answer | None:
        """GET a path; None if the service stays busy. Raise ServiceNotReached if it never answered, or stays away."""
        return await self._send("GET", f"{path}?{urlencode(parameters, doseq=True)}", None)

    async def post(self, path: str, body: Mapping[str, Any]) -> Answer | None:
        """POST JSON to a path, as `get`. It may be sent twice, so it must be safe to repeat."""
        return await self._send("POST", path, body)

    def pause(self, seconds: float) -> None:
        """Send no request for so long."""
        self._paused_until = max(self._paused_until, asyncio.get_running_loop().time() + seconds)

    async def _send(self, method: str, path: str, body: Mapping[str, Any] | None) -> Answer | None:
        delays = iter(RETRY_DELAYS)
        attempts, answered = 0, self._answered
        while attempts < REQUEST_ATTEMPTS:
            await self._wait_for_pause()
            try:
                answer = await self._service.send(method, path, body)
            except ServiceNotReached:
                delay = next(delays, None)
                if delay is None or not self._reached:
                    raise
                self.pause(delay)
                continue
            self._reached = True
            if answer.status not in BUSY:
                self._answered += 1
                return answer
            # A quota lets requests through one by one. Those that wait do not give up while others are answered.
            attempts = attempts + 1 if self._answered == answered else 1
            answered = self._answered
            self.pause(_retry_after(answer))
        return None

    async def _wait_for_pause(self) -> None:
        now = asyncio.get_running_loop().time
        while (remaining := self._paused_until - now()) > 0:  # noqa: ASYNC110 - extended by other requests
            await asyncio.sleep(remaining)


def _retry_after(answer: Answer) -> float:
    header = answer.headers.get("retry-after", "")
    seconds = float(header) if header.isascii() and header.isdigit() and len(header) < 10 else BUSY_DELAY
    return min(max(seconds, RETRY_DELAYS[0]), MAX_BUSY_DELAY)
