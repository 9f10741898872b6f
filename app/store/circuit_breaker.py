"""A circuit breaker for one shard of the store: calls are short, and after a failure none is sent for a while."""

import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from redis.exceptions import AuthenticationError, ResponseError
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import TimeoutError as NoAnswer

from app.loop.request_shares import RequestShares
from app.store.failures import FAILURES, ConnectionEnded

COOLDOWN = 1.0
"""Seconds for which no call is sent to a shard after one failed."""

IN_FLIGHT = 32
"""Calls of a process to a shard at once: each takes the server some tens of microseconds."""

SHARD_LOG_EVERY = 60.0
"""Seconds in which a shard that fails repeatedly is logged once."""

_log = logging.getLogger(__name__)

T = TypeVar("T")


class StoreDown(Exception):
    """The store cannot be used now; the message says what failed."""


class UnexpectedReply(StoreDown):
    """The store sent a reply of another shape than the command has."""

    def __init__(self, reply: object) -> None:
        super().__init__(f"the store sent an unexpected reply: {reply!r:.100}")


class Failure(StrEnum):
    """How a call fails: the server refused it, or did not send a valid answer in time."""

    REFUSED = "refused"
    UNANSWERED = "unanswered"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why the last call failed, and for how many seconds the shard has been degraded."""

    what: str
    seconds: float


@dataclass(eq=False)
class CircuitBreaker:
    """The calls to one shard.

    IN_FLIGHT of them run at once, and the requests that wait take turns. Each call has to end by itself once it has
    taken `timeout` seconds, which is for messages here. After one that fails or is late, all are refused for COOLDOWN
    seconds of `monotonic`. Then one is sent, and the others once it has succeeded. A connection that ends fails its own
    calls only: if the server is gone, opening the next one fails. `failed` is called for every failed call, except
    those refused during the cooldown; `answered` with the seconds that every answer took, refusals by the server
    included. `name` appears in the log.
    """

    name: str
    timeout: float
    monotonic: Callable[[], float]
    failed: Callable[[Failure], None]
    answered: Callable[[float], None]

    def __post_init__(self) -> None:
        self._calling = RequestShares(IN_FLIGHT)
        self._open_until: float | None = None
        self._refuses = False
        self._trouble: tuple[str, float] | None = None  # what, and since when
        self._logged_at = -math.inf
        self._quiet = False  # the trouble was not logged, so its end is not either

    @property
    def degraded(self) -> bool:
        """Whether the last call failed, or the server has refused one since the last successful probe."""
        return self._open_until is not None or self._refuses

    @property
    def trouble(self) -> Trouble | None:
        """What is wrong while the shard is degraded."""
        if self._trouble is None or not self.degraded:
            return None
        what, since = self._trouble
        return Trouble(what, self.monotonic() - since)

    def note_probe(self) -> None:
        """Note that a command succeeded that does all that the service needs: earlier refusals no longer count."""
        # A server may answer reads and refuse writes, or accept SET and refuse EVAL.
        self._refuses = False
        self._note_success()

    async def call(self, command: Callable[[], Awaitable[T]]) -> T | None:
        """Run a command that ends in time by itself; None if its key holds a value of another type.

        Raises StoreDown.
        """
        # The wait for a turn is outside the timeout: a thousand calls at once do not mean that the store is
        # slow. It is still bounded, because once a call has failed, those behind it are refused.
        async with self._calling:
            self._admit()
            begun = self.monotonic()
            try:
                result = await command()
                self.answered(self.monotonic() - begun)
            except ResponseError as error:
                self.answered(self.monotonic() - begun)
                if str(error).startswith("WRONGTYPE"):
                    result = None
                else:
                    # The server answered in time: a full store, for example, refuses writes and can still be read.
                    self._refuses, self._open_until = True, None
                    raise self._note_failure(Failure.REFUSED, f"{self.name} refused: {_said(error)}") from error
            except ConnectionEnded as error:
                self.failed(Failure.UNANSWERED)
                raise StoreDown(self._describe(error)) from error
            except FAILURES as error:
                self._open_until = self.monotonic() + COOLDOWN
                raise self._note_failure(Failure.UNANSWERED, self._describe(error)) from error
            self._open_until = None
            self._note_success()
            return result

    def _admit(self) -> None:
        if self._open_until is None:
            return
        now = self.monotonic()
        if now < self._open_until:
            raise StoreDown(f"{self.name} failed less than {COOLDOWN:g} s ago and is not called")
        # This call goes ahead, and the others are refused until it has succeeded.
        self._open_until = now + COOLDOWN

    def _describe(self, error: BaseException) -> str:
        match error:
            case AuthenticationError():
                return f"{self.name} refused the user or the password: {_said(error)}"
            case TimeoutError() | NoAnswer():
                return f"{self.name} did not answer within {self.timeout:g} s"
            case NoConnection() | OSError() | EOFError():
                return f"{self.name} cannot be used: {_said(error) or type(error).__name__}"
            case _:
                return f"{self.name} sent an invalid answer: {type(error).__name__}: {error}"

    def _note_failure(self, kind: Failure, text: str) -> StoreDown:
        self.failed(kind)
        if self._trouble is None:
            now = self.monotonic()
            self._trouble = text, now
            self._quiet = now - self._logged_at < SHARD_LOG_EVERY
            if not self._quiet:
                self._logged_at = now
                _log.warning("The store is degraded: %s", text)
        else:
            self._trouble = text, self._trouble[1]
        return StoreDown(text)

    def _note_success(self) -> None:
        if self._trouble is not None and not self.degraded:
            if not self._quiet:
                seconds = self.monotonic() - self._trouble[1]
                _log.warning("The store is available again: %s was degraded for %.0f s", self.name, seconds)
            self._trouble = None


def _said(error: BaseException) -> str:
    """The text of an error, with the code of the server (such as NOPERM) that redis-py takes off."""
    code, text = getattr(error, "status_code", None), str(error).rstrip(".")
    return f"{code} {text}" if code else text
