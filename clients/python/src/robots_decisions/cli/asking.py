"""Asks batches, several at once: first what the service has in its cache, then what waits for a site."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Any, TypeAlias

from robots_decisions import AsyncClient, BundleRow, PermitError, Question, Unanswered, Verdict
from robots_decisions.cli.batches import Batch, PutOff
from robots_decisions.cli.entries import Entry, Line, NotAsked
from robots_decisions.cli.failures import Failed
from robots_decisions.cli.instants import read_instant
from robots_decisions.cli.options import with_settings
from robots_decisions.cli.origins import NO_HTTPS, candidates, lacks_https

IN_FLIGHT = 64
"""Batches that are being asked, at most: those that are answered, and those that wait for a site."""

PATIENCE, OTHERS, SILENCE, LOOK = 0.5, 1000, 2.0, 0.1
"""A batch waits for a site after so many seconds without an answer, if so many others came meanwhile, or none at all
for so long: a service that is slow for all batches gets no more of them. LOOK: seconds from one look to the next."""

SITES_SILENCE = 0.5
"""The same as SILENCE once only lines are left that wait for a site."""

PENDING_ATTEMPTS = 3
"""How often a page is asked again whose file is still being fetched; each time the service waits for it."""

BUSY_ATTEMPTS = 8
"""Attempts at lines that the service has no room for, at most, while it answers no others."""

BUSY_DELAY, MIN_BUSY_DELAY, MAX_BUSY_DELAY = 5.0, 0.5, 120.0
"""Seconds to pause when the service is busy and does not say for how long, and the shortest and longest pause."""

QUOTA_USED_UP = 429
BUSY = frozenset({QUOTA_USED_UP, 503})

Answer: TypeAlias = "Verdict | Unanswered | NotAsked"
"""What became of a line about a page."""

Reply: TypeAlias = "Verdict | BundleRow | Unanswered"
"""What the service answers."""

Shape: TypeAlias = Callable[[Line, Any], Any]
"""What is kept of an answer: whole answers are long."""

Ask: TypeAlias = "Callable[[AsyncClient, Sequence[Entry], bool, bool], AsyncGenerator[Reply, None]]"
"""Asks about entries, whose answers come in their order; the other arguments say whether they need the facts of the
fetch, and whether to answer at once, without waiting for a site."""


def verdicts(question: Callable[[Entry], Question], fields: Sequence[str] = ()) -> Ask:
    """Asks for verdicts, and the members `fields` beside those of a verdict."""

    def ask(client: AsyncClient, entries: Sequence[Entry], with_facts: bool, at_once: bool) -> Any:
        wanted = (*fields, "robots") if with_facts else fields
        return client.batch(map(question, entries), fields=wanted, wait=0 if at_once else None)

    return ask


def is_current(answer: Reply) -> bool:
    """Whether an answer given at once is the one that waiting would get: its file is not due to be fetched."""
    if not isinstance(answer, Verdict) or is_pending(answer):
        return False
    robots = answer.members.get("robots")
    due = read_instant(str(robots.get("recheck_at"))) if isinstance(robots, dict) else None
    return due is None or due > time.time()


def is_pending(answer: Reply) -> bool:
    """Whether the service is still fetching the file."""
    return isinstance(answer, Verdict) and answer.reason == "pending"


Done: TypeAlias = Callable[[Batch, Sequence[Any]], None]
"""Takes a batch whose lines are all answered, and what is kept of their answers."""


class Asking:
    """Asks batches of lines, `concurrency` at a time. Those for which `pending` is true are asked again, a few times.

    With `cached_first`, one line of each site of a batch is asked about at once. The lines of sites whose file is not
    in the cache, or due, are put off until the end, while the service fetches it. A batch that waits for a site leaves
    its place to others. `done` is called with what is answered of a batch; with `in_order`, in the order of the
    batches, of which none waits. The first of two clients asks until the first answer has come: a service that never
    answered is not waited for.
    """

    def __init__(
        self,
        clients: Sequence[AsyncClient],
        ask: Ask,
        shape: Shape,
        done: Done,
        *,
        pending: Callable[[Reply], bool] = is_pending,
        concurrency: int,
        in_order: bool = False,
        cached_first: bool = False,
    ) -> None:
        self._first, self._client = clients
        self._ask_about = ask
        self._shape = shape
        self._done = done
        self._is_pending = pending
        self._places = concurrency
        self._in_order = in_order
        self._cached_first = cached_first
        self._silence = SILENCE
        self._found = ""
        self._running: dict[asyncio.Task[None], _Running] = {}
        self._changed = asyncio.Event()
        self._answered = self._heard = 0
        self._paused_until = 0.0

    async def run(self, batches: Iterable[Batch]) -> None:
        """Ask all batches. Raise Failed."""
        # A log is about the past, for which no site is asked.
        watch = [] if self._in_order else [asyncio.create_task(self._watch())]
        put_off = PutOff()
        try:
            await self._ask_all(batches, put_off if self._cached_first else None)
            self._silence = SITES_SILENCE
            await self._ask_all(put_off.all(), None)
        finally:
            everything = [*watch, *self._running]
            for task in everything:
                task.cancel()
            await asyncio.gather(*everything, return_exceptions=True)
            put_off.close()

    async def _ask_all(self, batches: Iterable[Batch], put_off: PutOff | None) -> None:
        for batch in batches:
            await self._room()
            self._start(batch, put_off)
        await self._until(lambda: not self._running)

    def _start(self, batch: Batch, put_off: PutOff | None) -> None:
        running = _Running(batch, asyncio.get_running_loop().time())
        before = next(reversed(self._running), None) if self._in_order else None
        self._places -= 1
        task = asyncio.create_task(self._ask(running, before, put_off))
        self._running[task] = running
        task.add_done_callback(lambda _: self._changed.set())

    async def _room(self) -> None:
        await self._until(lambda: self._places > 0 and len(self._running) < IN_FLIGHT)

    async def _until(self, holds: Callable[[], bool]) -> None:
        while True:
            for task in [task for task in self._running if task.done()]:
                del self._running[task]
                task.result()
            if holds():
                return
            self._changed.clear()
            await self._changed.wait()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            now = asyncio.get_running_loop().time()
            if now < self._paused_until:
                continue
            is_silent = now - max((it.heard for it in self._running.values()), default=now) > self._silence
            for running in self._running.values():
                others = self._heard - running.heard_before
                if not running.waits and (is_silent or (now - running.heard > PATIENCE and others > OTHERS)):
                    running.waits = True
                    self._leave(running)

    def _leave(self, running: "_Running") -> None:
        if running.has_place:
            running.has_place = False
            self._places += 1
            self._changed.set()

    async def _ask(self, running: "_Running", before: "asyncio.Task[None] | None", put_off: PutOff | None) -> None:
        try:
            lines = running.batch.lines()
            kept: dict[int, Any] = {}
            asked: list[_Asked] = []
            for at, line in enumerate(lines):
                if isinstance(line.entry, NotAsked):
                    kept[at] = self._shape(line, line.entry)
                else:
                    asked.append(_Asked(at, line, line.entry))
            if put_off is not None:
                asked = await self._in_cache(asked, kept, running)
            await self._answers(asked, kept, running)
            if before is not None:
                await asyncio.wait({before})
                before.result()  # if it failed, what comes after it is not done either
            answered = sorted(kept)
            if answered:
                self._done(running.batch.only(answered), [kept[at] for at in answered])
            if put_off is not None and len(answered) < len(lines):
                put_off.add(running.batch.only(at for at in range(len(lines)) if at not in kept))
        finally:
            self._leave(running)

    async def _in_cache(self, asked: "Sequence[_Asked]", kept: dict[int, Any], running: "_Running") -> "list[_Asked]":
        """The lines of sites whose file is in the cache. The first line of each, with which that is found, is answered.

        Lines without a site can be answered at once.
        """
        found = {"", self._found}
        probes = list({one.line.origin: one for one in reversed(asked) if one.line.origin not in found}.values())
        while probes:
            await self._pause(running)
            again: list[_Asked] = []
            before, delay = self._answered, 0.0
            async for one, answer in self._each(probes, running, at_once=True):
                if isinstance(answer, Unanswered) and answer.status in BUSY:
                    delay = max(delay, _pause_after(answer))
                    if answer.status == QUOTA_USED_UP:
                        again.append(one)
                elif one.has_other(answer):
                    again.append(one.other())
                elif is_current(answer):
                    self._answered += 1
                    kept[one.at] = self._shape(one.line, answer)
                    found.add(one.line.origin)
                    self._found = one.line.origin  # of a large site, the next batches have more lines
            probes = again
            if again or self._answered == before:  # else there is no room for fetches alone
                self._paused_until = max(self._paused_until, asyncio.get_running_loop().time() + delay)
        return [one for one in asked if one.line.origin in found and one.at not in kept]

    async def _answers(self, asked: "Sequence[_Asked]", kept: dict[int, Any], running: "_Running") -> None:
        """Keep the answers to these lines. Raise Failed."""
        pending = busy = 0
        while asked:
            await self._pause(running)
            again: list[_Asked] = []
            before, delay = self._answered, 0.0
            still_pending = False
            async for one, answer in self._each(asked, running):
                if isinstance(answer, Unanswered) and answer.status in BUSY:
                    delay = max(delay, _pause_after(answer))
                    again.append(one)
                elif one.has_other(answer):
                    again.append(one.other())
                elif pending < PENDING_ATTEMPTS and self._is_pending(answer):
                    still_pending = True
                    again.append(one)
                else:
                    self._answered += 1
                    kept[one.at] = self._shape(one.line, answer)
            pending += still_pending
            busy = busy + 1 if delay and self._answered == before else 0
            if busy == BUSY_ATTEMPTS:
                raise Failed("The service stays busy.")
            asked = again
            self._paused_until = max(self._paused_until, asyncio.get_running_loop().time() + delay)

    async def _pause(self, running: "_Running") -> None:
        """Wait while the service is busy. All batches do, or they would take each other's turns."""
        now = asyncio.get_running_loop().time
        while (remaining := self._paused_until - now()) > 0:  # noqa: ASYNC110 - other batches make it longer
            await asyncio.sleep(remaining)
        running.heard, running.heard_before = now(), self._heard

    async def _each(
        self, asked: "Sequence[_Asked]", running: "_Running", *, at_once: bool = False
    ) -> "AsyncIterator[tuple[_Asked, Reply]]":
        """Each question with its answer. Raise Failed."""
        now = asyncio.get_running_loop().time
        entries = [one.entry._replace(url=one.url) for one in asked]
        with_facts = at_once or any(one.others for one in asked)
        at = 0
        while at < len(asked):
            client = self._client if self._heard else self._first
            try:
                async with aclosing(self._ask_about(client, entries[at:], with_facts, at_once)) as answers:
                    async for answer in answers:
                        yield asked[at], answer
                        at += 1
                        self._heard += 1
                        running.heard, running.heard_before, running.waits = now(), self._heard, False
            except PermitError as error:
                if client is self._client or not self._heard:
                    raise Failed(with_settings(str(error))) from None


