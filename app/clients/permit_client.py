"""Clients of the service over httpx, bounded in time and bytes. A failure is an answer (NoAnswer), not an error."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import assert_never

import httpx

from app.clients.permits import (
    ANSWER_LIMIT,
    FETCH_WAIT,
    MARGIN,
    PATH,
    RELEASED,
    Answer,
    Grant,
    NoAnswer,
    RequestPermit,
    Sleep,
    checked_caller,
    encode,
    headers,
    outcome,
    outcome_path,
    parse_answer,
    parse_backoff,
    permit_conversation,
    question,
)

PERMIT_TIMEOUT = FETCH_WAIT + MARGIN
"""Seconds for a request of a permit."""

OUTCOME_TIMEOUT = MARGIN
"""Seconds for the report of an outcome, which is lost after that."""


class _Unavailable(Exception):
    """The service did not respond; the text says why."""


class _Questions:
    """Requests and the parsing of responses, shared by both clients."""

    def __init__(self, url: str, key: str | None, caller: str | None, clock: Callable[[], float]) -> None:
        self.url = _checked(url)
        self.headers = headers(key)
        self._caller = checked_caller(caller)
        self._clock = clock

    def question(self, url: str, agent: str, max_wait: float) -> dict[str, object]:
        return question(url, agent, max_wait, caller=self._caller)

    def answer(self, response: httpx.Response, body: bytes) -> Answer:
        return parse_answer(response.status_code, response.headers, body, self._clock())


class PermitClient:
    """The service at a URL, for asyncio. Raises ValueError for an invalid URL, key or caller.

    `transport` replaces the one of httpx. Proxies of the environment are not used.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        caller: str | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._questions = _Questions(url, key, caller, clock)
        self._monotonic = monotonic
        self._sleep = sleep
        self._releases: set[asyncio.Task[None]] = set()
        self._client = httpx.AsyncClient(
            base_url=self._questions.url,
            headers=self._questions.headers,
            transport=transport or httpx.AsyncHTTPTransport(),
            timeout=None,  # noqa: S113 - asyncio.timeout bounds all of it, where httpx would bound each step
            trust_env=False,
        )

    async def aclose(self) -> None:
        """Release unused slots, then close the connections."""
        if self._releases:
            await asyncio.wait(self._releases)
        await self._client.aclose()

    async def permit(self, url: str, agent: str, max_wait: float, *, retry: bool = False) -> Answer:
        """Wait for the slot of a page, see `permit_conversation`; if cancelled, release it."""
        conversation = permit_conversation(max_wait, retry=retry, monotonic=self._monotonic)
        answer: Answer | None = None
        while True:
            try:
                step = conversation.send(answer)
            except StopIteration as end:
                result: Answer = end.value
                return result
            match step:
                case RequestPermit(max_wait=wait):
                    answer = await self._ask(url, agent, wait)
                case Sleep(seconds=seconds, holding=grant):
                    answer = None
                    try:
                        await self._sleep(seconds)
                    except BaseException:
                        if grant is not None:
                            self.release(grant)
                        raise
                case _:
                    assert_never(step)

    def release(self, grant: Grant) -> None:
        """Release an unused slot, in the background. If the service cannot be reached, the slot just passes."""
        # In the background, since a cancelled caller cannot wait.
        task = asyncio.create_task(self._released(grant))
        self._releases.add(task)
        task.add_done_callback(self._releases.discard)

    async def report(self, grant: Grant, status: int, retry_after: str | None, elapsed: float) -> float | None:
        """Report the response of the page; return the seconds of backoff of its origin, None if unknown."""
        return await self._report(grant, outcome(status, retry_after, elapsed))

    async def _ask(self, url: str, agent: str, max_wait: float) -> Answer:
        try:
            response, body = await self._post(PATH, self._questions.question(url, agent, max_wait), PERMIT_TIMEOUT)
        except _Unavailable as error:
            return NoAnswer(str(error))
        return self._questions.answer(response, body)

    async def _released(self, grant: Grant) -> None:
        await self._report(grant, RELEASED)

    async def _report(self, grant: Grant, fields: Mapping[str, object]) -> float | None:
        try:
            response, body = await self._post(outcome_path(grant.permit), fields, OUTCOME_TIMEOUT)
        except _Unavailable:
            return None
        return parse_backoff(response.status_code, body)

    async def _post(self, path: str, said: Mapping[str, object], timeout: float) -> tuple[httpx.Response, bytes]:  # noqa: ASYNC109
        with _explained(timeout):
            async with asyncio.timeout(timeout), self._client.stream("POST", path, content=encode(said)) as response:
                body = bytearray()
                async for piece in response.aiter_raw():
                    _grow(body, piece)
                return response, bytes(body)


