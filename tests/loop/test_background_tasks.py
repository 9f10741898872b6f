"""Every background task of the service survives a record that fails: it is reported, and the next one is worked on.

The list is BackgroundTask; `tests/loop/test_started_tasks.py` compares it with what the service starts.
"""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
from redis.asyncio import Redis

from app.auth.keys import Limit
from app.auth.quotas import Quotas
from app.cache.byte_lru import BoundedDict
from app.cache.freshness import Snapshot
from app.cache.invalidation import CHANNEL, Event, InvalidationListener, InvalidationPublisher, encode
from app.cache.lease import Held, Lease, Read
from app.cache.origin_lists import Notes, OriginLists, RedisOriginLists
from app.cache.outbox import Outbox
from app.cache.redis_snapshots import RedisSnapshots
from app.cache.visits import RedisVisits, Tally, Visits
from app.decision_log.chain import Chain
from app.decision_log.line import LineWriter
from app.decision_log.log import DecisionLog
from app.decision_log.sinks import Sink
from app.edge.facts import EdgeFact, OriginFacts
from app.edge.redis_edge import EdgeChanges, RedisEdge
from app.edge.replica import EdgeFacts
from app.files.reloaded_file import ReloadedFile, on_change
from app.history.archive.archive import Archive
from app.history.archive.folder import Folder
from app.history.archive.writer import ArchiveWriter
from app.history.redis_changes import RedisChanges
from app.history.redis_history import RedisHistory
from app.loop import background, garbage
from app.loop.background import TASK, BackgroundTask
from app.loop.single_flight import SingleFlight
from app.observability import metrics as metrics_module
from app.observability.metrics import Metrics, ServiceState
from app.overrides import redis_overrides
from app.overrides.redis_overrides import RedisOverrides
from app.overrides.replica import Overrides
from app.overrides.table import Override
from app.pacing import fleet_secret, membership
from app.pacing.fleet_secret import FleetSecret
from app.pacing.known_backoffs import KnownBackoffs
from app.pacing.membership import FleetMembership
from app.pacing.recovery import Recovery
from app.pacing.redis_pacer import RedisPacer
from app.pacing.shard_state import ShardState
from app.pacing.slots import PaceKey
from app.store.connect import Borrowed, borrow, subscriber
from app.store.guarded_client import GuardedClient, StoreDown
from app.store.shared_connection import SharedConnection
from app.store.store_clock import ShardClock
from robots_core.origin import Origin
from robots_core.robots.access import Unavailable
from tests.doubles import Clock
from tests.faults.until import until, until_so
from tests.loop.published_keys import published_keys

BAD, GOOD = Origin("https", "bad.example", 443), Origin("https", "good.example", 443)
NOW = 1_790_000_000.0

T = TypeVar("T")


class Poison(Exception):
    """What no task expects."""


class PoisonedClient(GuardedClient):
    """The calls to a real store; those about a key that ends with `bad` fail as no task expects, `times` times."""

    def __init__(self, client: Redis, bad: str, times: int = 1) -> None:
        super().__init__(client, monotonic=lambda: 0.0, timeout=20.0)
        self._bad, self._times = bad, times

    async def with_calls(self, key: str | None, work: Callable[..., Any]) -> Any:
        if key is not None and key.endswith(self._bad) and self._times > 0:
            self._times -= 1
            raise Poison(key)
        return await super().with_calls(key, work)


@dataclass(frozen=True)
class Stage:
    """What a scenario may use; `failures` are the reports of background tasks so far."""

    client: Redis
    path: Path
    patch: pytest.MonkeyPatch
    failures: list[tuple[BackgroundTask, str]]

    @property
    def calls(self) -> GuardedClient:
        return GuardedClient(self.client, monotonic=lambda: 0.0, timeout=20.0)


