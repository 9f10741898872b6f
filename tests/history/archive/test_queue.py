"""What waits for the archive: shared among callers, waited for by who sends copies, and ahead of the decision log."""

import asyncio
import json
import signal
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from app.cache.freshness import DAY, Failing, Snapshot
from app.decision_log import log as decision_log
from app.history.archive.archive import Archive
from app.history.archive.folder import Folder
from app.history.archive.span import span_of
from app.history.archive.writer import ArchiveWriter
from app.loop.admission import Overloaded
from app.main import files as main_files
from robots_core.origin import Origin
from robots_core.robots.access import Successful
from tests.api.service import counted, running
from tests.cli.command import run
from tests.faults.until import until, until_so
from tests.history.archive.spans import DOWN, NOW, SITE, A, B, found, limit, write
from tests.history.archive.stuck import Stuck
from tests.origins import serve, text
from tests.service_process import started


def site(number: int, name: str = "h") -> Origin:
    return Origin("https", f"{name}{number}", 443)


def file(size: int) -> Snapshot:
    return found(Successful(200, b"#" * size), NOW)


async def test_a_caller_that_floods_it_costs_others_nothing(stuck: Stuck, monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, waiting=500_000)
    lost: list[None] = []
    writer = ArchiveWriter(Archive(stuck), "p", lost=lambda: lost.append(None))
    async with writer.writing():
        writer.note(site(0), file(1000), "flood")
        await until_so(lambda: stuck.writes > 0)
        for number in range(1, 30):
            writer.note(site(number), file(50_000), "flood")
        assert len(lost) == 20
        for number in range(3):
            writer.note(site(number, "other"), file(50_000), f"caller-{number}")
        assert len(lost) == 23
        # An equal share of what there is, and no more.
        for number in range(3, 30):
            writer.note(site(number, "other"), file(50_000), "caller-0")
        callers = Counter(it.caller for it in writer._waiting.values())
        assert callers == {"flood": 4, "caller-0": 4, "caller-1": 1, "caller-2": 1}
        stuck.released.set()
        await until_so(lambda: writer.lag == 0.0)
    assert not writer._bytes
    archive = Archive(Folder(stuck.root))
    assert all(archive.past(site(number, "other")).at(NOW) for number in range(3))


async def test_who_sends_copies_waits_and_then_is_refused(stuck: Stuck, monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, waiting=100_000, every=3600, copy_wait=0.2)
    refused: list[str] = []
    writer = ArchiveWriter(Archive(stuck), "p", lost=lambda: pytest.fail("lost"), refused=refused.append)
    taken: list[str] = []

    async def send(sender: str, number: int) -> None:
        async with writer.room_for_copy(sender, 20_000):
            writer.note_copy(site(number, sender), file(20_000))
            taken.append(sender)

    async with writer.writing():
        for number in range(4):
            await send("flood", number)
        with pytest.raises(Overloaded, match="The archive is behind"):
            await send("flood", 4)
        assert refused == ["archive"]
        limit(monkeypatch, copy_wait=20.0)
        more = [asyncio.create_task(send("flood", number)) for number in range(5, 15)]
        await asyncio.sleep(0)
        other = asyncio.create_task(send("other", 0))
        await asyncio.sleep(0)
        stuck.released.set()
        await asyncio.gather(other, *more)
        # It waits behind the one whose turn it is, and not behind all.
        assert taken[4:].index("other") <= 2
        # What fetches found has room of its own.
        writer.note(SITE, file(90_000))
    archive = Archive(Folder(stuck.root))
    assert all(archive.past(site(number, "flood")).at(NOW) for number in (*range(4), *range(5, 15)))


