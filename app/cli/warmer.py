"""Requests about many origins at once, as fast as the service permits."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from app.cli.client import Answer, ServiceClient, ServiceUnavailable
from app.cli.exit_codes import Failed

WAIT = 30
"""Seconds that the service may wait for a fetch; a slower fetch is asked about again."""

ATTEMPTS = 8
"""How often the service is asked about one origin."""

RETRY_DELAYS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""Seconds between attempts while the service does not respond: it may be restarting."""

BUSY_DELAY, MAX_BUSY_DELAY = 5.0, 120.0
"""Seconds to pause when the service is busy and sends no Retry-After, and the longest Retry-After that is obeyed."""

_BUSY = frozenset({429, 503})
_REJECTED = frozenset({401, 403, 404})


class Warmer:
    """Asks the service about origins, `concurrency` at a time.

    `outcomes` counts the results of the fetches, `unanswered` the origins that the service had no answer for. `done` is
    called with each origin that has an outcome.
    """

    def __init__(self, service: ServiceClient, done: Callable[[str], None], concurrency: int) -> None:
        self._service = service
        self._done = done
        self._concurrency = concurrency
        self._paused_until = 0.0
        self.outcomes: Counter[str] = Counter()
        self.unanswered = 0

    async def run(self, origins: Iterable[str]) -> None:
        """Ask about every origin. Raise Failed if the service cannot be used."""
        remaining = iter(origins)
        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(self._concurrency):
                    tasks.create_task(self._work(remaining))
        except* Failed as group:
            failed = group.exceptions[0]
        else:
            return
        raise failed

    async def _work(self, remaining: Iterator[str]) -> None:
        for origin in remaining:
            outcome = await self._fetch(origin)
            if outcome is None:
                self.unanswered += 1
            else:
                self.outcomes[outcome] += 1
                self._done(origin)

    async def _fetch(self, origin: str) -> str | None:
        """Let the service fetch the file of an origin; return the outcome, or None if it has none."""
        delays = iter(RETRY_DELAYS)
        for _ in range(ATTEMPTS):
            await self._wait_for_pause()
            try:
                answer = await self._service.get("/v1/robots", {"url": origin, "as": "facts", "wait": WAIT})
            except ServiceUnavailable:
                delay = next(delays, None)
                if delay is None:
                    raise
                self._pause(delay)
                continue
            if answer.status in _BUSY:
                self._pause(_retry_after(answer))
                continue
            outcome = self._outcome(answer)
            if outcome is not None:
                return outcome
        return None

    def _outcome(self, answer: Answer) -> str | None:
        """The outcome of the fetch; None while it is pending, and if the service failed."""
        try:
            content = json.loads(answer.content)
            if answer.status in _REJECTED:
                raise Failed(f"{self._service.url} answers {answer.status}: {content['detail']}")
            outcome = content["robots"]["outcome"] if answer.status == 200 else None
        except (ValueError, LookupError, TypeError, RecursionError):
            raise self._service.not_this_service(answer) from None
        return None if outcome is None else str(outcome)[:20]

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
