"""What the archive keeps, what it answers from it, and that it never delays or fails an answer."""

import errno
import hashlib
import json
import os
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from redis.asyncio import Redis

from app.cache.freshness import DAY, KEEP, Failing, Snapshot
from app.cli import archive as archive_command
from app.cli.exit_codes import Failed
from app.history.archive import reader as archive_reader
from app.history.archive import writer as archive_writer
from app.history.archive.archive import SEEN_EVERY, Archive, object_name
from app.history.archive.folder import Folder
from app.history.archive.object_store import ObjectStore
from app.history.archive.places import check_writable, files_at
from app.history.archive.reader import ARCHIVE_READS, ArchiveReader
from app.history.archive.span import LONGEST_LINE, read_span, span_of
from app.history.archive.writer import ArchiveWriter
from app.loop.request import SPENT
from app.main.settings import BadSetting, Settings
from app.store.guarded_client import StoreDown
from robots_core.content import digest
from robots_core.origin import Origin
from robots_core.robots.access import Access, Successful
from tests.api.service import START, Service, counted, running
from tests.cli.command import run
from tests.faults.until import until, until_so
from tests.history.archive.spans import ACCESSES, BOT, DOWN, NOW, SITE, A, B, folder_name, found, limit, origins, write
from tests.history.archive.stuck import Stuck
from tests.origins import serve, text


@pytest.mark.parametrize("access", ACCESSES)
def test_every_outcome_is_read_as_it_was_found(archive: Archive, access: Access) -> None:
    write(archive, found(access, NOW))
    version = archive.past(SITE).at(NOW + 60)
    assert version is not None
    snapshot = version.read()
    assert snapshot is not None
    assert (snapshot.access, snapshot.fetched_at) == (access, NOW)
    assert archive.past(SITE).by_id(version.id) == version
    assert archive.past(BOT).at(NOW) is None is archive.past(SITE).at(NOW - 1)
    assert [damage for damage in archive.verify() if damage] == []


def test_as_of_finds_the_version_of_any_year(archive: Archive) -> None:
    year = int(365 * DAY)
    for number in range(3):
        for week in range(52):
            at = NOW + number * year + week * SEEN_EVERY
            write(archive, Snapshot((A, B)[number % 2], at, since=NOW + number * year), process=f"p{week % 3}")
    for number in range(3):
        for at in (0, 1000, SEEN_EVERY * 20 + 5, SEEN_EVERY * 51 - 1):
            version = archive.past(SITE).at(NOW + number * year + at)
            assert version is not None
            assert version.digest == digest((A, B)[number % 2])
    assert archive.past(SITE).at(NOW + 2 * year + 51 * SEEN_EVERY + KEEP + 1) is None


@pytest.mark.parametrize("age", [DAY, 20 * DAY, KEEP])
@pytest.mark.parametrize("year", [2026, 2028])
def test_as_of_finds_a_version_that_was_last_fetched_up_to_30_days_before(
    archive: Archive, year: int, age: float
) -> None:
    """Days around February, which is shorter than KEEP, included."""
    first = datetime(year, 1, 25, tzinfo=UTC).timestamp()
    for day in range(75):
        site = Origin("https", f"h{day}", 443)
        at = first + day * DAY
        write(archive, found(B, at - KEEP), found(A, at - age), origin=site)
        version = archive.past(site).at(at)
        assert version is not None
        assert version.digest == digest(A)


async def test_the_command_names_what_is_damaged(tmp_path: Path) -> None:
    archive = Archive(Folder(tmp_path))
    write(archive, found(A, NOW), found(B, NOW + 1), found(DOWN, NOW + 2))
    assert (await run("archive", "verify", str(tmp_path))).code == 0
    one, other = (tmp_path / object_name(digest(access).hex()) for access in (A, B))
    one.write_bytes(one.read_bytes() + b"Allow: /\n")
    other.unlink()
    log = tmp_path / "spans/2026-09-21/p.ndjson"
    log.write_bytes(log.read_bytes() + b'{"half a lin')
    ended = await run("archive", "verify", str(tmp_path))
    assert ended.code == 1
    assert len(ended.out.splitlines()) == 3
    assert "another SHA-256" in ended.out
    assert "missing" in ended.out
    assert f"{log.relative_to(tmp_path)}:4: the line cannot be read" in ended.out
    # A damaged text is not given out, and half a line swallows no other.
    assert [archive.past(SITE).at(NOW + at) for at in (0, 1)] == [None, None]
    write(archive, found(B, NOW + 9))
    assert archive.past(SITE).at(NOW + 9) is not None
    assert archive.rebuild() == 4


