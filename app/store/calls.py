"""Calls to the store: every one is short, and a store that fails is left alone for a while."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from redis.exceptions import ResponseError

from app.store.ending import end
from app.store.engines import Client
from app.store.failures import FAILURES

REST = 1.0
"""Seconds for which a store that failed is left alone."""

TURNS = 32
"""How many calls are under way at once, and how many late ones beside them: a client's pool opens 100 connections."""

SLICES = 10
"""Into how many parts the time that a call may take is cut."""

LATE = 5.0
"""Seconds after which a call that is late is ended; connecting over a bad line may take long."""

_PROBE = "robots:probe"

_log = logging.getLogger(__name__)

T = TypeVar("T")


class StoreDown(Exception):
    """The store cannot be used now; the cause is what it or the way to it said."""


class Failure(StrEnum):
    """How a call to the store fails: it said no, or it said nothing in time that could be understood."""

    REFUSED = "refused"
    UNANSWERED = "unanswered"


@dataclass(frozen=True, slots=True)
class Trouble:
    """What the last call that failed met with, and for how many seconds the store has been degraded."""

    what: str
    seconds: float


def _ignore(_event: object) -> None:
    pass


class Calls:
    """Everything that a process asks of its store goes through one of these, so that all notice when it fails.

    A call takes at most `timeout` seconds once its turn has come. After one that fails or is late, all are refused for
    REST seconds of `monotonic`; then one goes ahead, and the others once it has succeeded. `failed` is told of every
    call that fails, those that are refused during a rest left out; `answered` of the seconds that every answer took, a
    refusal included. `client` is for what is to be called.
    """

    def __init__(
        self,
        client: Client,
        *,
        monotonic: Callable[[], float],
        timeout: float = 0.1,
        failed: Callable[[Failure], None] = _ignore,
        answered: Callable[[float], None] = _ignore,
    ) -> None:
        self.client = client
        self._monotonic = monotonic
        self._timeout = timeout
        self._turns = asyncio.Semaphore(TURNS)
        self._late: set[asyncio.Task[object]] = set()
        self._rests_until: float | None = None
        self._down = False
        self._refuses = False
        self._failed = failed
        self._answered = answered
        self._trouble: tuple[str, float] | None = None  # and since when

    @property
    def degraded(self) -> bool:
        """Whether the last call that was tried failed, or the last one that writes was refused."""
        return self._down or self._refuses

    @property
    def trouble(self) -> Trouble | None:
        """What is wrong while the store is degraded, None while it is not."""
        if self._trouble is None or not self.degraded:
            return None
        what, since = self._trouble
        return Trouble(what, self._monotonic() - since)

    async def ping(self) -> None:
        """Raises StoreDown unless the store answers and can be written to: a full one helps nobody for long."""
        await self.write(lambda: self.client.set(_PROBE, b"", px=1000))

    async def aclose(self) -> None:
        """End the calls that are late; the client is its owner's to close."""
        await end(self._late)

    async def write(self, command: Callable[[], Awaitable[T]]) -> T | None:
        """As `read`, for a command that writes: a server may answer the one and refuse the other."""
        result = await self.read(command)
        self._refuses = False
        self._note_success()
        return result

    async def read(self, command: Callable[[], Awaitable[T]]) -> T | None:
        """What the command returns, None where its key holds another type than it asks for; raises StoreDown."""
        # Waiting for a turn is outside the deadline: a thousand calls at once are no sign of a slow store. It is
        # bounded all the same, since once a call has failed those behind it are refused.
        async with self._turns:
            self._begin()
            begun = self._monotonic()
            try:
                result = await self._in_time(command)
                self._answered(self._monotonic() - begun)
            except ResponseError as error:
                self._answered(self._monotonic() - begun)
                if str(error).startswith("WRONGTYPE"):
                    result = None
                else:
                    # It answered, and in time: a store that is full, say, and refuses to write is still to be read.
                    self._refuses, self._down, self._rests_until = True, False, None
                    raise self._note_failure(Failure.REFUSED, f"the store refused: {error}") from error
            except FAILURES as error:
                self._down, self._rests_until = True, self._monotonic() + REST
                text = f"the store did not answer within {self._timeout} s: {error!r}"
                raise self._note_failure(Failure.UNANSWERED, text) from error
            self._down, self._rests_until = False, None
            self._note_success()
            return result

    def _note_failure(self, kind: Failure, text: str) -> StoreDown:
        self._failed(kind)
        if self._trouble is None:
            _log.warning("The store is degraded: %s", text)
            self._trouble = text, self._monotonic()
        else:
            self._trouble = text, self._trouble[1]
        return StoreDown(text)

    def _note_success(self) -> None:
        if self._trouble is not None and not self.degraded:
            _log.warning("The store is as it should be again, after %.0f s", self._monotonic() - self._trouble[1])
            self._trouble = None

    async def _in_time(self, command: Callable[[], Awaitable[T]]) -> T:
        call = asyncio.create_task(_bounded(command))
        try:
            # In slices, each of which begins when the one before is noticed to be over: where it is this process that
            # was held up, what it slept through counts as one slice, and the answer that came meanwhile is looked at.
            for _ in range(SLICES):
                await asyncio.wait([call], timeout=self._timeout / SLICES)
                if call.done():
                    break
        finally:
            if not call.done():
                self._leave(call)
        if not call.done():
            raise TimeoutError
        return call.result()

    def _leave(self, call: asyncio.Task[T]) -> None:
        # It goes on, for it may be connecting, and a server that is far away would never be reached if every attempt
        # ended after the time that a command has. When it is through, the next call finds a connection.
        if len(self._late) >= TURNS:
            call.cancel()
        self._late.add(call)
        call.add_done_callback(self._forget)

    def _forget(self, call: asyncio.Task[T]) -> None:
        self._late.discard(call)
        if not call.cancelled():
            call.exception()  # looked at, so that asyncio does not report what nobody waits for

    def _begin(self) -> None:
        if self._rests_until is None:
            return
        now = self._monotonic()
        if now < self._rests_until:
            raise StoreDown("the store failed a moment ago, and is left alone")
        # This call goes ahead, and the rest lasts for the others until it has succeeded.
        self._rests_until = now + REST


async def _bounded(command: Callable[[], Awaitable[T]]) -> T:
    async with asyncio.timeout(LATE):
        return await command()
