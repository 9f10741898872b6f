"""The whole exchange about one page as a generator, without I/O: clients only perform its steps."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeAlias

from robots_decisions._compat import unexpected
from robots_decisions.permits import (
    FIRST_RETRY_DELAY,
    GRACE,
    LAST_RETRY_DELAY,
    MAX_PERMIT_WAIT,
    Answer,
    Denied,
    Granted,
    InvalidQuestion,
    NoAnswer,
    RetryLater,
)
from robots_decisions.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class RequestPermit:
    """Request a permit whose slot begins within `max_wait` seconds, and send the answer back."""

    max_wait: float


@dataclass(frozen=True, slots=True)
class Sleep:
    """Sleep; if interrupted, release the slot in `holding`."""

    seconds: float
    holding: Granted | None = None


Step: TypeAlias = RequestPermit | Sleep

Heard: TypeAlias = Answer | Verdict
"""What the service answers: a Verdict, if it was asked without a permit."""


def permit_conversation(
    max_wait: float, *, retry: bool, monotonic: Callable[[], float]
) -> Generator[Step, Heard | None, Heard]:
    """The exchange about one page: returns Granted when its slot begins, or why there is none within `max_wait` s.

    With `retry`, a service that does not respond is asked again until then.
    """
    ends = monotonic() + max_wait
    pause = FIRST_RETRY_DELAY
    while True:
        left = max(0.0, ends - monotonic())
        answer = yield RequestPermit(min(left, MAX_PERMIT_WAIT))
        if answer is None:
            raise TypeError("send an answer after RequestPermit")
        match answer:
            case Granted(wait=wait) if wait > left + GRACE:
                return NoAnswer(f"it granted a slot in {wait} s, but at most {left:.3f} s were requested")
            case Granted(wait=wait):
                due = monotonic() + wait
                yield Sleep(wait, holding=answer)
                if not answer.is_over(monotonic() - due):
                    return answer
                continue  # nothing to release: the slot is over
            case RetryLater(seconds=seconds):
                pass
            case NoAnswer() if retry:
                seconds, pause = pause, min(pause * 2, LAST_RETRY_DELAY)
            case Denied() | InvalidQuestion() | NoAnswer() | Verdict():
                return answer
            case _:
                raise unexpected(answer)
        if seconds > max(0.0, ends - monotonic()):
            return answer
        yield Sleep(seconds)