async def test_put_is_refused_while_the_archive_takes_nothing(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, waiting=100_000, copy_wait=0.1)
    (tmp_path / "objects").write_text("no folder")
    body = "User-agent: *\nDisallow: /\n" + "#" * 30_000
    async with running(store_url, archive=tmp_path) as service:

        async def put(number: int) -> httpx.Response:
            observation = {"status": 200, "observed_at": "2026-11-01T00:00:00Z", "robots": f"{body}{number}"}
            return await service.client.put("/v1/robots", params={"url": f"https://h{number}/"}, json=observation)

        for number in range(3):
            assert (await put(number)).status_code == 200
        refused = await put(3)
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        assert refused.json()["type"].endswith(":overloaded")
        assert "The archive is behind: it takes versions too slowly, or not at all" in refused.json()["detail"]
        metrics = service.app.state.services.metrics
        assert b'robots_requests_overloaded_total{reason="archive"} 1.0' in metrics.text()
        (tmp_path / "objects").unlink()
        await until(lambda: counted(service, "robots_archive_lag_seconds"), lambda lag: lag == 0)
        assert (await put(3)).status_code == 200
    assert await run_verify(tmp_path) == 0


async def run_verify(folder: Path) -> int:
    return (await run("archive", "verify", str(folder))).code


async def test_what_another_process_found_is_written_if_it_is_missing(tmp_path: Path) -> None:
    archive = Archive(Folder(tmp_path))
    write(archive, Snapshot(A, NOW + DAY, since=NOW))
    writer = ArchiveWriter(Archive(Folder(tmp_path)), "q", lost=lambda: pytest.fail("lost"))
    failing = Failing(NOW + 2 * DAY, NOW + 2 * DAY, 1, DOWN)
    async with writer.writing():
        writer.note_known(SITE, Snapshot(A, NOW + DAY + 60, since=NOW))
        await writer.flush(5.0)
        assert list(Folder(tmp_path).names("spans")) == ["spans/2026-09-21/p.ndjson"]
        writer.note_known(SITE, Snapshot(B, NOW + 2 * DAY, since=NOW + 2 * int(DAY)))
        await writer.flush(5.0)
        writer.note_known(SITE, Snapshot(A, NOW + 3 * DAY, failing=failing))
    expected = [A, B, A]
    for day, access in zip((1, 2, 3), expected, strict=True):
        version = archive.past(SITE).at(NOW + day * DAY)
        assert version is not None
        assert version.digest.hex() == span_of(SITE, found(access, NOW))[0].digest


@pytest.mark.parametrize("after", [0.0, 0.15])
async def test_no_line_of_a_killed_process_names_a_version_that_is_lost(
    store_url: str, tmp_path: Path, after: float
) -> None:
    """Nor does one of the next process, which decides by the copies of the store."""
    log, archive = tmp_path / "decisions.ndjson", tmp_path / "archive"
    archive.mkdir()
    settings = {"REDIS_URL": store_url, "ARCHIVE": str(archive), "DECISION_LOG": str(log), "ACCESS_LOG": "false"}

    async def ask_all(client: httpx.AsyncClient, urls: Sequence[str]) -> None:
        for url in urls:
            asked.append(url)
            response = await client.get("/v1/allowed", params={"url": url, "agent": "ExampleBot"})
            assert response.status_code == 200

    async with serve(text(200, "User-agent: *\nDisallow: /a\n"), host="0.0.0.0") as origin:
        urls = [f"http://127.9.{number // 250}.{number % 250 + 1}:{origin.port}/a" for number in range(600)]
        asked: list[str] = []
        lines: list[int] = []
        for ended_by in (signal.SIGKILL, signal.SIGTERM):
            with started(**settings) as service:
                async with httpx.AsyncClient(base_url=service.url, timeout=60) as client:
                    answers = asyncio.gather(*(ask_all(client, urls[worker::10]) for worker in range(10)))
                    if ended_by is signal.SIGKILL:
                        await until_so(lambda: log.exists() and log.stat().st_size > 0)
                        await asyncio.sleep(after)
                        await asyncio.to_thread(service.signal, ended_by)
                        with suppress(httpx.TransportError):
                            await answers
                        urls = [*asked, *[url for url in urls if url not in asked][:50]]
                    else:
                        await answers
                        await asyncio.to_thread(service.signal, ended_by)
            ended = await run("audit", "--verify", str(log), "--archive", str(archive))
            # If the archive is more than ARCHIVE_WAIT behind, the line says so.
            assert all(UNARCHIVED in fault for fault in ended.out.splitlines() if "has no version" in fault)
            lines.append(log.read_bytes().count(b"\n"))
    assert lines[0] > 0
    assert lines[1] >= lines[0] + len(urls)
    assert await run_verify(archive) == 0


