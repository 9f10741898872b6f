"""Requests about many origins at once, as fast as the service permits."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from app.cli.bare_host import lacks_https
from app.cli.client import Answer, ServiceClient
from app.cli.exit_codes import Failed
from app.cli.patient_client import REQUEST_ATTEMPTS, PatientClient

FETCH_WAIT = 30
"""Seconds that the service may wait for a fetch; a slower fetch is asked about again."""

_REJECTED = frozenset({401, 403, 404})


class Warmer:
    """Asks the service about origins, `concurrency` at a time.

    `outcomes` counts the results of the fetches, `unanswered` the origins that the service had no answer for. `done` is
    called with each origin that has an outcome.
    """

    def __init__(self, service: ServiceClient, done: Callable[[str], None], concurrency: int) -> None:
        self._service = service
        self._client = PatientClient(service)
        self._done = done
        self._concurrency = concurrency
        self.outcomes: Counter[str] = Counter()
        self.unanswered = 0

    async def run(self, origins: Mapping[str, str | None]) -> None:
        """Ask about every origin, or about the one beside it if it lacks https. Raise Failed if nothing answers."""
        remaining = iter(origins.items())
        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(self._concurrency):
                    tasks.create_task(self._work(remaining))
        except* Failed as group:
            failed = group.exceptions[0]
        else:
            return
        raise failed

    async def _work(self, remaining: Iterator[tuple[str, str | None]]) -> None:
        for origin, by_http in remaining:
            robots = await self._fetch(origin)
            if robots is not None and by_http is not None and lacks_https(robots):
                robots = await self._fetch(by_http)
            if robots is None:
                self.unanswered += 1
            else:
                self.outcomes[str(robots["outcome"])[:20]] += 1
                self._done(origin)

    async def _fetch(self, origin: str) -> Mapping[str, Any] | None:
        """Let the service fetch the file of an origin; return the facts of the fetch, None if it is not known."""
        for _ in range(REQUEST_ATTEMPTS):
            answer = await self._client.get("/v1/robots", {"url": origin, "as": "facts", "wait": FETCH_WAIT})
            if answer is None:
                break
            robots = self._robots(answer)
            if robots is not None:
                return robots
        return None

    def _robots(self, answer: Answer) -> Mapping[str, Any] | None:
        """The facts of the fetch; None while it is pending, and if the service failed."""
        try:
            content = json.loads(answer.content)
            if answer.status in _REJECTED:
                raise Failed(f"{self._service.url} answers {answer.status}: {content['detail']}")
            robots: dict[str, Any] = content["robots"] if answer.status == 200 else {"outcome": None}
            outcome = robots["outcome"]
        except (ValueError, LookupError, TypeError, RecursionError):
            raise self._service.not_this_service(answer) from None
        return None if outcome is None else robots
