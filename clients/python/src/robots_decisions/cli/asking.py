"""Asks batches, several at once. A site that does not answer holds up the batches that ask about it, and no others."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Any, TypeAlias

from robots_decisions import AsyncClient, BundleRow, PermitError, Question, Unanswered, Verdict
from robots_decisions.cli.batches import Batch, PutOff
from robots_decisions.cli.entries import Entry, Line, NotAsked
from robots_decisions.cli.failures import Failed
from robots_decisions.cli.options import with_settings
from robots_decisions.cli.origins import NO_HTTPS, candidates, lacks_https

IN_FLIGHT = 64
"""Batches that are being asked, at most: those that are answered, and those that wait for a site."""

PATIENCE, OTHERS, SILENCE, LOOK = 0.5, 1000, 2.0, 0.1
"""A batch waits for a site after so many seconds without an answer, if so many others came meanwhile, or none at all
for so long: a service that is slow for all batches gets no more of them. LOOK: seconds from one look to the next."""

PENDING_ATTEMPTS = 3
"""How often a page is asked again whose file is still being fetched; each time the service waits for it."""

BUSY_ATTEMPTS = 8
"""Attempts at lines that the service has no room for, at most, while it answers no others."""

BUSY_DELAY, MIN_BUSY_DELAY, MAX_BUSY_DELAY = 5.0, 0.5, 120.0
"""Seconds to pause when the service is busy and does not say for how long, and the shortest and longest pause."""

BUSY = frozenset({429, 503})

Answer: TypeAlias = "Verdict | Unanswered | NotAsked"
"""What became of a line about a page."""

Reply: TypeAlias = "Verdict | BundleRow | Unanswered"
"""What the service answers."""

Shape: TypeAlias = Callable[[Line, Any], Any]
"""What is kept of an answer: whole answers are long."""

Ask: TypeAlias = "Callable[[AsyncClient, Sequence[Entry], bool], AsyncGenerator[Reply, None]]"
"""Asks about entries, whose answers come in their order; the last argument says whether bare hosts are among them."""


def verdicts(question: Callable[[Entry], Question], fields: Sequence[str] = ()) -> Ask:
    """Asks for verdicts, and the members `fields` beside those of a verdict."""

    def ask(client: AsyncClient, entries: Sequence[Entry], are_bare: bool) -> Any:
        return client.batch(map(question, entries), fields=(*fields, "robots") if are_bare else fields)

    return ask


def is_pending(answer: Reply) -> bool:
    """Whether the service is still fetching the file."""
    return isinstance(answer, Verdict) and answer.reason == "pending"


Done: TypeAlias = Callable[[Batch, Sequence[Any]], None]
"""Takes a batch whose lines are all answered, and what is kept of their answers."""


class Asking:
    """Asks batches of lines, `concurrency` at a time. Those for which `pending` is true are asked again, a few times.

    A batch that waits for a site leaves its place to others, and batches of that site are put off until the end. `done`
    is called for each batch as it is answered; with `in_order`, in the order of the batches, of which none waits.
    The first of two clients asks until the first answer has come: a service that never answered is not waited for.
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
    ) -> None:
        self._first, self._client = clients
        self._ask_about = ask
        self._shape = shape
        self._done = done
        self._is_pending = pending
        self._places = concurrency
        self._in_order = in_order
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
            for batch in batches:
                await self._room()
                if self._is_waited_for(batch.origin):
                    put_off.add(batch)
                else:
                    self._start(batch)
            for batch in put_off.all():
                await self._room()
                self._start(batch)
            await self._until(lambda: not self._running)
        finally:
            everything = [*watch, *self._running]
            for task in everything:
                task.cancel()
            await asyncio.gather(*everything, return_exceptions=True)
            put_off.close()

    def _start(self, batch: Batch) -> None:
        running = _Running(batch, asyncio.get_running_loop().time())
        before = next(reversed(self._running), None) if self._in_order else None
        self._places -= 1
        task = asyncio.create_task(self._ask(running, before))
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

    def _is_waited_for(self, origin: str) -> bool:
        return any(running.waits and running.origin == origin for running in self._running.values())

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            now = asyncio.get_running_loop().time()
            if now < self._paused_until:
                continue
            is_silent = now - max((it.heard for it in self._running.values()), default=now) > SILENCE
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

    async def _ask(self, running: "_Running", before: "asyncio.Task[None] | None") -> None:
        try:
            kept = await self._answers(running)
            if before is not None:
                await asyncio.wait({before})
                before.result()  # if it failed, what comes after it is not done either
            self._done(running.batch, kept)
        finally:
            self._leave(running)

    async def _answers(self, running: "_Running") -> Sequence[Any]:
        """What is kept of the answers to a batch. Raise Failed."""
        lines = running.batch.lines()
        kept: list[Any] = [None] * len(lines)
        asked: list[_Asked] = []
        for at, line in enumerate(lines):
            if isinstance(line.entry, NotAsked):
                kept[at] = self._shape(line, line.entry)
            else:
                asked.append(_Asked(at, line, line.entry))
        pending = busy = 0
        while asked:
            await self._pause(running)
            again: list[_Asked] = []
            before, delay = self._answered, 0.0
            still_pending = False
            async for one, answer in self._each(asked, running):
                if isinstance(answer, Unanswered) and answer.status in BUSY:
                    after = BUSY_DELAY if answer.retry_after is None else answer.retry_after
                    delay = max(delay, MIN_BUSY_DELAY, min(after, MAX_BUSY_DELAY))
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
        return kept

    async def _pause(self, running: "_Running") -> None:
        """Wait while the service is busy. All batches do, or they would take each other's turns."""
        now = asyncio.get_running_loop().time
        while (remaining := self._paused_until - now()) > 0:  # noqa: ASYNC110 - other batches make it longer
            await asyncio.sleep(remaining)
        running.heard, running.heard_before = now(), self._heard

    async def _each(self, asked: "Sequence[_Asked]", running: "_Running") -> "AsyncIterator[tuple[_Asked, Reply]]":
        """Each question with its answer. Raise Failed."""
        now = asyncio.get_running_loop().time
        entries = [one.entry._replace(url=one.url) for one in asked]
        are_bare = any(one.others for one in asked)
        at = 0
        running.origin = asked[0].line.origin
        while at < len(asked):
            client = self._client if self._heard else self._first
            try:
                async with aclosing(self._ask_about(client, entries[at:], are_bare)) as answers:
                    async for answer in answers:
                        yield asked[at], answer
                        at += 1
                        self._heard += 1
                        running.heard, running.heard_before, running.waits = now(), self._heard, False
                        running.origin = asked[at].line.origin if at < len(asked) else ""
            except PermitError as error:
                if client is self._client or not self._heard:
                    raise Failed(with_settings(str(error))) from None


class _Running:
    """A batch that is being asked: when it last had an answer, how many all had by then, and the origin of the next."""

    def __init__(self, batch: Batch, now: float) -> None:
        self.batch = batch
        self.heard = now
        self.heard_before = 0
        self.origin = ""
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