UNARCHIVED = "and had none when the line was written"


async def test_a_line_says_that_the_archive_lacks_its_version(store_url: str, tmp_path: Path) -> None:
    log, archive = tmp_path / "decisions.ndjson", tmp_path / "archive"
    archive.mkdir()
    (archive / "objects").write_text("no folder")
    settings = {"REDIS_URL": store_url, "ARCHIVE": str(archive), "DECISION_LOG": str(log), "ACCESS_LOG": "false"}
    async with serve(text(200, "User-agent: *\nDisallow: /a\n"), host="0.0.0.0") as origin:
        urls = [f"http://127.9.0.{number}:{origin.port}/a" for number in range(1, 21)]
        for ended_by in (signal.SIGKILL, signal.SIGTERM):
            with started(**settings) as service:
                async with httpx.AsyncClient(base_url=service.url, timeout=60) as client:
                    for url in urls:
                        response = await client.get("/v1/allowed", params={"url": url, "agent": "ExampleBot"})
                        assert response.status_code == 200
                    if ended_by is signal.SIGKILL:
                        await until_so(lambda: log.exists() and log.read_bytes().count(b"\n") == len(urls))
                        metrics = (await client.get("/metrics")).text
                        assert f"robots_decision_log_unarchived_total {len(urls)}.0" in metrics
                    await asyncio.to_thread(service.signal, ended_by)
            ended = await run("audit", "--verify", str(log), "--archive", str(archive), "--partial")
            if ended_by is signal.SIGKILL:
                assert ended.out.count(UNARCHIVED) == ended.out.count("\n") == len(urls)
                assert f"0 decided again, {len(urls)} not: {len(urls)} faults" in ended.err
                (archive / "objects").unlink()
            else:  # it wrote what it found in the store
                assert f"{2 * len(urls)} decided again: no faults" in ended.err


async def test_a_version_that_is_lost_is_lacking_until_it_is_written(
    stuck: Stuck, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, waiting=10_000)
    writer = ArchiveWriter(Archive(stuck), "p", lost=lambda: None)

    def lacking(snapshot: Snapshot) -> bool:
        return writer.lacks(SITE.key, span_of(SITE, snapshot)[0].id)

    async with writer.writing():
        for size in (5_000, 20_000):
            writer.note(SITE, file(size))
            assert lacking(file(size))
        stuck.released.set()
        await until_so(lambda: writer.lag == 0.0)
        assert (lacking(file(5_000)), lacking(file(20_000))) == (False, True)
        writer._room = 30_000
        writer.note(SITE, file(20_000))
        await until_so(lambda: writer.lag == 0.0)
        assert not lacking(file(20_000))
    assert not writer._unwritten


async def test_a_decision_is_logged_though_the_archive_hangs(
    store_url: str, stuck: Stuck, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main_files, "files_at", lambda _place: stuck)
    monkeypatch.setattr(decision_log, "ARCHIVE_WAIT", 0.5)
    log = tmp_path / "decisions.ndjson"
    async with (
        serve(text(200, "User-agent: *\nDisallow: /a\n")) as origin,
        running(store_url, archive=stuck.root, decision_log=str(log)) as service,
    ):
        for number in range(3):
            await service.allowed(f"{origin.url}/{number}")
            await until_so(lambda: log.exists() and log.read_bytes().count(b'"archived":false') > number)  # noqa: B023
        assert await counted(service, "robots_decision_log_unarchived_total") == 3
        stuck.released.set()
        await until(lambda: counted(service, "robots_archive_lag_seconds"), lambda lag: lag == 0)
        await service.allowed(f"{origin.url}/3")
    *lines, _end = map(json.loads, log.read_text().splitlines())
    assert [line.get("archived") for line in lines] == [False, False, False, None]
