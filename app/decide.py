"""Where the pure core and I/O meet: a question, the robots.txt that is held for it, the answer."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from typing import NamedTuple, Protocol, assert_never

from app.cache.byte_lru import ByteLRU
from app.cache.freshness import Freshness, Recheck, Snapshot, State, freshness
from app.cache.recheck import RFC9309, Model, VisitBasedRecheck
from app.cache.robots_cache import CacheResult, RobotsCache, Source
from app.cache.visits import Visits
from app.history.versions import History, Version, held_at
from app.observability.metrics import Metrics
from app.origin import Origin, Target
from app.overrides.apply import Applied, rule, with_delay
from app.overrides.table import Matching, Nothing, Override, Table
from app.robots.access import Busy, Successful
from app.robots.agents import Agent
from app.robots.dialects import Dialect
from app.robots.judge import judge
from app.robots.robots_txt import RobotsTxt
from app.robots.verdict import Decision, Reason, Verdict

Models = Callable[[str, str], Model]
"""The recheck model in force for a host, and a crawler whose own model is named so."""

PENDING_SECONDS = 5
"""When to ask again about an origin whose first fetch is still under way."""

FILES = 4096
"""Origins whose parsed file is kept, however small: the garbage collector walks them, some dozens of objects each."""

_BODILESS_BYTES = 1024
"""What it costs to keep an origin in mind that has no file."""


class Question(NamedTuple):
    """Whether `agent` may fetch `target`, as `dialect` reads it, at the instant `at`.

    `max_age`: how old the copy may be, in seconds, None for as old as the cache thinks right. `wait`: how long a cold
    fetch may hold the answer, in seconds.
    """

    target: Target
    agent: Agent
    dialect: Dialect
    at: datetime | None = None
    max_age: float | None = None
    wait: float = 10.0


class Answer(NamedTuple):
    """The verdict, what it rests on, and `now` (Unix seconds), the instant it was given at.

    `robots` is the file, if there is one; `retry_at` (Unix seconds) is set if the verdict is defer. `edition` is that
    of the CachedFile that the answer rests on, None if anything else had a say. `overrides` are those that apply, or
    would apply if they were not shadows; None if there are none.
    """

    question: Question
    verdict: Verdict
    held: CacheResult
    robots: RobotsTxt | None
    now: float
    retry_at: float | None = None
    edition: int | None = None
    overrides: Matching | None = None

    @property
    def at(self) -> datetime:
        """The instant that rates were asked for, an aware one."""
        return self.question.at or datetime.fromtimestamp(self.now, UTC)


class CachedFile(NamedTuple):
    """What the cache holds of an origin, and the file where there is one.

    `edition` numbers snapshots: whatever has the same number, in this process, was worked out of the same one. None
    says nothing, and is right for whatever did not come out of the cache as it is here.
    """

    held: CacheResult
    robots: RobotsTxt | None
    edition: int | None = None


Seen = dict[tuple[Origin, str, float | None], CachedFile]
"""Files as they were found for an origin, a crawler's own recheck model, and a greatest age."""


class NoVersion(Exception):
    """It is not known what an origin's file was then; `earliest` (Unix seconds) is when something first was, if ever.

    The text says so for the caller.
    """

    def __init__(self, origin: Origin, at: datetime, earliest: float | None) -> None:
        known = "nothing is known of it at any time"
        if earliest is not None:
            known = f"the earliest that is known of it is of {datetime.fromtimestamp(earliest, UTC):%Y-%m-%dT%H:%M:%SZ}"
        asked = f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        super().__init__(f"It is not known what was held of {origin.robots_url} at {asked}; {known}.")
        self.earliest = earliest


@dataclass(slots=True)
class _Read:
    """What was worked out of a snapshot: the file, and what was last said of it, for whom that was."""

    snapshot: Snapshot
    robots: RobotsTxt | None
    edition: int
    recheck: Recheck | None = None
    said: CachedFile | None = None


class InForce(Protocol):
    """Whoever knows the overrides in force."""

    @property
    def table(self) -> Table:
        """The overrides in force."""