@pytest.fixture
async def stage(store_client: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    failures: list[tuple[BackgroundTask, str]] = []

    def note(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        assert isinstance(context["exception"], Poison), context
        failures.append((context[TASK], context["message"]))

    monkeypatch.setattr(background, "PAUSE_AFTER_FAILURE", 0.0)
    asyncio.get_running_loop().set_exception_handler(note)
    yield Stage(store_client, tmp_path, monkeypatch, failures)
    asyncio.get_running_loop().set_exception_handler(None)


def fails_once(then: Callable[[], T]) -> Callable[[], T]:
    """A function that fails when it is first called."""
    calls: list[None] = []

    def call() -> T:
        if not calls:
            calls.append(None)
            raise Poison
        return then()

    return call


async def collections(_stage: Stage) -> None:
    seen: list[float] = []
    before = gc.get_threshold()

    def cpu_seconds() -> float:
        seen.append(0.0)
        return 0.0

    async with garbage.GarbageCollection(
        every=0.0, cpu_seconds=fails_once(cpu_seconds), least=3600.0, most=3600.0
    ).running():
        await until_so(lambda: len(seen) > 3)
    assert gc.get_threshold() == before


class _Writer(LineWriter):
    def __init__(self) -> None:
        super().__init__("whole")

    def write(self, decision: Any, request_id: str | None, key: str | None) -> bytes:
        if decision.question.target.origin == BAD:
            raise Poison
        return f"{decision.question.target.origin.key}}}".encode()


class _Decision:
    """As much of a decision as the log reads before its line is written."""

    def __init__(self, origin: Origin) -> None:
        self.question = self.target = self
        self.origin = origin


class _Sink:
    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.fails = True

    async def write(self, lines: Sequence[bytes]) -> None:
        if self.fails:
            self.fails = False
            raise Poison
        self.lines += lines

    async def newest(self) -> Sequence[bytes]:
        return ()


class _Files(Folder):
    """A folder that fails once about files of BAD, as no writer expects."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.failures = 2

    def append(self, files: Mapping[str, bytes]) -> dict[str, tuple[str, int]]:
        if self.failures and any(BAD.key.encode() in data for data in files.values()):
            self.failures -= 1
            raise Poison
        return super().append(files)


async def archive(stage: Stage) -> None:
    stage.patch.setattr("app.history.archive.writer.ARCHIVE_EVERY", 0.001)
    lost: list[None] = []
    versions = Archive(_Files(stage.path))
    writer = ArchiveWriter(versions, "p", lost=lambda: lost.append(None))
    async with writer.writing():
        for origin in (BAD, GOOD):
            writer.note(origin, Snapshot(Unavailable(404), NOW))
        await until_so(lambda: writer.lag == 0.0)
    assert versions.past(BAD).at(NOW) is None is not versions.past(GOOD).at(NOW)
    assert len(lost) == 1


async def decision_log(stage: Stage) -> None:
    stage.patch.setattr("app.decision_log.log.WRITE_EVERY", 0.0)
    sink, lost = _Sink(), list[int]()
    log = DecisionLog(cast("Sink", sink), _Writer(), 1.0, lost.append, Chain("p", lambda: NOW))
    async with log.writing():
        log.note(cast("Any", _Decision(BAD)))
        assert (lost, len(stage.failures)) == ([1], 1)  # the answer is given all the same
        log.note(cast("Any", _Decision(GOOD)))
        await until_so(lambda: lost == [1, 1])
        log.note(cast("Any", _Decision(GOOD)))
        await until_so(lambda: [line.partition(b",")[0] for line in sink.lines] == [GOOD.key.encode()])


async def deliveries(stage: Stage) -> None:
    delivered: list[Origin] = []

    async def deliver(origin: Origin, _purged: object) -> None:
        if origin == BAD:
            raise Poison
        delivered.append(origin)

    stage.patch.setattr("app.cache.outbox.DELIVERY_PAUSE", 0.0)
    outbox = Outbox(deliver)
    outbox.add(BAD)
    outbox.add(GOOD)
    async with outbox.delivering():
        await until_so(lambda: delivered == [GOOD])
    assert [BAD.key in message for _, message in stage.failures] == [True]


class _BadFacts(dict[str, EdgeFact]):
    def __bool__(self) -> bool:
        raise Poison


class _Edge(RedisEdge):
    async def changes(self, since: int) -> EdgeChanges:
        facts = {"examplebot": EdgeFact(403, int(NOW), int(NOW), 1)}
        entries = [OriginFacts(BAD.key, 1, _BadFacts()), OriginFacts(GOOD.key, 2, facts)]
        return EdgeChanges(1, 2, [entry for entry in entries if entry.version > since])


async def edge_facts(stage: Stage) -> None:
    facts = EdgeFacts(_Edge(stage.calls), Clock(NOW))
    async with facts.syncing(every=0.0):
        await until_so(lambda: bool(facts.agents(GOOD)))
    assert len(stage.failures) == 1


async def event_loop_lag(stage: Stage) -> None:
    seen: list[object] = []

    async def sample(observe: object) -> None:
        seen.append(observe)
        await asyncio.sleep(0)
        if len(seen) == 1:
            raise Poison

    async def probe() -> None:
        pass

    stage.patch.setattr(metrics_module, "sample_lag", sample)
    async with Metrics(lambda: _CALM).updating(probe):
        await until_so(lambda: len(seen) > 1)


async def permit_keys(stage: Stage) -> None:
    stage.patch.setattr(fleet_secret, "READ_INTERVAL", 0.0)
    await stage.client.set(fleet_secret.STORED_AT, b"s" * fleet_secret.SECRET_BYTES)
    secret = FleetSecret(PoisonedClient(stage.client, fleet_secret.STORED_AT, times=0))
    async with secret.running():
        other = b"t" * fleet_secret.SECRET_BYTES
        await stage.client.set(fleet_secret.STORED_AT, other)
        secret._store._times = 1  # type: ignore[attr-defined]
        await until_so(lambda: len(stage.failures) == 1)
        await until_so(lambda: secret.current == other)


_CALM = ServiceState(False, True, 0, 0, {"files": (7, 1)})


async def gauges(_stage: Stage) -> None:
    probes: list[None] = []

    async def probe() -> None:
        probes.append(None)
        if len(probes) == 1:
            raise Poison

    async with Metrics(lambda: _CALM).updating(probe, every=0.0):
        await until_so(lambda: len(probes) > 1)


class _Changes(RedisChanges):
    async def add(self, origin: Origin, before: Snapshot, after: Snapshot | None) -> None:
        if origin == BAD:
            raise Poison
        await super().add(origin, before, after)


async def history(stage: Stage) -> None:
    lost: list[None] = []
    changes = _Changes(stage.calls)
    writer = RedisHistory(stage.calls, lambda: NOW, lost=lambda: lost.append(None), changes=changes)
    for origin in (BAD, GOOD, BAD):
        writer.note(origin, Snapshot(Unavailable(404), NOW - 5))
    await until(lambda: RedisHistory(stage.calls, lambda: NOW, lost=lambda: None).read(GOOD), bool)
    await until_so(lambda: len(lost) == 2)
    assert not await writer.read(BAD)
    await writer.aclose()
    assert [BAD.key in message for _, message in stage.failures] == [True, True]
    assert len(lost) == 2


async def invalidations(stage: Stage) -> None:
    seen: list[Origin] = []

    def on_event(_event: Event, origin: Origin) -> None:
        if origin == BAD:
            raise Poison
        seen.append(origin)

    gaps: list[None] = []
    subscribe = fails_once(lambda: subscriber(stage.client))
    listener = InvalidationListener(subscribe, "me", on_event, lambda: gaps.append(None))
    async with listener.listening():
        await until_so(lambda: listener.connected)
        await stage.client.publish(CHANNEL, encode("another", Event.CHANGED, BAD.key, GOOD.key))
        await until_so(lambda: seen == [GOOD])
        assert (len(gaps), listener.connected) == (1, True)
    assert len(stage.failures) == 2


class _Leases(RedisSnapshots):
    renewals = 0

    async def renew(self, origin: Origin, token: str, seconds: float) -> None:
        self.renewals += 1
        if self.renewals == 1:
            raise Poison
        await super().renew(origin, token, seconds)


async def leases(stage: Stage) -> None:
    store = _Leases(stage.calls)

    async def lookup(read: Read) -> str | None:
        await read(GOOD)
        return None

    async def work(_held: Held) -> str:
        await until_so(lambda: store.renewals > 1)
        return "done"

    assert await Lease(store, 60.0, seconds=0.04).run_once(GOOD, lookup, work, asyncio.Event()) == "done"


async def fleet_membership(stage: Stage) -> None:
    stage.patch.setattr(membership, "ANNOUNCE_INTERVAL", 0.0)
    store = PoisonedClient(stage.client, membership.MEMBERS_KEY, times=0)
    member = FleetMembership(store, "me")
    async with member.running():
        store._times = 1
        member.ranks = None
        await until_so(lambda: len(stage.failures) == 1)
        await until_so(lambda: member.ranks is not None)


class _Lists:
    def __init__(self) -> None:
        self.written: list[str] = []

    async def write(self, notes: Notes, now: float) -> None:
        del now
        if BAD.key in notes.fetched:
            raise Poison
        self.written += notes.fetched


async def origin_lists(stage: Stage) -> None:
    store = _Lists()
    lists = OriginLists(cast("RedisOriginLists", store), Clock(NOW))
    async with lists.flushing(every=0.0):
        lists.note_fetch(BAD, Snapshot(Unavailable(404), NOW), 2.0)
        await until_so(lambda: len(stage.failures) == 1)
        lists.note_fetch(GOOD, Snapshot(Unavailable(404), NOW), 2.0)
        await until_so(lambda: store.written == [GOOD.key])


async def overrides(stage: Stage) -> None:
    store = RedisOverrides(stage.calls)
    for name in ("bad", "good"):
        await store.put(
            Override(name, f"{name}.example", (), "deny", "a reason", None, shadow=False), "an operator", NOW
        )
    decode = redis_overrides._decode

    def decode_or_fail(id_: str, data: bytes) -> Any:
        if id_ == "bad":
            raise Poison
        return decode(id_, data)

    stage.patch.setattr(redis_overrides, "_decode", decode_or_fail)
    replica = Overrides(store, Clock(NOW))
    async with replica.syncing(every=0.0):
        await until_so(lambda: list(replica.rows) == ["good"])
        assert [override.id for override in replica.table.at(GOOD)] == ["good"]


async def publisher(stage: Stage) -> None:
    sent: list[bytes] = []

    async def send(message: bytes) -> None:
        if BAD.key.encode() in message:
            raise Poison
        sent.append(message)

    publishing = InvalidationPublisher(send, "me", window=0.0)
    await publishing.publish(Event.CHANGED, GOOD)
    await publishing.publish(Event.CHANGED, BAD)
    await until_so(lambda: len(stage.failures) == 1)
    await publishing.publish(Event.CHANGED, GOOD)
    await until_so(lambda: len(sent) == 2)
    await publishing.aclose()


async def quotas(stage: Stage) -> None:
    # A batch with the bad key fails, and then that key alone.
    counted = Quotas(PoisonedClient(stage.client, "bad", times=2), lambda: 1000.0, lambda _key: None)
    limit = Limit(requests=100, seconds=3600, burst=100)
    async with counted.running(interval=0.0):
        for name in ("bad", "good"):
            counted.account(name, limit).charge(10)
        good = await until(lambda: stage.client.get("robots:{quotas}:good"), bool)
        assert good is not None
        assert await until(lambda: stage.client.get("robots:{quotas}:bad"), bool)
    assert len(stage.failures) == 2


class _Pace:
    """Answers pings and reports, but not the first ping, nor a report of the bad site."""

    def __init__(self) -> None:
        self.pings = 0
        self.reported: list[str] = []

    async def ping(self, _shard: int) -> None:
        self.pings += 1
        if self.pings == 1:
            raise Poison

    def shard_of(self, _key: PaceKey) -> int:
        return 0

    async def give_back(self, key: PaceKey, _backoff: float) -> bool:
        if key.pool == BAD.key:
            raise Poison
        self.reported.append(key.pool)
        return True


async def recovery(stage: Stage) -> None:
    store = _Pace()
    backoffs = KnownBackoffs(lambda: 0.0)
    recovering = Recovery(cast("RedisPacer", store), BoundedDict(), backoffs, lambda _seconds: asyncio.sleep(0))
    state = ShardState(0, ShardClock(lambda: NOW, lambda: 0.0))
    for origin in (BAD, GOOD):
        backoffs.note(PaceKey(origin.key, "examplebot"), 60.0)
    recovering.on_failure(state)
    state.local = True
    await until_so(lambda: store.reported == [GOOD.key])
    await until_so(lambda: len(stage.failures) == 2)
    assert store.pings == 2
    await recovering.aclose()


async def reloads(stage: Stage) -> None:
    def content(name: str) -> ReloadedFile[str]:
        (path := stage.path / name).write_text("first")
        seen: list[None] = []

        def load() -> str:
            seen.append(None)
            if name == "bad" and len(seen) == 2:
                raise Poison
            return path.read_text()

        return ReloadedFile(name, load, path)

    files = {name: content(name) for name in ("bad", "good")}
    async with on_change(0.0, *files.values()):
        for name in files:
            (stage.path / name).write_text("the second")
        await until_so(lambda: files["good"].value == "the second")
        await until_so(lambda: len(stage.failures) == 1)
        (stage.path / "bad").write_text("and the third")
        await until_so(lambda: files["bad"].value == "and the third")


class _Visits:
    def __init__(self) -> None:
        self.added: list[Origin] = []

    async def add(self, tallies: Mapping[Origin, Tally]) -> Mapping[Origin, Tally | None]:
        if BAD in tallies:
            raise Poison
        self.added += tallies
        return dict(tallies)


async def visits(stage: Stage) -> None:
    store = _Visits()
    counted = Visits(cast("RedisVisits", store), Clock(NOW))
    neighbours = [Origin("https", f"{number}.example", 443) for number in range(120)]
    async with counted.writing_back(every=0.01):
        for origin in (BAD, *neighbours):
            counted.count(origin)
        await until_so(lambda: len(store.added) == len(neighbours))
        counted.count(GOOD)
        await until_so(lambda: GOOD in store.added)
    # With its batch, and alone; then it is left out.
    assert len(stage.failures) == 2


def flights(task: BackgroundTask) -> Callable[[Stage], Coroutine[Any, Any, None]]:
    """A scenario for tasks with one flight for each record."""

    async def scenario(_stage: Stage) -> None:
        made: SingleFlight[Origin, str] = SingleFlight(task, expected=StoreDown)

        async def bad() -> str:
            raise Poison

        async def good() -> str:
            return "good"

        with pytest.raises(Poison):
            await made.do(BAD, bad)
        assert await made.do(GOOD, good) == await made.do(BAD, good) == "good"

    return scenario


async def store_connections(stage: Stage) -> None:
    async def bad(_server: None) -> Borrowed:
        raise Poison

    shared = SharedConnection(partial(bad, None), 20.0)
    for _ in range(2):
        with pytest.raises(Poison):
            await shared.call("PING")
    shared._borrow = partial(borrow, stage.client, None)
    assert await shared.call("PING") == b"PONG"
    await shared.aclose()
    assert len(stage.failures) == 2


SCENARIOS: Mapping[BackgroundTask, Callable[[Stage], Coroutine[Any, Any, None]]] = {
    BackgroundTask.ARCHIVE: archive,
    BackgroundTask.CHANGE_LOOKS: flights(BackgroundTask.CHANGE_LOOKS),
    BackgroundTask.COLLECTIONS: collections,
    BackgroundTask.DECISION_LOG: decision_log,
    BackgroundTask.DELIVERIES: deliveries,
    BackgroundTask.EDGE_FACTS: edge_facts,
    BackgroundTask.EVENT_LOOP_LAG: event_loop_lag,
    BackgroundTask.GAUGES: gauges,
    BackgroundTask.HELPERS: flights(BackgroundTask.HELPERS),
    BackgroundTask.HISTORY: history,
    BackgroundTask.INVALIDATIONS: invalidations,
    BackgroundTask.LEASES: leases,
    BackgroundTask.LOOKUPS: flights(BackgroundTask.LOOKUPS),
    BackgroundTask.MEMBERSHIP: fleet_membership,
    BackgroundTask.ORIGIN_LISTS: origin_lists,
    BackgroundTask.OVERRIDES: overrides,
    BackgroundTask.PERMIT_KEYS: permit_keys,
    BackgroundTask.PUBLISHED_KEYS: partial(published_keys, Poison),
    BackgroundTask.PUBLISHER: publisher,
    BackgroundTask.QUOTAS: quotas,
    BackgroundTask.RECOVERY: recovery,
    BackgroundTask.REFRESHES: flights(BackgroundTask.REFRESHES),
    BackgroundTask.RELOADS: reloads,
    BackgroundTask.STORE_CONNECTIONS: store_connections,
    BackgroundTask.STORE_SEARCHES: flights(BackgroundTask.STORE_SEARCHES),
    BackgroundTask.VISITS: visits,
}


@pytest.mark.parametrize("task", BackgroundTask)
async def test_a_task_goes_on_after_a_record_that_fails(stage: Stage, task: BackgroundTask) -> None:
    async with asyncio.timeout(60):
        await SCENARIOS[task](stage)
    assert {name for name, _ in stage.failures} == {task}
