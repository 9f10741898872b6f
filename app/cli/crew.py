"""Several origins asked about at once, as fast as the service says that it can."""

import json
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Any

from app.cli.client import Answer, Away, Service
from app.cli.exit_codes import Failed
from app.origin import Origin

HELD = 30
"""Seconds that the service may hold an answer for a fetch; where the fetch takes longer, it is asked again."""

TRIES = 8
"""How often an origin is asked about that the service has no answer for."""

PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""Seconds of rest for a service that does not answer at all, each time: it may be restarting."""

RETRY_AFTER, LONGEST_REST = 5.0, 120.0
"""Seconds of rest where it says that it is busy, and not for how long; and how long it may say."""

DRAW_EVERY = 0.1
"""Seconds between two looks at how far it has come."""

LEAVE_WITHIN = 5.0
"""Seconds that requests under way have, to end in after an interrupt."""

_BUSY = frozenset({429, 503})
_REFUSED = frozenset({401, 403, 404})


class Crew:
    """Asks the service about origins with `size` threads, and counts in `found` what their fetches came to.

    `done` is told of each that is through; `not_asked` counts those that the service had no answer for. Leaving the
    block by an exception gives up what is still in line.
    """

    def __init__(self, service: Service, done: Callable[[str], None], size: int) -> None:
        self._service = service
        self._done = done
        self._line: queue.Queue[Origin] = queue.Queue(maxsize=size)
        # Daemons, so that a service that hangs cannot keep the command from ending.
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(size)]
        self._lock = threading.Lock()
        self._ends = threading.Event()
        self._rests_until = 0.0
        self._broken: Failed | None = None
        self.found: Counter[str] = Counter()
        self.not_asked = 0

    def __enter__(self) -> "Crew":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.set()
        deadline = time.monotonic() + LEAVE_WITHIN
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def give(self, origin: Origin, look: Callable[[], None]) -> None:
        """Put an origin into the line, looking now and then while that is full; raises Failed where no more can be."""
        while True:
            self._check()
            look()
            try:
                self._line.put(origin, timeout=DRAW_EVERY)
            except queue.Full:
                continue
            return

    def finish(self, look: Callable[[], None]) -> None:
        """Come back when all that were given are through; raises Failed where they cannot be."""
        while self._line.unfinished_tasks:
            look()
            self._ends.wait(DRAW_EVERY)
            self._check()
        self._check()

    def _check(self) -> None:
        if self._broken is not None:
            raise self._broken

    def _work(self) -> None:
        while not self._ends.is_set():
            try:
                origin = self._line.get(timeout=DRAW_EVERY)
            except queue.Empty:
                continue
            try:
                self._ask(origin)
            except Failed as error:
                self._broken = error
            except OSError as error:
                self._broken = Failed(f"The state cannot be written: {error.strerror}.")
            finally:
                self._line.task_done()

    def _ask(self, origin: Origin) -> None:
        pauses = iter(PAUSES)
        for _ in range(TRIES):
            self._wait()
            if self._ends.is_set() or self._broken is not None:
                return
            try:
                answer = self._service.get("/v1/robots", {"url": origin.key, "as": "facts", "wait": HELD})
            except Away:
                pause = next(pauses, None)
                if pause is None:
                    raise
                self._rest(pause)
                continue
            if answer.status in _BUSY:
                self._rest(_retry_after(answer))
                continue
            outcome = self._outcome(answer)
            if outcome is not None:
                self._done(origin.key)
                with self._lock:
                    self.found[outcome] += 1
                return
        with self._lock:
            self.not_asked += 1

    def _outcome(self, answer: Answer) -> str | None:
        """What the fetch came to; None while it goes on, and where the service made a mistake."""
        try:
            told: dict[str, Any] = json.loads(answer.content)
            if answer.status in _REFUSED:
                raise Failed(f"{self._service.url} answers {answer.status}: {told['detail']}")
            if answer.status != 200:
                return None
            outcome = told["robots"]["outcome"]
        except (ValueError, LookupError, TypeError, RecursionError):
            text = f"{self._service.url} answers {answer.status}, and not as a service of this kind does."
            raise Failed(text) from None
        return None if outcome is None else str(outcome)[:20]

    def _rest(self, seconds: float) -> None:
        with self._lock:
            self._rests_until = max(self._rests_until, time.monotonic() + seconds)

    def _wait(self) -> None:
        while (left := self._rests_until - time.monotonic()) > 0:
            if self._ends.wait(min(left, 1.0)):
                return


def _retry_after(answer: Answer) -> float:
    said = answer.headers.get("retry-after", "")
    seconds = float(said) if said.isascii() and said.isdigit() and len(said) < 10 else RETRY_AFTER
    return min(max(seconds, PAUSES[0]), LONGEST_REST)
