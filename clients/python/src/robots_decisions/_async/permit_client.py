"""Permits and their outcomes, bounded in time and bytes. A failure is an answer (NoAnswer), not an error."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar, cast

from robots_decisions._async.service import AsyncService
from robots_decisions._compat import unexpected
from robots_decisions._io import AsyncBackground
from robots_decisions.conversation import Heard, RequestPermit, Sleep, permit_conversation
from robots_decisions.permits import (
    FETCH_WAIT,
    MARGIN,
    PATH,
    RELEASED,
    Answer,
    Granted,
    NoAnswer,
    Unavailable,
    checked_caller,
    encode,
    outcome,
    outcome_path,
    parse_answer,
    parse_backoff,
    question,
)
from robots_decisions.verdicts import VerdictAnswer, parse_verdict, verdict_path

ANSWER_TIMEOUT = FETCH_WAIT + MARGIN
"""Seconds for a permit or a verdict."""

OUTCOME_TIMEOUT = MARGIN
"""Seconds for the report of an outcome, which is lost after that."""

H = TypeVar("H", bound=Heard)


class AsyncPermitClient:
    """Asks the service. It takes its turns by the clocks `clock` (Unix seconds) and `monotonic`."""

    def __init__(
        self,
        service: AsyncService,
        *,
        caller: str | None = None,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._service = service
        self._caller = checked_caller(caller)
        self._clock = clock
        self._monotonic = monotonic
        self._sleep = sleep
        self._releases = AsyncBackground()

    async def aclose(self) -> None:
        """Release unused slots, then close the connections."""
        await self._releases.wait()
        await self._service.aclose()

    async def permit(self, url: str, agent: str, max_wait: float, *, retry: bool = False) -> Answer:
        """Wait for the slot of a page, see `permit_conversation`; if cancelled, release it."""

        async def ask(left: float) -> Answer:
            return await self._permit(url, agent, left)

        return await self._converse(ask, max_wait, retry)

    async def verdict(self, url: str, agent: str, max_wait: float, *, retry: bool = False) -> VerdictAnswer:
        """The verdict on a page, without a slot. Wait up to `max_wait` seconds while the service is busy."""

        async def ask(_: float) -> VerdictAnswer:
            return await self._verdict(url, agent)

        return await self._converse(ask, max_wait, retry)

    def release(self, grant: Granted) -> None:
        """Release an unused slot, in the background. If the service cannot be reached, the slot just passes."""
        # In the background, since a cancelled caller cannot wait.
        self._releases.start(self._report(grant, RELEASED))

    async def report(self, grant: Granted, status: int, retry_after: str | None, elapsed: float) -> float | None:
        """Report the response of the page; return the seconds of backoff of its origin, None if unknown."""
        return await self._report(grant, outcome(status, retry_after, elapsed))

    async def _converse(self, ask: Callable[[float], Awaitable[H]], max_wait: float, retry: bool) -> H:
        conversation = permit_conversation(max_wait, retry=retry, monotonic=self._monotonic)
        answer: H | None = None
        while True:
            try:
                step = conversation.send(answer)
            except StopIteration as end:
                return cast("H", end.value)
            match step:
                case RequestPermit(max_wait=left):
                    answer = await ask(left)
                case Sleep(seconds=seconds, holding=grant):
                    answer = None
                    try:
                        await self._sleep(seconds)
                    except BaseException:  # cancelled, or interrupted
                        if grant is not None:
                            self.release(grant)
                        raise
                case _:
                    raise unexpected(step)

    async def _permit(self, url: str, agent: str, left: float) -> Answer:
        content = encode(question(url, agent, left, caller=self._caller))
        try:
            response = await self._service.request("POST", PATH, content, ANSWER_TIMEOUT)
        except Unavailable as error:
            return NoAnswer(str(error))
        return parse_answer(response.status, response.fields, response.body, self._clock())

    async def _verdict(self, url: str, agent: str) -> VerdictAnswer:
        try:
            response = await self._service.request("GET", verdict_path(url, agent), None, ANSWER_TIMEOUT)
        except Unavailable as error:
            return NoAnswer(str(error))
        return parse_verdict(url, agent, response.status, response.fields, response.body)

    async def _report(self, grant: Granted, fields: Mapping[str, object]) -> float | None:
        try:
            response = await self._service.request("POST", outcome_path(grant.permit), encode(fields), OUTCOME_TIMEOUT)
        except Unavailable:
            return None
        return parse_backoff(response.status, response.body)
