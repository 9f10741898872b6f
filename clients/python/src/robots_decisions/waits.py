"""Says why requests wait: one line for each origin, and for the service, when that changes. No I/O but the log."""

import logging
import math
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from threading import Lock

from robots_decisions.permits import BUSY, PACE, Answer, Granted, NoAnswer, RetryLater
from robots_decisions.question import origin_key
from robots_decisions.verdicts import Verdict

ORIGINS = 65_536
"""Origins whose last state is remembered."""

_log = logging.getLogger("robots_decisions")


class Waits:
    """What requests wait for. `opens`: pages are fetched while the service at this URL is silent, and `open` says
    so."""

    def __init__(self, service: str, *, opens: bool) -> None:
        self._service = service
        self._opens = opens
        self._states: OrderedDict[str, str] = OrderedDict()
        self._waiting: Counter[str] = Counter()
        self._lock = Lock()

    def heard(self, url: str, answer: Answer | Verdict, waiting: int = 0) -> None:
        """Note what the service answered about a page; `waiting` more requests wait for the same."""
        if not self._states and isinstance(answer, Granted | Verdict):
            return
        origin = origin_key(url)
        if isinstance(answer, NoAnswer):
            if answer.remedy is None and not self._opens:
                self._change(self._service, "silent", f"{self._service} {answer.why}", waiting)
            return
        if isinstance(answer, RetryLater) and answer.reason == BUSY:
            self._change(self._service, f"busy {answer.status}", f"{self._service} {answer.why}", waiting)
            return
        self._end(self._service, "answers again")
        if isinstance(answer, RetryLater):
            if answer.reason != PACE:
                at = datetime.now(timezone.utc) + timedelta(seconds=answer.seconds)
                text = f"{origin} is deferred until {at:%Y-%m-%dT%H:%M:%SZ}: {because(self._service, answer)}"
                self._change(origin, answer.reason, text, waiting)
        elif not (isinstance(answer, Verdict) and answer.verdict == "defer"):
            self._end(origin, "is no longer deferred")

    def open(self, answer: NoAnswer) -> None:
        """Note that a page is fetched without a permit."""
        until = "Until it answers, pages are fetched without a permit, at the pace of their sites."
        self._change(self._service, "open", f"{self._service} {answer.why} {until}", 0, logging.WARNING)

    def slow(self, url: str, interval: float, waiting: int) -> None:
        """Note that requests of an origin wait for their slots outside the crawler's downloader."""
        origin = origin_key(url)
        text = f"{origin} may be asked for a page every {interval:g} s, so requests wait for their slots"
        self._change(f"pace {origin}", f"{math.frexp(interval)[1]}", text, waiting)  # said again if it is twice as long

    def backed_off(self, url: str, status: int, seconds: float, waiting: int) -> None:
        """Note that an origin is not asked because a page answered 429 or 503."""
        origin = origin_key(url)
        at = datetime.now(timezone.utc) + timedelta(seconds=seconds)
        text = f"{origin} answered {status}, so it is left alone until {at:%Y-%m-%dT%H:%M:%SZ}"
        self._change(f"backoff {origin}", f"{at:%H:%M}", text, waiting)

    @contextmanager
    def counted(self, url: str, answer: Answer | Verdict | None) -> Iterator[None]:
        """Count a request that sleeps because of this answer."""
        if answer is None:
            yield
            return
        of_service = isinstance(answer, NoAnswer) or (isinstance(answer, RetryLater) and answer.reason == BUSY)
        key = self._service if of_service else origin_key(url)
        with self._lock:
            self._waiting[key] += 1
        try:
            yield
        finally:
            with self._lock:
                self._waiting[key] -= 1
                if not self._waiting[key]:
                    del self._waiting[key]

    def _end(self, key: str, text: str) -> None:
        with self._lock:
            ended = self._states.pop(key, None)
        if ended is not None:
            _log.info("%s %s.", key, text)

    def _change(self, key: str, state: str, text: str, waiting: int, level: int = logging.INFO) -> None:
        with self._lock:
            before = self._states.pop(key, None)
            self._states[key] = state
            if len(self._states) > ORIGINS:
                self._states.popitem(last=False)
            waiting += self._waiting[key] + 1 if key in self._waiting else 1
        if before != state:
            _log.log(level, "%s%s", text, f" ({waiting} requests wait)" if waiting > 1 else "")


def because(service: str, answer: RetryLater) -> str:
    """Why a page has to wait, as a sentence that names the service."""
    return f"{service} {answer.why}" if answer.reason == BUSY else f"{service} says: {answer.why}"
