# scripts/generate.py made this module from _async/permit_client.py; change that one.
"""Permits and their outcomes, bounded in time and bytes. A failure is an answer (NoAnswer), not an error."""

import time
from collections.abc import Callable, Mapping
from typing import TypeVar, cast

from robots_decisions._compat import unexpected
from robots_decisions._io import Background
from robots_decisions._sync.service import Service
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


class PermitClient:
    """Asks the service. It takes its turns by the clocks `clock` (Unix seconds) and `monotonic`."""

    def __init__(
        self,
        service: Service,
        *,
        caller: str | None = None,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._service = service
        self._caller = checked_caller(caller)
        self._clock = clock
        self._monotonic = monotonic
        self._sleep = sleep
        self._releases = Background()

    def close(self) -> None:
        """Release unused slots, then close the connections."""
        self._releases.wait()
        self._service.close()

    def permit(self, url: str, agent: str, max_wait: float, *, retry: bool = False) -> Answer:
        """Wait for the slot of a page, see `permit_conversation`; if interrupted, release it."""

        def ask(left: float) -> Answer:
            return self._permit(url, agent, left)

        return self._converse(ask, max_wait, retry)

    def verdict(self, url: str, agent: str, max_wait: float, *, retry: bool = False) -> VerdictAnswer:
        """The verdict on a page, without a slot. Wait up to `max_wait` seconds while the service is busy."""

        def ask(_: float) -> VerdictAnswer:
            return self._verdict(url, agent)

        return self._converse(ask, max_wait, retry)

    def release(self, grant: Granted) -> None:
        """Release an unused slot. If the service cannot be reached, the slot just passes."""
        self._releases.start(self._report(grant, RELEASED))

    def report(self, grant: Granted, status: int, retry_after: str | None, elapsed: float) -> float | None:
        """Report the response of the page; return the seconds of backoff of its origin, None if unknown."""
        return self._report(grant, outcome(status, retry_after, elapsed))

    def _converse(self, ask: Callable[[float], H], max_wait: float, retry: bool) -> H:
        conversation = permit_conversation(max_wait, retry=retry, monotonic=self._monotonic)
        answer: H | None = None
        while True:
            try:
                step = conversation.send(answer)
            except StopIteration as end:
                return cast("H", end.value)
            match step:
                case RequestPermit(max_wait=left):
                    answer = ask(left)
                case Sleep(seconds=seconds, holding=grant):
                    answer = None
                    try:
                        self._sleep(seconds)
                    except BaseException:  # cancelled, or interrupted
                        if grant is not None:
                            self.release(grant)
                        raise
                case _:
                    raise unexpected(step)

    def _permit(self, url: str, agent: str, left: float) -> Answer:
        content = encode(question(url, agent, left, caller=self._caller))
        try:
            response = self._service.request("POST", PATH, content, ANSWER_TIMEOUT)
        except Unavailable as error:
            return NoAnswer(str(error))
        return parse_answer(response.status, response.fields, response.body, self._clock())

    def _verdict(self, url: str, agent: str) -> VerdictAnswer:
        try:
            response = self._service.request("GET", verdict_path(url, agent), None, ANSWER_TIMEOUT)
        except Unavailable as error:
            return NoAnswer(str(error))
        return parse_verdict(url, agent, response.status, response.fields, response.body)

    def _report(self, grant: Granted, fields: Mapping[str, object]) -> float | None:
        try:
            response = self._service.request("POST", outcome_path(grant.permit), encode(fields), OUTCOME_TIMEOUT)
        except Unavailable:
            return None
        return parse_backoff(response.status, response.body)
