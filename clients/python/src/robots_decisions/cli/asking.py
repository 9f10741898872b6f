"""Asks batches, several at once: first what the service has in its cache, then what waits for a site."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Sequence, Set
from contextlib import aclosing
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeGuard

from robots_decisions import AsyncClient, BundleRow, Deferred, PermitError, Question, Unanswered, Verdict
from robots_decisions.cli.batches import Batch, Group, PutOff, grouped
from robots_decisions.cli.entries import Entry, Line, NotAsked, line_of
from robots_decisions.cli.failures import Failed
from robots_decisions.cli.instants import read_instant
from robots_decisions.cli.options import with_settings
from robots_decisions.cli.origins import NO_HTTPS, candidates, lacks_https
from robots_decisions.permits import BUSY

IN_FLIGHT = 48
"""Batches that are being asked, at most: those that are answered, and those that wait for a site. A process of the
service has room for 64, and may be asked by others, too."""

AHEAD_BYTES = 64 * 1024 * 1024
"""Memory of the lines whose sites were asked about and that are not answered yet, about: the service fetches the files
that it lacks while it decides some 300,000 others."""

ANSWER_BYTES = 1500
"""Memory of what is kept of an answer, about."""

PATIENCE, OTHERS, SILENCE, LOOK = 0.5, 1000, 2.0, 0.1
"""A batch waits for a site after so many seconds without an answer, if so many others came meanwhile, or none at all
for so long: a service that is slow for all batches gets no more of them. LOOK: seconds from one look to the next."""

SITES_SILENCE = 0.5
"""The same as SILENCE once only lines are left that wait for a site."""

SITES_TOGETHER = 100
"""Sites that are asked about in one request, at most, so that a busy service answers before it is taken for silent."""

PENDING_ATTEMPTS = 3
"""How often a page is asked again whose file is still being fetched; each time the service waits for it."""

BUSY_ATTEMPTS = 8
"""Attempts at lines that the service has no room for, at most, while it answers no others."""

BUSY_DELAY, MIN_BUSY_DELAY, MAX_BUSY_DELAY = 5.0, 0.5, 120.0
"""Seconds to pause when the service is busy and does not say for how long, and the shortest and longest pause."""

QUOTA_USED_UP = 429
BUSY_STATUSES = frozenset({QUOTA_USED_UP, 503})

Answer: TypeAlias = "Verdict | Unanswered | NotAsked"
"""What became of a line about a page."""

Reply: TypeAlias = "Verdict | BundleRow | Unanswered"
"""What the service answers."""

Shape: TypeAlias = Callable[[Line, Any], Any]
"""What is kept of an answer: whole answers are long."""

Ask: TypeAlias = "Callable[[AsyncClient, Sequence[Entry], bool, float | None], AsyncGenerator[Reply, None]]"
"""Asks about entries, whose answers come in their order; the other arguments say whether they need the facts of the
fetch, and how many seconds an answer may wait for a site: None until its fetch is over."""


def verdicts(question: Callable[[Entry], Question], fields: Sequence[str] = ()) -> Ask:
    """Asks for verdicts, and the members `fields` beside those of a verdict."""

    def ask(client: AsyncClient, entries: Sequence[Entry], with_facts: bool, wait: float | None) -> Any:
        wanted = (*fields, "robots") if with_facts else fields
        return client.batch(map(question, entries), fields=wanted, wait=wait)

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

    With `cached_first`, one line of each site is asked about at once, far ahead of the others. The lines of sites whose
    file is not in the cache, or due, are put off until the end, while the service fetches it. A batch that waits for a
    site leaves its place to others; with `wait`, its lines are pending after so many seconds, and not asked again.
    `done` is called with what is answered of a batch; with `in_order`, in the order of the batches, of which none
    waits. The first of two clients asks until the first answer has come: a service that never answered is not waited
    for.
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
        wait: float | None = None,
    ) -> None:
        self._first, self._client = clients
        self._ask_about = ask
        self._shape = shape
        self._done = done
        self._is_pending = pending
        self._places = concurrency
        self._in_order = in_order
        self._cached_first = cached_first
        self._wait = wait
        self._ahead: deque[_Known] = deque()
        self._ahead_size = 0
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
            if self._cached_first:
                await self._ask_known(batches, put_off)
                self._silence = SITES_SILENCE
                batches = put_off.all()
            await self._ask_all(batches)
        finally:
            everything = [*watch, *self._running]
            for task in everything:
                task.cancel()
            await asyncio.gather(*everything, return_exceptions=True)
            put_off.close()

    async def _ask_all(self, batches: Iterable[Batch]) -> None:
        for batch in batches:
            await self._until(self._has_room)
            before = next(reversed(self._running), None) if self._in_order else None
            self._start(partial(self._ask, _Known(batch, frozenset(), {}), before, None))
        await self._until(lambda: not self._running)

    async def _ask_known(self, batches: Iterable[Batch], put_off: PutOff) -> None:
        """Ask about sites, and then about the lines of those that are in the cache; put off those of others."""
        groups = grouped(batches)
        group = next(groups, None)
        while group is not None or self._ahead or self._running:
            if not self._has_room() or (self._ahead_size >= AHEAD_BYTES and not self._ahead):
                await self._until_changed()
            elif group is not None and self._ahead_size < AHEAD_BYTES:
                self._ahead_size += group.size
                self._start(partial(self._look, group), may_leave=False)
                group = next(groups, None)
            elif self._ahead:
                self._start(partial(self._ask, self._ahead.popleft(), None, put_off))
            else:
                await self._until_changed()

    def _start(self, asking: "Callable[[_Running], Coroutine[Any, Any, None]]", *, may_leave: bool = True) -> None:
        running = _Running(asyncio.get_running_loop().time(), may_leave)
        self._places -= 1
        task = asyncio.create_task(self._placed(asking(running), running))
        self._running[task] = running
        task.add_done_callback(lambda _: self._changed.set())

    async def _placed(self, asking: Coroutine[Any, Any, None], running: "_Running") -> None:
        try:
            await asking
        finally:
            self._leave(running)

    def _has_room(self) -> bool:
        return self._places > 0 and len(self._running) < IN_FLIGHT

    async def _until(self, holds: Callable[[], bool]) -> None:
        self._reap()
        while not holds():
            await self._until_changed()

    async def _until_changed(self) -> None:
        """Wait until something is over, or leaves its place. Raise Failed."""
        self._changed.clear()
        await self._changed.wait()
        self._reap()

    def _reap(self) -> None:
        for task in [task for task in self._running if task.done()]:
            del self._running[task]
            task.result()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            now = asyncio.get_running_loop().time()
            if now < self._paused_until:
                continue
            may_leave = [running for running in self._running.values() if running.has_place and running.may_leave]
            waiting = [
                running
                for running in may_leave
                if now - running.heard > PATIENCE and self._heard - running.heard_before > OTHERS
            ]
            quiet_since = max((running.heard for running in self._running.values()), default=now)
            if now - quiet_since > self._silence:
                # One at a time: it may be the service that is slow, for all of them.
                waiting += may_leave[:1]
            for running in waiting:
                self._leave(running)

    def _leave(self, running: "_Running") -> None:
        if running.has_place:
            running.has_place = False
            self._places += 1
            self._changed.set()

    def _enter(self, running: "_Running") -> None:
        """Take a place again: a service that was slow for all batches, not for a site, gets no more of them."""
        if not running.has_place:
            running.has_place = True
            self._places -= 1

    async def _ask(
        self, known: "_Known", before: "asyncio.Task[None] | None", put_off: PutOff | None, running: "_Running"
    ) -> None:
        """Ask about the lines of a batch; with `put_off`, of sites that are in the cache."""
        batch, kept = known.batch, known.kept
        asked: list[_Asked] = []
        for place, line in zip(batch.places, batch.lines(), strict=True):
            if isinstance(line.entry, NotAsked):
                kept[place] = self._shape(line, line.entry)
            elif place not in kept and (put_off is None or line.origin in known.origins):
                asked.append(_Asked(place, line, line.entry))
        await self._answers(asked, kept, running)
        if before is not None:
            await asyncio.wait({before})
            before.result()  # if it failed, what comes after it is not done either
        answered = [at for at, place in enumerate(batch.places) if place in kept]
        if answered:
            self._done(batch.only(answered), [kept[batch.places[at]] for at in answered])
        if put_off is not None:
            self._ahead_size -= known.size
            if len(answered) < len(batch.places):
                put_off.add(batch.only(at for at, place in enumerate(batch.places) if place not in kept))

    async def _look(self, group: Group, running: "_Running") -> None:
        """Ask about the first line of each site of a group, at once: which sites are in the cache."""
        kept: dict[int, Any] = {}
        found = await self._in_cache(group, kept, running)
        for batch in group.batches:
            own = {place: kept[place] for place in batch.places if place in kept} if kept else {}
            self._ahead.append(_Known(batch, found, own, batch.size + ANSWER_BYTES * len(own)))
        self._ahead_size += ANSWER_BYTES * len(kept)

    async def _in_cache(self, group: Group, kept: dict[int, Any], running: "_Running") -> set[str]:
        """The sites of a group whose file is in the cache. The first line of each, with which that is found, is kept.

        Lines without a site can be answered at once.
        """
        found = {"", self._found}
        lines = ((place, line_of(record)) for place, record in group.firsts)
        probes = [
            _Asked(place, line, line.entry)
            for place, line in lines
            if line.origin not in found and isinstance(line.entry, Entry)
        ]
        while probes:
            await self._pause(running)
            again: list[_Asked] = []
            before, delay = self._answered, 0.0
            together, probes = probes[:SITES_TOGETHER], probes[SITES_TOGETHER:]
            async for one, answer in self._each(together, running, wait=0):
                if isinstance(answer, Unanswered) and answer.status in BUSY_STATUSES:
                    delay = max(delay, _pause_after(answer))
                    if answer.status == QUOTA_USED_UP:
                        again.append(one)
                elif one.has_other(answer):
                    again.append(one.other())
                elif is_current(answer):
                    self._answered += 1
                    kept[one.at] = self._shape(one.line, answer)
                    found.add(one.line.origin)
                    self._found = one.line.origin  # of a large site, the next groups have more lines
            probes += again
            if again or self._answered == before:  # else there is no room for fetches alone
                self._paused_until = max(self._paused_until, asyncio.get_running_loop().time() + delay)
        return found

    async def _answers(self, asked: "Sequence[_Asked]", kept: dict[int, Any], running: "_Running") -> None:
        """Keep the answers to these lines. Raise Failed."""
        pending = busy = 0
        while asked:
            await self._pause(running)
            again: list[_Asked] = []
            before, delay = self._answered, 0.0
            still_pending = False
            async for one, answer in self._each(asked, running, wait=self._wait):
                if isinstance(answer, Unanswered) and answer.status in BUSY_STATUSES:
                    delay = max(delay, _pause_after(answer))
                    again.append(one)
                elif one.has_other(answer):
                    again.append(one.other())
                elif self._wait is None and pending < PENDING_ATTEMPTS and self._is_pending(answer):
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
        self, asked: "Sequence[_Asked]", running: "_Running", *, wait: float | None
    ) -> "AsyncIterator[tuple[_Asked, Reply]]":
        """Each question with its answer. Raise Failed."""
        now = asyncio.get_running_loop().time
        entries = [one.entry._replace(url=one.url) for one in asked]
        with_facts = wait == 0 or any(one.others for one in asked)
        at = 0
        while at < len(asked):
            client, heard_before = self._client if self._heard else self._first, self._heard
            try:
                async with aclosing(self._ask_about(client, entries[at:], with_facts, wait)) as answers:
                    async for answer in answers:
                        yield asked[at], answer
                        at += 1
                        self._heard += 1
                        running.heard, running.heard_before = now(), self._heard
                        self._enter(running)
            except PermitError as error:
                if _is_crowded_out(error) and self._heard > heard_before:  # others are answered meanwhile
                    await asyncio.sleep(error.seconds)
                elif client is self._client or not self._heard:
                    raise Failed(with_settings(str(error))) from None


def _is_crowded_out(error: PermitError) -> TypeGuard[Deferred]:
    """Whether the service had no room for a batch in all the time for which it was asked, and may soon have."""
    return isinstance(error, Deferred) and error.reason == BUSY and error.seconds <= MAX_BUSY_DELAY


def _pause_after(answer: Unanswered) -> float:
    after = BUSY_DELAY if answer.retry_after is None else answer.retry_after
    return max(MIN_BUSY_DELAY, min(after, MAX_BUSY_DELAY))


class _Running:
    """What is being asked: when it last had an answer, and how many all had by then.

    It may leave its place unless it waits for no site: then the service is slow, and must not be asked for more.
    """

    def __init__(self, now: float, may_leave: bool) -> None:
        self.may_leave = may_leave
        self.heard = now
        self.heard_before = 0
        self.has_place = True


class _Known(NamedTuple):
    """A batch, the sites whose file is in the cache, and what is kept of answers, by the places of their lines."""

    batch: Batch
    origins: Set[str]
    kept: dict[int, Any]
    size: int = 0


class _Asked:
    """A line that is being asked, at a place of the sorted order; `others`: the URLs to ask if its own has no https."""

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
