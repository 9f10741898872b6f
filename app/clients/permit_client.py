"""The service, asked over HTTP by httpx: bounded in time and octets, and whatever goes wrong is an answer, too."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import assert_never

import httpx

from app.clients.permits import (
    ANSWER_LIMIT,
    LONGEST_COLD,
    MARGIN,
    PATH,
    RELEASED,
    Answer,
    Ask,
    NoAnswer,
    Sleep,
    Turn,
    checked_caller,
    encoded,
    headers,
    outcome,
    outcome_path,
    question,
    read_answer,
    read_held_back,
    turns,
)

ASK_TIMEOUT = LONGEST_COLD + MARGIN
"""Seconds for a question and its answer."""

TELL_TIMEOUT = MARGIN
"""Seconds for an outcome: what is not told by then is not known to others."""


class _Silent(Exception):
    """The service could not be asked; the text says why."""


class _Questions:
    """What is sent, and how the answers are read: what both clients share."""

    def __init__(self, url: str, key: str | None, caller: str | None, clock: Callable[[], float]) -> None:
        self.url = _checked(url)
        self.headers = headers(key)
        self._caller = checked_caller(caller)
        self._clock = clock

    def question(self, url: str, agent: str, max_wait: float) -> dict[str, object]:
        return question(url, agent, max_wait, caller=self._caller)

    def answer(self, response: httpx.Response, body: bytes) -> Answer:
        return read_answer(response.status_code, response.headers, body, self._clock())


class Service:
    """The service at a URL, under asyncio; ValueError for a URL, key or caller's name that cannot be used.

    `transport` is how it is reached, where httpx's own way will not do; proxies of the environment are not used.
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
        self._behind: set[asyncio.Task[None]] = set()
        self._client = httpx.AsyncClient(
            base_url=self._questions.url,
            headers=self._questions.headers,
            transport=transport or httpx.AsyncHTTPTransport(),
            timeout=None,  # noqa: S113 - asyncio.timeout bounds all of it, where httpx would bound each step
            trust_env=False,
        )

    async def aclose(self) -> None:
        """Close the connections, when the turns that were not used are given back."""
        if self._behind:
            await asyncio.wait(self._behind)
        await self._client.aclose()

    async def turn(self, url: str, agent: str, max_wait: float, *, insist: bool = False) -> Answer:
        """Wait for the turn of the page at `url`, as `turns` says; whoever is cancelled meanwhile gives it back."""
        conversation = turns(max_wait, insist=insist, monotonic=self._monotonic)
        heard: Answer | None = None
        while True:
            try:
                step = conversation.send(heard)
            except StopIteration as end:
                answer: Answer = end.value
                return answer
            match step:
                case Ask(max_wait=wait):
                    heard = await self._ask(url, agent, wait)
                case Sleep(seconds=seconds, holding=turn):
                    heard = None
                    try:
                        await self._sleep(seconds)
                    except BaseException:
                        if turn is not None:
                            self.give_back(turn)
                        raise
                case _:
                    assert_never(step)

    def give_back(self, turn: Turn) -> None:
        """Give back a turn that was not used, behind: a service that cannot be told lets it pass."""
        # Whoever was cancelled cannot wait for it himself.
        task = asyncio.create_task(self._released(turn))
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)

    async def report(self, turn: Turn, status: int, retry_after: str | None, elapsed: float) -> float | None:
        """Tell what the page answered: for how many seconds its origin is left alone now, None if that is unknown."""
        return await self._tell(turn, outcome(status, retry_after, elapsed))

    async def _ask(self, url: str, agent: str, max_wait: float) -> Answer:
        try:
            response, body = await self._post(PATH, self._questions.question(url, agent, max_wait), ASK_TIMEOUT)
        except _Silent as error:
            return NoAnswer(str(error))
        return self._questions.answer(response, body)

    async def _released(self, turn: Turn) -> None:
        await self._tell(turn, RELEASED)

    async def _tell(self, turn: Turn, told: Mapping[str, object]) -> float | None:
        try:
            response, body = await self._post(outcome_path(turn.permit), told, TELL_TIMEOUT)
        except _Silent:
            return None
        return read_held_back(response.status_code, body)

    async def _post(self, path: str, said: Mapping[str, object], timeout: float) -> tuple[httpx.Response, bytes]:  # noqa: ASYNC109
        with _explained(timeout):
            async with asyncio.timeout(timeout), self._client.stream("POST", path, content=encoded(said)) as response:
                body = bytearray()
                async for piece in response.aiter_raw():
                    _grow(body, piece)
                return response, bytes(body)


class SyncService:
    """The same for threads. What drips in, header by header, is not bounded in time as a whole."""

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

    def turn(self, url: str, agent: str, max_wait: float, *, insist: bool = False) -> Answer:
        """Wait for the turn of the page at `url`, as `turns` says; whoever is interrupted meanwhile gives it back."""
        conversation = turns(max_wait, insist=insist, monotonic=self._monotonic)
        heard: Answer | None = None
        while True:
            try:
                step = conversation.send(heard)
            except StopIteration as end:
                answer: Answer = end.value
                return answer
            match step:
                case Ask(max_wait=wait):
                    heard = self._ask(url, agent, wait)
                case Sleep(seconds=seconds, holding=turn):
                    heard = None
                    try:
                        self._sleep(seconds)
                    except BaseException:  # by the keyboard, as a rule
                        if turn is not None:
                            self.give_back(turn)
                        raise
                case _:
                    assert_never(step)

    def give_back(self, turn: Turn) -> None:
        """Give back a turn that was not used: a service that cannot be told lets it pass."""
        self._tell(turn, RELEASED)

    def report(self, turn: Turn, status: int, retry_after: str | None, elapsed: float) -> float | None:
        """Tell what the page answered: for how many seconds its origin is left alone now, None if that is unknown."""
        return self._tell(turn, outcome(status, retry_after, elapsed))

    def _ask(self, url: str, agent: str, max_wait: float) -> Answer:
        try:
            response, body = self._post(PATH, self._questions.question(url, agent, max_wait), ASK_TIMEOUT)
        except _Silent as error:
            return NoAnswer(str(error))
        return self._questions.answer(response, body)

    def _tell(self, turn: Turn, told: Mapping[str, object]) -> float | None:
        try:
            response, body = self._post(outcome_path(turn.permit), told, TELL_TIMEOUT)
        except _Silent:
            return None
        return read_held_back(response.status_code, body)

    def _post(self, path: str, said: Mapping[str, object], timeout: float) -> tuple[httpx.Response, bytes]:
        ends = self._monotonic() + timeout
        with _explained(timeout), self._client.stream("POST", path, content=encoded(said), timeout=timeout) as response:
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
        raise _Silent(f"it does not answer within {timeout:g} s") from None
    except httpx.HTTPError as error:
        raise _Silent(f"it cannot be asked: {str(error) or type(error).__name__}") from None


def _grow(body: bytearray, piece: bytes) -> None:
    if len(body) + len(piece) > ANSWER_LIMIT:
        raise _Silent(f"its answer is longer than {ANSWER_LIMIT} octets")
    body += piece


def _checked(url: str) -> httpx.URL:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ValueError(f"{url!r} is no URL of a service: {error}") from None
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise ValueError(f"{url!r} is no URL of a service: it begins with http:// or https://, and names a host")
    return parsed