class Decider:
    """Answers questions from what the cache holds and operators have decided.

    It keeps FILES of the files it parsed, in at most `memory_bytes`, and a quarter of that for those that operators
    brought.
    `asked` is called with the key of the origin of every decision.
    """

    def __init__(
        self,
        cache: RobotsCache,
        clock: Callable[[], float],
        *,
        memory_bytes: int,
        models: Models,
        visits: Visits,
        forbidden: bool,
        metrics: Metrics,
        monotonic: Callable[[], float],
        overrides: InForce | None = None,
        asked: Callable[[str], None] = lambda _key: None,
    ) -> None:
        self._cache = cache
        self._overrides: InForce = overrides or Nothing()
        self._replacements: ByteLRU[Successful, RobotsTxt] = ByteLRU(memory_bytes // 4)
        self._clock = clock
        self._reads: ByteLRU[Origin, _Read] = ByteLRU(memory_bytes, FILES)
        self._editions = count(1)
        self._models = models
        self._visits = visits
        self._forbidden = forbidden
        self._metrics = metrics
        self._asked = asked
        self._monotonic = monotonic

    @property
    def usage(self) -> tuple[int, int]:
        """The bytes and the number of the parsed files in memory, and of the origins known to have none."""
        return self._reads.usage

    async def ask(self, question: Question) -> Answer:
        """The answer; raises Busy where a fetch is needed and there is no room for one."""
        begun = self._monotonic()
        try:
            answer = self.answer_now(question) or await self._answer(question)
        except Busy:
            self._metrics.overloaded()
            raise
        self._count(answer, begun)
        return answer

    def decide_if_cached(self, question: Question) -> Answer | None:
        """What `ask` says, where memory has it ready; None where it has to be asked."""
        begun = self._monotonic()
        answer = self.answer_now(question)
        if answer is not None:
            self._count(answer, begun)
        return answer

    def _count(self, answer: Answer, begun: float) -> None:
        self._metrics.decided(*_kind(answer), seconds=self._monotonic() - begun)
        self._asked(answer.question.target.origin.key)

    def answer_now(self, question: Question, seen: Seen | None = None) -> Answer | None:
        """The answer where memory has one that is fresh, else None: nothing is waited for, begun or counted.

        A caller with many questions may hand in what was `seen` for those before, for as long as nobody else has had
        a turn meanwhile: it is not looked up again.
        """
        origin, agent, max_age = question.target.origin, question.agent, question.max_age
        file = None if seen is None else seen.get((origin, agent.recheck, max_age))
        if file is None:
            file = self._hold_now(question, seen)
        return None if file is None else self.answer_from(file, question)

    def counted(self, answers: Iterable[Answer]) -> None:
        """Count the decisions that `answer_now` gave."""
        answers = list(answers)
        for answer in answers:
            self._asked(answer.question.target.origin.key)
        for kind, times in Counter(map(_kind, answers)).items():
            self._metrics.decided(*kind, times=times)

    async def decide_as_of(self, question: Question, as_of: datetime) -> Answer:
        """The answer of the version that was held at `as_of`, at its rates then unless the question has an `at`.

        Overrides have no say in it, nothing is fetched, and no visit is counted. Raises NoVersion, and StoreDown.
        """
        begun = self._monotonic()
        origin = question.target.origin
        question = question._replace(at=question.at or as_of)
        history = await self._cache.history(origin)
        version = held_at(history, as_of.timestamp())
        # In a thread: a version is kept packed, and is unpacked for this one answer.
        answer = None if version is None else await asyncio.to_thread(self._answer_by_version, version, question)
        if answer is None:
            raise NoVersion(origin, as_of, history[0].first_seen if history else None)
        self._metrics.decided(*_kind(answer), seconds=self._monotonic() - begun)
        return answer._replace(now=as_of.timestamp())

    def _answer_by_version(self, version: Version, question: Question) -> Answer | None:
        snapshot = version.read()
        if snapshot is None:
            return None
        held = CacheResult(snapshot, None, Source.HISTORY)
        # Asking again would bring no other answer: a defer is what was said then, and no word about when to come back.
        return self.answer_by(CachedFile(held, _robots_of(snapshot)), question)._replace(retry_at=None)

    async def history(self, origin: Origin) -> History:
        """The versions of the origin's file, what is held now included; nothing is fetched. Raises StoreDown."""
        return await self._cache.history(origin)

    async def refresh(self, origin: Origin) -> CachedFile:
        """What a fetch finds that is made now, whatever is held; raises Busy."""
        held = await self._cache.refresh(origin, await self._recheck(origin, None))
        return CachedFile(held, None if held.snapshot is None else self._read(origin, held.snapshot).robots)

    async def purge(self, origin: Origin) -> None:
        """Forget what is held of the origin in the whole fleet; raises StoreDown where it could not be told."""
        await self._cache.purge(origin)

    async def _answer(self, question: Question) -> Answer:
        file = await self.hold(
            question.target.origin, visitor=question.agent, max_age=question.max_age, wait=question.wait
        )
        return self.answer_from(file, question)

    def answer_from(self, file: CachedFile, question: Question) -> Answer:
        """The answer that this file gives, and the overrides of now."""
        answer = self.answer_by(file, question)
        return self._overridden(answer) if self._overrides.table else answer

    def answer_by(self, file: CachedFile, question: Question) -> Answer:
        """The answer that this file alone gives, whether it is the one that is held now or was held once."""
        held, robots, edition = file
        now = self._clock()
        if held.snapshot is None:
            verdict = Verdict(Decision.DEFER, Reason.PENDING)
            return Answer(question, verdict, held, None, now, now + PENDING_SECONDS)
        access = held.snapshot.access
        dialect, agent, path = question.dialect, question.agent, question.target.path
        if robots is not None:
            verdict = robots.judge(dialect, agent, path)
        else:
            verdict = judge(access, None, dialect, agent, path, forbidden=self._forbidden)
        retry_at = None
        if verdict.decision is Decision.DEFER:
            retry_at = held.freshness.recheck_at if held.freshness else now + PENDING_SECONDS
        return Answer(question, verdict, held, robots, now, retry_at, edition)

    def _overridden(self, answer: Answer) -> Answer:
        """The answer with what operators have decided about it; what their shadows would have made of it is counted."""
        question = answer.question
        found = self._overrides.table.find(question.target.origin, question.agent, answer.now)
        if found is None:
            return answer
        by_file = Applied(answer.verdict, answer.robots, None)
        ruling = self._rule(answer, by_file, found.deciding)
        if found.shadow_deciding is not found.deciding and found.shadow_deciding is not None:
            shadow = self._rule(answer, by_file, found.shadow_deciding)
            differs = shadow.verdict.decision is not ruling.verdict.decision
            self._metrics.shadowed(found.shadow_deciding.action_name, differs=differs)
        self._note_delays(answer, ruling, found)
        found = replace(found, deciding=ruling.override)
        if found.deciding is None and found.delaying is None and ruling.verdict is answer.verdict:
            return answer._replace(overrides=found)
        if ruling.override is not None:
            self._metrics.overridden(ruling.override.action_name)
        retry_at = answer.retry_at if ruling.verdict.decision is Decision.DEFER else None
        verdict, robots, _ = ruling
        return answer._replace(verdict=verdict, robots=robots, retry_at=retry_at, edition=None, overrides=found)

    def _rule(self, answer: Answer, by_file: Applied, override: Override | None) -> Applied:
        question, snapshot = answer.question, answer.held.snapshot
        access = None if snapshot is None else snapshot.access
        path = question.target.path
        return rule(override, by_file, access, question.dialect, question.agent, path, self._replacement)

    def _note_delays(self, answer: Answer, ruling: Applied, found: Matching) -> None:
        if found.delaying is not None:
            self._metrics.overridden(found.delaying.action_name)
        shadow = found.shadow_delaying
        if shadow is None or shadow is found.delaying:
            return
        question, robots, selection = answer.question, ruling.robots, ruling.verdict.selection
        rates = None
        if robots is not None and selection is not None:
            rates = robots.reading(question.dialect).terms(selection, question.agent).rates.at(answer.at)
        now = with_delay(rates, found.delaying)
        self._metrics.shadowed(shadow.action_name, differs=with_delay(now, shadow) is not now)

    def _replacement(self, file: Successful) -> RobotsTxt:
        robots = self._replacements.get(file)
        if robots is None:
            robots = RobotsTxt(file.body)
            self._replacements.put(file, robots, robots.size)
        return robots

    async def hold(
        self, origin: Origin, *, visitor: Agent | None = None, max_age: float | None = None, wait: float = 10.0
    ) -> CachedFile:
        """What is held of the origin's robots.txt, parsed where there is a file; raises Busy as `ask` does.

        `visitor` is who asks in order to visit the origin, None for those who only look at the file.
        """
        if self._overrides.table and visitor is not None:
            found = self._overrides.table.find(origin, visitor, self._clock())
            if found is not None and found.deciding is not None:
                wait = 0.0  # what the file says decides nothing, and its origin may well be down
        recheck = await self._recheck(origin, visitor)
        held = await self._cache.held(origin, recheck, max_age=max_age, wait=wait)
        if held.snapshot is None:
            return CachedFile(held, None)
        read = self._read(origin, held.snapshot)
        return CachedFile(held, read.robots, read.edition)

    def _hold_now(self, question: Question, seen: Seen | None) -> CachedFile | None:
        """What `hold` would say at once and without beginning a fetch; None where it would not.

        It is noted in `seen`, but for crawlers whose every question is a visit that has to be counted.
        """
        origin, visitor, max_age = question.target.origin, question.agent, question.max_age
        snapshot = self._cache.get_trusted(origin)
        if snapshot is None:
            return None
        model = self._models(origin.host, visitor.recheck)
        if isinstance(model, VisitBasedRecheck):
            # Counted only when it is known that no one else will: who gets None here goes on to `hold`.
            visits = self._visits.with_one_more(origin)
            if visits is None:
                return None
            file = self._said(origin, snapshot, model.recheck(visits), max_age)
            if file is not None:
                self._visits.count(origin)
            return file
        file = self._said(origin, snapshot, model, max_age)
        if seen is not None and file is not None:
            seen[origin, visitor.recheck, max_age] = file
        return file

    def _said(self, origin: Origin, snapshot: Snapshot, recheck: Recheck, max_age: float | None) -> CachedFile | None:
        """The snapshot as it stands now, where it is fresh; what was said within this second is said again."""
        now = self._clock()
        read = self._read(origin, snapshot)
        said = read.said
        known = said.held.freshness if said is not None and read.recheck is recheck else None
        if known is None or snapshot.failing is not None or not snapshot.fetched_at <= now < known.recheck_at:
            fresh = freshness(snapshot, recheck, origin.key, now)
            if fresh.state is not State.FRESH:
                return None
        elif int(now - snapshot.fetched_at) == int(known.age):
            fresh = known
        else:
            fresh = Freshness(known.recheck_at, State.FRESH, now - snapshot.fetched_at, stale=False)
        if max_age is not None and now - snapshot.fetched_at > max_age and snapshot.failing is None:
            return None
        if said is None or fresh is not known:
            read.recheck = recheck
            said = read.said = CachedFile(CacheResult(snapshot, fresh, Source.MEMORY), read.robots, read.edition)
        return said

    async def _recheck(self, origin: Origin, visitor: Agent | None) -> Recheck:
        model = self._models(origin.host, RFC9309 if visitor is None else visitor.recheck)
        match model:
            case Recheck():
                return model
            case VisitBasedRecheck():
                # Counted only here, where it matters: nothing is written for a fleet that rechecks as RFC 9309 has it,
                # and what is counted are the visits of those who recheck by them.
                visits = self._visits.per_day(origin) if visitor is None else self._visits.visit(origin)
                return model.recheck(await visits)
            case unknown:
                assert_never(unknown)

    def _read(self, origin: Origin, snapshot: Snapshot) -> _Read:
        """What is worked out of `snapshot`."""
        read = self._reads.get(origin)
        # The very object, not an equal one: comparing octets would cost each time what they are long.
        if read is not None and read.snapshot is snapshot:
            return read
        robots, size = None, _BODILESS_BYTES
        if isinstance(snapshot.access, Successful):
            # A refresh that brings the same octets costs one parse, and one that renews what was held costs none.
            if read is not None and read.snapshot.access is snapshot.access:
                robots = read.robots
            robots = robots or _parsed(snapshot.access)
            size = robots.size
        read = _Read(snapshot, robots, next(self._editions))
        self._reads.put(origin, read, size)
        return read


def _robots_of(snapshot: Snapshot) -> RobotsTxt | None:
    access = snapshot.access
    return _parsed(access) if isinstance(access, Successful) else None


def _parsed(file: Successful) -> RobotsTxt:
    return RobotsTxt(file.body, truncated=file.truncated)


def _kind(answer: Answer) -> tuple[str, str, str, str]:
    """What a decision is counted by."""
    return answer.verdict.decision, answer.verdict.reason, answer.held.source, answer.question.dialect.name
