"""Permits and their outcomes, bounded in time and bytes."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar, cast

from robots_decisions._async.service import AsyncService
from robots_decisions._compat import unexpected
from robots_decisions._io import AsyncBackground, check_asyncio
from robots_decisions.conversation import Heard, RequestPermit, Sleep, permit_conversation
from robots_decisions.errors import Options
from robots_decisions.outcomes import Collected
from robots_decisions.pace import LocalPace, OwnSlot
from robots_decisions.permits import (
    OUTCOME_TIMEOUT,
    OUTCOMES_PATH,
    PACE,
    PATH,
    RELEASED,
    Answer,
    Granted,
    NoAnswer,
    Open,
    RetryLater,
    Slot,
    Unavailable,
    answer_timeout,
    encode,
    outcome,
    outcome_path,
    parse_answer,
    parse_backoff,
    permit_question,
)
from robots_decisions.question import Members
from robots_decisions.signatures import asked_signature
from robots_decisions.verdicts import Verdict, VerdictAnswer, parse_verdict, verdict_path
from robots_decisions.waits import Waits

H = TypeVar("H", bound=Heard)


class AsyncPermitClient:
    """Asks the service. It takes its turns by the clocks `clock` (Unix seconds) and `monotonic`."""

    def __init__(
        self,
        service: AsyncService,
        options: Options,
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._service = service
        self._options = options
        self._clock = clock
        self.monotonic = monotonic
        self.sleep = sleep
        self.waits = Waits(service.url, opens=options.opens)
        self.pace = LocalPace()
        self._collected = Collected()
        self._background = AsyncBackground()

    async def aclose(self) -> None:
        """Release unused slots, send what was collected, then close the connections."""
        self._background.stop_timer()
        await self._background.wait()
        await self._flush()
        await self._service.aclose()

    async def permit(
        self, url: str, members: Members, max_wait: float | None = None, *, accept_signature: str | None = None
    ) -> Slot:
        """Wait for the slot of a page; if cancelled, release it. Raise PermitError without one.

        `accept_signature` is that of a response of the page, which is signed as it asks.
        """
        options = self._options
        wait = options.max_wait if max_wait is None else max_wait
        ends = self.monotonic() + wait
        answer = await self.answer(url, members, wait, retry=options.retries, accept_signature=accept_signature)
        if isinstance(answer, Granted):
            return answer
        if isinstance(answer, NoAnswer) and answer.remedy is None and options.opens:
            return await self._open(url, answer, ends - self.monotonic())
        raise options.errors.error(url, self._service.url, answer)

    async def asked_slot(
        self, url: str, members: Members, method: str, status: int, fields: Mapping[str, str]
    ) -> Granted | None:
        """The slot in which a page with this response is fetched once more, signed as its Accept-Signature asks.

        None, and no slot is held, if the response or the caller's `sign` does not ask for that, or if the service
        does not sign it.
        """
        accept_signature = asked_signature(method, status, fields) if self._options.signs_when_asked else None
        if accept_signature is None:
            return None
        answer = await self.answer(url, members, self._options.max_wait, accept_signature=accept_signature)
        if not isinstance(answer, Granted):
            return None
        if answer.signed is None:
            self.release(answer)
            return None
        return answer

    async def verdict(self, url: str, members: Members, *, explain: bool = False) -> Verdict:
        """The verdict on a page, without a slot. Wait while the service is busy. Raise PermitError without one."""
        options = self._options

        async def ask(left: float) -> VerdictAnswer:
            path = verdict_path(url, members, left, explain=explain)
            try:
                response = await self._service.request("GET", path, None, answer_timeout(left))
            except Unavailable as error:
                return error.failure
            return parse_verdict(url, members.get("agent"), response.status, response.fields, response.body)

        answer = await self._converse(url, ask, options.max_wait, options.retries)
        if isinstance(answer, Verdict):
            return answer
        raise options.errors.error(url, self._service.url, answer)

    async def answer(
        self,
        url: str,
        members: Members,
        max_wait: float,
        *,
        retry: bool = False,
        waiting: int = 0,
        accept_signature: str | None = None,
    ) -> Answer:
        """The end of `permit_conversation`; if cancelled, release the slot. `waiting` more requests wait for the
        same."""

        options = self._options

        async def ask(left: float) -> Answer:
            asked = permit_question(
                url, members, left, options.caller, sign=options.sign, accept_signature=accept_signature
            )
            try:
                response = await self._service.request("POST", PATH, encode(asked), answer_timeout(left))
            except Unavailable as error:
                return error.failure
            return parse_answer(response.status, response.fields, response.body, self._clock())

        answer = await self._converse(url, ask, max_wait, retry, waiting)
        if isinstance(answer, Granted):
            self.pace.learn(url, answer.interval, self.monotonic())
        return answer

    def release(self, slot: Slot) -> None:
        """Release an unused slot, in the background. If the service cannot be reached, the slot just passes."""
        # In the background, since a cancelled caller cannot wait.
        if isinstance(slot, Granted):
            self._background.start(self._report(slot, RELEASED))

    async def report(
        self,
        slot: Slot,
        status: int,
        retry_after: str | None,
        elapsed: float,
        price: tuple[str, str] | None = None,
    ) -> float | None:
        """Report the response of the page; return the seconds of backoff of its origin, None if unknown.

        `price` is the header `crawler-price` of a 402, and the URL of its page.

        What need not be known at once is sent together with others, later.
        """
        if not isinstance(slot, Granted):
            return None
        if slot.is_urgent(status):
            return await self._report(slot, outcome(status, retry_after, elapsed, price))
        if self._collected.add({"permit": slot.permit, **outcome(status, None, elapsed)}):
            self._background.start_later(self._collected.delay, self._flush)
        return None

    def own_slot(self, url: str, answer: NoAnswer, within: float) -> OwnSlot:
        """The next slot of the client's own pace, while the service is silent, if it begins within so many seconds."""
        self.waits.open(answer)
        return self.pace.take(url, self.monotonic(), max(within, 0.0))

    async def wait_for(self, slot: OwnSlot) -> Open:
        """Wait for a slot of the client's own pace; if cancelled, give it back."""
        try:
            await self.sleep(slot.wait)
        except BaseException:  # cancelled, or interrupted
            self.pace.give_back(slot)
            raise
        return Open(slot.interval)

    async def _open(self, url: str, answer: NoAnswer, left: float) -> Open:
        """Wait for the client's own slot while the service is silent. Raise Deferred if it is too far away."""
        slot = self.own_slot(url, answer, left)
        if slot.taken:
            return await self.wait_for(slot)
        why = f"{answer.why} Without it, pages of a site are {slot.interval:g} s apart."
        raise self._options.errors.error(url, self._service.url, RetryLater(slot.wait, PACE, slot.interval, why))

    async def _flush(self) -> None:
        """Send the outcomes that were collected. Those that do not arrive are lost."""
        items = self._collected.taken()
        if not items:
            return
        try:
            response = await self._service.request("POST", OUTCOMES_PATH, encode({"items": items}), OUTCOME_TIMEOUT)
        except Unavailable:
            self._collected.sent(arrived=False)
        else:
            self._collected.sent(arrived=response.status == 200)

    async def _converse(
        self, url: str, ask: Callable[[float], Awaitable[H]], max_wait: float, retry: bool, waiting: int = 0
    ) -> H:
        check_asyncio()
        conversation = permit_conversation(max_wait, retry=retry, monotonic=self.monotonic)
        answer: H | None = None
        while True:
            try:
                step = conversation.send(answer)
            except StopIteration as end:
                return cast("H", end.value)
            match step:
                case RequestPermit(max_wait=left):
                    answer = await ask(left)
                    self.waits.heard(url, answer, waiting)
                case Sleep(seconds=seconds, holding=grant, because=heard):
                    answer = None
                    try:
                        with self.waits.counted(url, heard):
                            await self.sleep(seconds)
                    except BaseException:  # cancelled, or interrupted
                        if grant is not None:
                            self.release(grant)
                        raise
                case _:
                    raise unexpected(step)

    async def _report(self, grant: Granted, fields: Mapping[str, object]) -> float | None:
        try:
            response = await self._service.request("POST", outcome_path(grant.permit), encode(fields), OUTCOME_TIMEOUT)
        except Unavailable:
            return None
        return parse_backoff(response.status, response.body)
