"""The whole exchange about one page as a generator, without I/O: clients only perform its steps."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeAlias

from robots_decisions.permits import (
    FIRST_RETRY_DELAY,
    GRACE,
    LAST_RETRY_DELAY,
    MAX_PERMIT_WAIT,
    Answer,
    Granted,
    NoAnswer,
    RetryLater,
    not_ours,
)
from robots_decisions.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class RequestPermit:
    """Request a permit whose slot begins within `max_wait` seconds, and send the answer back."""

    max_wait: float


@dataclass(frozen=True, slots=True)
class Sleep:
    """Sleep `because` of an answer; if interrupted, release the slot in `holding`."""

    seconds: float
    holding: Granted | None = None
    because: "Heard | None" = None


Step: TypeAlias = RequestPermit | Sleep

Heard: TypeAlias = Answer | Verdict
"""What the service answers: a Verdict, if it was asked without a permit."""


class Patience:
    """How long to wait: at most `max_wait` seconds, also for a service that is silent if `retry`."""

    def __init__(self, max_wait: float, *, retry: bool, monotonic: Callable[[], float]) -> None:
        self._ends = monotonic() + max_wait
        self._pause = FIRST_RETRY_DELAY
        self._retry = retry
        self._monotonic = monotonic

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return max(0.0, self._ends - self._monotonic())

    def after(self, answer: Heard) -> float | None:
        """Seconds to wait before the service is asked again, or None to give up."""
        if isinstance(answer, RetryLater):
            seconds = answer.seconds
        elif isinstance(answer, NoAnswer) and answer.remedy is None and self._retry:
            seconds, self._pause = self._pause, min(self._pause * 2, LAST_RETRY_DELAY)
        else:
            return None
        return seconds if seconds <= self.left else None


def permit_conversation(
    max_wait: float, *, retry: bool, monotonic: Callable[[], float]
) -> Generator[Step, Heard | None, Heard]:
    """The exchange about one page: returns Granted when its slot begins, or why there is none within `max_wait` s.

    With `retry`, a service that does not respond is asked again until then.
    """
    patience = Patience(max_wait, retry=retry, monotonic=monotonic)
    while True:
        left = patience.left
        answer = yield RequestPermit(min(left, MAX_PERMIT_WAIT))
        if answer is None:
            raise TypeError("send an answer after RequestPermit")
        if isinstance(answer, Granted):
            if answer.wait > left + GRACE:
                return not_ours(f"a slot in {answer.wait} s to a question for at most {left:.3f} s")
            due = monotonic() + answer.wait
            yield Sleep(answer.wait, holding=answer)
            if not answer.is_over(monotonic() - due):
                return answer
            continue  # nothing to release: the slot is over
        seconds = patience.after(answer)
        if seconds is None:
            return answer
        yield Sleep(seconds, because=answer)