def _pause_after(answer: Unanswered) -> float:
    after = BUSY_DELAY if answer.retry_after is None else answer.retry_after
    return max(MIN_BUSY_DELAY, min(after, MAX_BUSY_DELAY))


class _Running:
    """A batch that is being asked: when it last had an answer, and how many all had by then."""

    def __init__(self, batch: Batch, now: float) -> None:
        self.batch = batch
        self.heard = now
        self.heard_before = 0
        self.has_place = True
        self.waits = False


class _Asked:
    """A line that is being asked, at a place of its batch; `others` are the URLs to ask if its own has no https."""

    def __init__(self, at: int, line: Line, entry: Entry, urls: Sequence[str] | None = None) -> None:
        self.at = at
        self.line = line
        self.entry = entry
        if urls is None:
            urls = candidates(entry.url) if entry.at is None else (entry.url,)
        self.url, *self.others = urls

    def has_other(self, answer: Reply) -> bool:
        if not self.others:
            return False
        if isinstance(answer, BundleRow):
            return answer.outcome in NO_HTTPS
        robots = answer.members.get("robots") if isinstance(answer, Verdict) else None
        return isinstance(robots, dict) and lacks_https(robots)

    def other(self) -> "_Asked":
        return _Asked(self.at, self.line, self.entry, self.others)