@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize("member", ["digest", "body", "facts", "first_seen"])
def test_a_line_that_was_changed_is_damaged(tmp_path: Path, access: Access, member: str) -> None:
    archive = Archive(Folder(tmp_path))
    write(archive, found(B, NOW), found(access, NOW))
    log = tmp_path / "spans/2026-09-21/p.ndjson"
    first, last = log.read_bytes().splitlines()
    changed = json.loads(last)
    changed[member] = {
        "digest": digest(B).hex(),
        "body": hashlib.sha256(B.body).hexdigest(),
        "facts": {**changed["facts"], "access": ["successful", 299]},
        "first_seen": NOW + 1,
    }[member]
    log.write_bytes(first + b"\n" + json.dumps(changed).encode() + b"\n")
    [damage] = [damage for damage in archive.verify() if damage]
    assert damage.name == f"{log.relative_to(tmp_path)}:2"


@pytest.mark.parametrize("folder", ["spans", "spans/2026-09-21", "objects", "objects/00"])
@pytest.mark.parametrize("action", ["verify", "index"])
def test_a_folder_that_cannot_be_listed_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str, folder: str
) -> None:
    write(Archive(Folder(tmp_path)), found(A, NOW))
    (tmp_path / folder).mkdir(exist_ok=True)
    names = set(Folder(tmp_path).names("index"))
    listed = os.scandir

    def refused(path: Any) -> Any:
        if str(path) == str(tmp_path / folder):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", refused)
    arguments = Namespace(action=action, place=str(tmp_path))
    if action == "index" and folder.startswith("objects"):
        assert archive_command.run(arguments) == 0  # it does not need them
    else:
        with pytest.raises(Failed, match="Permission denied"):
            archive_command.run(arguments)
    assert names == set(Folder(tmp_path).names("index"))


@pytest.mark.parametrize("action", ["verify", "index"])
async def test_a_place_without_an_archive_is_an_error_and_keeps_its_files(tmp_path: Path, action: str) -> None:
    own = tmp_path / "index" / "own.txt"
    own.parent.mkdir()
    own.write_text("something else")
    ended = await run("archive", action, str(tmp_path))
    assert (ended.code, "has no archive" in ended.err) == (3, True), ended.err
    assert own.read_text() == "something else"


LINE = span_of(SITE, found(A, 1))[0].line()


@pytest.mark.parametrize(
    "line",
    [
        *[b"", b"[]", b"{}", b"[" * 100_000, b'{"origin":1}', b"\xff", LINE[:-9]],
        LINE.replace(b'"first_seen":1', b'"first_seen":2'),
        LINE.replace(b'"last_seen":1', b'"last_seen":253402300800'),
        LINE.replace(b'"digest":"', b'"digest":"0'),
        LINE.replace(b'"facts":{', b'"facts":{"more":' + b"[" * 100_000),
        LINE.replace(b"{", b"{" + b" " * LONGEST_LINE, 1),
    ],
)
def test_a_foreign_line_is_no_span(line: bytes) -> None:
    assert read_span(LINE) == span_of(SITE, found(A, 1))[0]
    assert read_span(line) is None