class SyncPermitClient:
    """The client for threads. A response whose headers arrive slowly is not bounded in time as a whole."""

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        caller: str | None = None,
        transport: httpx.BaseTransport | None = None,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._questions = _Questions(url, key, caller, clock)
        self._monotonic = monotonic
        self._sleep = sleep
        self._client = httpx.Client(
            base_url=self._questions.url,
            headers=self._questions.headers,
            transport=transport or httpx.HTTPTransport(),
            trust_env=False,
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def permit(self, url: str, agent: str, max_wait: float, *, retry: bool = False) -> Answer:
        """Wait for the slot of a page, see `permit_conversation`; if interrupted, release it."""
        conversation = permit_conversation(max_wait, retry=retry, monotonic=self._monotonic)
        answer: Answer | None = None
        while True:
            try:
                step = conversation.send(answer)
            except StopIteration as end:
                result: Answer = end.value
                return result
            match step:
                case RequestPermit(max_wait=wait):
                    answer = self._ask(url, agent, wait)
                case Sleep(seconds=seconds, holding=grant):
                    answer = None
                    try:
                        self._sleep(seconds)
                    except BaseException:  # usually KeyboardInterrupt
                        if grant is not None:
                            self.release(grant)
                        raise
                case _:
                    assert_never(step)

    def release(self, grant: Grant) -> None:
        """Release an unused slot. If the service cannot be reached, the slot just passes."""
        self._report(grant, RELEASED)

    def report(self, grant: Grant, status: int, retry_after: str | None, elapsed: float) -> float | None:
        """Report the response of the page; return the seconds of backoff of its origin, None if unknown."""
        return self._report(grant, outcome(status, retry_after, elapsed))

    def _ask(self, url: str, agent: str, max_wait: float) -> Answer:
        try:
            response, body = self._post(PATH, self._questions.question(url, agent, max_wait), PERMIT_TIMEOUT)
        except _Unavailable as error:
            return NoAnswer(str(error))
        return self._questions.answer(response, body)

    def _report(self, grant: Grant, fields: Mapping[str, object]) -> float | None:
        try:
            response, body = self._post(outcome_path(grant.permit), fields, OUTCOME_TIMEOUT)
        except _Unavailable:
            return None
        return parse_backoff(response.status_code, body)

    def _post(self, path: str, said: Mapping[str, object], timeout: float) -> tuple[httpx.Response, bytes]:
        ends = self._monotonic() + timeout
        with _explained(timeout), self._client.stream("POST", path, content=encode(said), timeout=timeout) as response:
            body = bytearray()
            for piece in response.iter_raw():
                _grow(body, piece)
                if self._monotonic() > ends:
                    raise TimeoutError
            return response, bytes(body)


@contextmanager
def _explained(timeout: float) -> Iterator[None]:
    try:
        yield
    except (TimeoutError, httpx.TimeoutException):
        raise _Unavailable(f"it does not respond within {timeout:g} s") from None
    except httpx.HTTPError as error:
        raise _Unavailable(f"it cannot be reached: {str(error) or type(error).__name__}") from None


def _grow(body: bytearray, piece: bytes) -> None:
    if len(body) + len(piece) > ANSWER_LIMIT:
        raise _Unavailable(f"its answer is longer than {ANSWER_LIMIT} bytes")
    body += piece


def _checked(url: str) -> httpx.URL:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ValueError(f"Invalid service URL {url!r}: {error}") from None
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise ValueError(f"Invalid service URL {url!r}: use http:// or https:// and a host")
    return parsed