async def test_what_waits_for_a_slow_archive_is_bounded(
    stuck: Stuck, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    limit(monkeypatch, waiting=100_000)
    lost: list[None] = []
    now = [0.0]
    monkeypatch.setattr(archive_writer, "time", SimpleNamespace(monotonic=lambda: now[0]))
    writer = ArchiveWriter(Archive(stuck), "p", lost=lambda: lost.append(None))
    async with writer.writing():
        for number in range(10):
            writer.note(Origin("https", f"h{number}", 443), found(Successful(200, b"#" * 20_000), NOW))
        now[0] = 60.0
        assert (len(lost), writer.lag) == (6, 60.0)
        assert "The archive lacks the version" in caplog.text
        assert "https://h9" in caplog.text
        stuck.released.set()
        await until_so(lambda: writer.lag == 0.0)
        writer.note(Origin("https", "h9", 443), found(Successful(200, b"#" * 20_000), NOW))
    assert len(lost) == 6
    assert len(origins(stuck)) == 5


def test_processes_append_to_one_log_of_a_store(store: str) -> None:
    """Each write is an object, so that none is lost between two that write at the same time."""
    files = [files_at(store) for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        for _ in threads.map(lambda number: files[number % 8].append({"index/a.ndjson": b"%d\n" % number}), range(80)):
            pass
    assert sorted(int(line.data) for line in files_at(store).lines("index/a.ndjson")) == list(range(80))
    assert list(files_at(store).names("index")) == ["index/a.ndjson"]


class Breaking(ObjectStore):
    """A store whose library fails in its own way until it is mended."""

    class Refused(Exception):
        """An error that no other library knows."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.is_broken = True
        store, pipe = self._store, self._store.pipe

        def refusing(files: Mapping[str, bytes]) -> None:
            if self.is_broken:
                raise self.Refused("403 Forbidden")
            pipe(files)

        self._store = copy(store)
        self._store.pipe = refusing


async def test_an_error_of_a_store_is_tried_again(
    store: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    limit(monkeypatch)
    files = Breaking(store)
    writer = ArchiveWriter(Archive(files), "p", lost=lambda: pytest.fail("lost"))
    async with writer.writing():
        writer.note(SITE, found(A, NOW))
        await until_so(lambda: writer._failing)
        assert "versions wait: Refused: 403 Forbidden" in caplog.text
        files.is_broken = False
        await until_so(lambda: writer.lag == 0.0)
    assert Archive(files_at(store)).past(SITE).at(NOW) is not None


async def test_a_store_of_a_kind_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for url, said in (
        ("gopher://bucket", "Protocol not known: gopher"),
        ("file:///tmp", "without file://"),
        ("gcs://bucket/path", "nstall gcsfs"),
    ):
        with pytest.raises(ValueError, match=said):
            check_writable(url)
    for command in (("archive", "verify", "gopher://x"), ("audit", "--verify", __file__, "--archive", "gopher://x")):
        ended = await run(*command)
        assert (ended.code, "Protocol not known: gopher" in ended.err) == (3, True), ended.err
    for module in ("fsspec", "fsspec.core"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "app.history.archive.object_store")
    for use in (check_writable, files_at):
        with pytest.raises(
            ValueError, match=r"needs the extra `archive`: pip install 'robots-decisions-server\[archive\]'"
        ):
            use("memory://x")


async def test_a_line_that_would_not_be_read_is_counted_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lost: list[None] = []
    writer = ArchiveWriter(Archive(Folder(tmp_path)), "p", lost=lambda: lost.append(None))
    monkeypatch.setattr(archive_writer, "LONGEST_LINE", 1000)
    async with writer.writing():
        writer.note(SITE, Snapshot(A, NOW, f"https://www.example.com/{'a' * 1000}"))
        writer.note(BOT, found(A, NOW))
    assert len(lost) == 1
    assert "more than the 1000 that are read" in caplog.text
    assert origins(Folder(tmp_path)) == {folder_name(BOT)}


async def test_a_full_archive_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch)
    blocked = tmp_path / "objects"
    blocked.write_text("no folder")
    writer = ArchiveWriter(Archive(Folder(tmp_path)), "p", lost=lambda: pytest.fail("lost"))
    async with writer.writing():
        writer.note(SITE, found(A, NOW))
        await until_so(lambda: writer._failing)
        blocked.unlink()
        await until_so(lambda: writer.lag == 0.0)
    assert Archive(Folder(tmp_path)).past(SITE).at(NOW) is not None


class Counting(Folder):
    """A folder that counts the files that never change."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.puts: list[str] = []

    def put(self, files: Mapping[str, bytes]) -> None:
        self.puts += files
        super().put(files)


async def test_the_same_file_is_written_once_a_week(tmp_path: Path) -> None:
    files = Counting(tmp_path)
    writer = ArchiveWriter(Archive(files), "p", lost=lambda: pytest.fail("lost"))
    async with writer.writing():
        for day in range(15):
            writer.note(SITE, Snapshot(A, NOW + day * DAY, since=NOW))
        failing = Failing(NOW + 16 * DAY, NOW + 16 * DAY, 1, DOWN)
        writer.note(SITE, Snapshot(A, NOW + 14 * DAY, failing=failing, since=NOW))
    lines = [Folder(tmp_path).read(name) for name in Folder(tmp_path).names("spans")]
    assert b"".join(line or b"" for line in lines).count(b"\n") == 3
    assert len(files.puts) == 1


class Hanging(Folder):
    """A folder that answers no read until it is released."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.released = threading.Event()
        self.reads = 0

    def children(self, below: str) -> list[str]:
        self.reads += 1
        assert self.released.wait(20), "it was not released"
        return super().children(below)


async def test_reads_that_hang_take_no_more_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(Archive(Folder(tmp_path)), found(A, NOW))
    monkeypatch.setattr(archive_reader, "ARCHIVE_READ_TIME", 0.01)
    folder = Hanging(tmp_path)
    reader = ArchiveReader(Archive(folder))
    for _ in range(3 * ARCHIVE_READS):
        with pytest.raises(StoreDown, match="it takes too long"):
            await reader.past(SITE).at(NOW)
    assert folder.reads == ARCHIVE_READS
    # Nor does a read wait for them: a batch may have a thousand.
    monkeypatch.setattr(archive_reader, "ARCHIVE_READ_TIME", 30)
    with pytest.raises(StoreDown, match="it takes too long"):
        await reader.past(SITE).at(NOW)
    assert not folder.released.is_set()
    folder.released.set()
    await until_so(lambda: not reader._overdue)
    assert await reader.past(SITE).at(NOW) is not None


OLD, NEW = "User-agent: *\nDisallow: /old\n", "User-agent: *\nDisallow: /new\n"


async def answer(service: Service, url: str, **query: str) -> Any:
    response = await service.client.get("/v1/robots/history", params={"url": url, **query})
    assert response.status_code == 200, response.text
    return response.json() if query.get("as") != "text" else response.text


async def store_hourly(service: Service, url: str, count: int) -> None:
    """Fetch so many versions, an hour apart, and wait until the archive and the store have them."""
    for number in range(count):
        service.now = START + number * 3600
        await service.client.post("/v1/robots/refresh", params={"url": url})
    await until(lambda: counted(service, "robots_archive_lag_seconds"), lambda lag: lag == 0)
    # What still waits for the store would be written after it is emptied.
    writing = service.app.state.services.history._store
    await until_so(lambda: not writing._waiting)


async def test_the_past_is_answered_when_the_store_is_empty(store_url: str, store_client: Redis, place: str) -> None:
    bodies = [OLD, *[f"# generated {number}\n{NEW}" for number in range(25)]]
    async with serve(*[text(200, body) for body in bodies]) as origin, running(store_url, archive=place) as service:
        page = f"{origin.url}/old"
        await store_hourly(service, origin.url, len(bodies))
        await store_client.flushall()
        service.now = START + 400 * DAY
        for hour in range(len(bodies)):
            found_ = await service.allowed(page, as_of=f"{_at(START + hour * 3600)}")
            assert found_["verdict"] == ("allow" if hour else "disallow")
            assert found_["version"] == hashlib.sha256(bodies[hour].encode()).hexdigest()[:16]
            assert await answer(service, origin.url, version=found_["version"], **{"as": "text"}) == bodies[hour]
        diff = await service.client.get(
            "/v1/robots/diff", params={"url": origin.url, "from": _at(START), "to": _at(START + 3600)}
        )
        assert [change["agents"] for change in diff.json()["agents"]] == [["*"]]
        assert await counted(service, "robots_archive_lost_total") == 0


async def test_reads_of_the_archive_are_charged_as_long_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds: list[float] = []
    monkeypatch.setattr(time, "thread_time", iter([0.0, 0.25, 1.0, 1.5]).__next__)
    token = SPENT.set(seconds.append)
    try:
        past = ArchiveReader(Archive(Folder(tmp_path))).past(SITE)
        await past.at(NOW)
        await past.by_id("0" * 16)
    finally:
        SPENT.reset(token)
    assert seconds == [0.25, 0.5]


async def test_versions_of_the_archive_have_their_neighbours(
    store_url: str, store_client: Redis, tmp_path: Path
) -> None:
    bodies = [f"User-agent: *\nDisallow: /{number}\n# {comment}\n" for number in range(24) for comment in "ab"]
    ids = [hashlib.sha256(body.encode()).hexdigest()[:16] for body in bodies]
    begun = [_at(START + number * 3600) for number in range(len(bodies))]
    async with serve(*[text(200, body) for body in bodies]) as origin:

        async def diff(service: Service, **query: str) -> Any:
            response = await service.client.get("/v1/robots/diff", params={"url": origin.url, **query})
            found_ = response.json()
            if response.status_code != 200:
                return response.status_code, found_["type"].rpartition(":")[2]
            return [(found_[side]["id"], found_[side]["from"], found_[side]["until"]) for side in ("from", "to")]

        async with running(store_url, archive=tmp_path) as service:
            await store_hourly(service, origin.url, len(bodies))
            stored = [version["id"] for version in (await answer(service, origin.url))["versions"]]
            last = len(bodies) - 1
            for number, name in enumerate(ids):
                [version] = (await answer(service, origin.url, version=name))["versions"]
                if name in stored and number < last:
                    assert (version["from"], version["until"]) == (begun[number - 1], begun[number + 1])
                elif number < last:
                    assert (version["from"], version["until"]) == (begun[number], begun[number + 1])
                else:
                    assert version["until"] is None
            assert await diff(service, to=ids[0]) == (404, "no-version")
            assert await diff(service, to=ids[6]) == [
                (ids[5], begun[5], begun[6]),
                (ids[6], begun[6], begun[7]),
            ]
            oldest = ids.index(stored[-1])
            assert await diff(service, to=stored[-1]) == [
                (ids[oldest - 2], begun[oldest - 2], begun[oldest - 1]),
                (stored[-1], begun[oldest - 1], begun[oldest + 1]),
            ]
            # One from within a period of the history, and that period.
            within = ids[oldest + 1]
            assert await diff(service, **{"from": within, "to": stored[-2]}) == [
                (within, begun[oldest + 1], begun[oldest + 2]),
                (stored[-2], begun[oldest + 1], begun[oldest + 3]),
            ]
        await store_client.flushall()
        async with running(store_url, archive=tmp_path) as service:
            assert await diff(service, **{"from": ids[5]}) == (404, "no-version")
            assert await diff(service, **{"from": ids[5], "to": begun[8]}) == [
                (ids[5], begun[5], begun[6]),
                (ids[8], begun[8], begun[9]),
            ]


async def test_an_archive_that_hangs_delays_no_answer(
    store_url: str, store_client: Redis, stuck: Stuck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.main.files.files_at", lambda _place: stuck)
    monkeypatch.setattr(archive_writer, "ARCHIVE_CLOSING_TIME", 0.01)
    async with serve(text(200, OLD)) as origin, running(store_url, archive=stuck.root) as service:
        assert (await service.allowed(f"{origin.url}/old"))["verdict"] == "disallow"
        await until(lambda: counted(service, "robots_archive_lag_seconds"), lambda lag: lag > 0)
        assert (await service.allowed(f"{origin.url}/"))["verdict"] == "allow"
        metrics = service.app.state.services.metrics
    assert b"robots_archive_lost_total 1.0" in metrics.text()


def _at(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


@pytest.mark.parametrize("secret", ["SECRETZ", "SE/CRETZ", "SE:CRETZ"])
@pytest.mark.parametrize("scheme", ["s3", "github", "memory", "nonsense"])
def test_a_url_with_credentials_is_refused_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, scheme: str, secret: str
) -> None:
    place = f"{scheme}://AKIAX:{secret}@bucket/path"
    monkeypatch.setenv("ARCHIVE", place)
    with pytest.raises(
        BadSetting, match=rf"^ARCHIVE={scheme}://\*\*\*@bucket/path is invalid: leave the cred"
    ) as refused:
        Settings.read()
    with pytest.raises(Failed, match=rf"^{scheme}://\*\*\*@bucket/path: leave the credentials out") as failed:
        archive_command.archive_at(place)
    for message in str(refused.value), str(failed.value):
        assert "CRETZ" not in message
        assert "AWS_SECRET_ACCESS_KEY" in message


@pytest.mark.parametrize("value", ["relative", "/nonexistent", __file__])
def test_an_archive_that_is_no_folder_stops_the_start(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("ARCHIVE", value)
    with pytest.raises(BadSetting, match=r"^ARCHIVE=.* is invalid: "):
        Settings.read()
