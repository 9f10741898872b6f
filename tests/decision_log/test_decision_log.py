"""The decision log says what was decided and why, and never delays an answer."""

import asyncio
import json
import os
import re
import socket
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from redis.asyncio import Redis

from app.decision_log import log as decision_log
from app.decision_log import sinks
from app.decision_log.chain import Chain
from app.decision_log.line import LineWriter
from app.decision_log.log import DecisionLog
from app.decision_log.sinks import DECISIONS_STREAM, FileSink, SinkFailed, StreamSink
from app.main.settings import BadSetting, Settings
from tests.api.service import running
from tests.faults.until import until_so
from tests.forked import ROOT
from tests.full_disk import full_at
from tests.origins import serve, text

_NOBODY = 65534
FILE = "User-agent: *\nDisallow: /private\n"


def lines(path: Path) -> list[dict[str, Any]]:
    """The decisions in a file, without the mark of the log's end."""
    return [members for line in path.read_text().splitlines() if "mark" not in (members := json.loads(line))]


async def test_every_decision_is_a_line(store_url: str, store_client: Redis, tmp_path: Path) -> None:
    path = tmp_path / "decisions.ndjson"
    async with serve(text(200, FILE)) as origin:
        async with running(store_url, decision_log=str(path)) as service:
            await service.allowed(f"{origin.url}/private/a")
            items = [{"url": f"{origin.url}/{name}", "agent": "OtherBot/2.0"} for name in "bc"]
            response = await service.client.post("/v1/allowed", json={"items": items}, headers={"X-Request-ID": "mine"})
            assert response.status_code == 200
            history = await service.client.get("/v1/robots/history", params={"url": origin.url})
        first, *others = lines(path)
        assert first["url"] == f"{origin.url}/private/a"
        assert (first["verdict"], first["reason"]) == ("disallow", "rule")
        assert (first["line"], first["rule"]) == (2, "disallow: /private")
        assert first["version"] == history.json()["versions"][0]["id"]
        assert (first["key"], first["override"], first["origin"]) == ("operator", None, origin.url)
        assert [(it["url"][-2:], it["agent"], it["request_id"], it["verdict"]) for it in others] == [
            ("/b", "OtherBot", "mine", "allow"),
            ("/c", "OtherBot", "mine", "allow"),
        ]
        assert path.stat().st_mode & 0o007 == 0


@pytest.mark.parametrize(("form", "member"), [("hashed", "url_sha256"), ("none", None)])
async def test_urls_can_be_hashed_or_left_out(
    store_url: str, store_client: Redis, tmp_path: Path, form: str, member: str | None
) -> None:
    path = tmp_path / "decisions.ndjson"
    async with serve(text(200, FILE)) as origin:
        async with running(store_url, decision_log=str(path), decision_log_url=form) as service:
            await service.allowed(f"{origin.url}/secret")
        [line] = lines(path)
        assert "secret" not in path.read_text()
        assert {name for name in line if "url" in name} == ({member} if member else set())


async def test_lines_go_to_a_stream(store_url: str, store_client: Redis) -> None:
    async with serve(text(200, FILE)) as origin:
        async with running(store_url, decision_log="redis") as service:
            await service.allowed(f"{origin.url}/")
        entries: Any = await store_client.xrange(DECISIONS_STREAM)
        [(_, entry), (_, end)] = entries
        assert json.loads(entry[b"decision"])["url"] == f"{origin.url}/"
        assert json.loads(end[b"decision"])["mark"] == "end"


async def test_a_log_that_cannot_be_written_fails_no_answer(
    store_url: str, store_client: Redis, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    async with (
        serve(text(200, FILE)) as origin,
        running(store_url, decision_log=str(folder / "file")) as service,
    ):
        folder.rmdir()
        for _ in range(3):
            assert (await service.allowed(f"{origin.url}/"))["verdict"] == "allow"
        metrics = service.app.state.services.metrics
        await until_so(lambda: b"robots_decision_log_lost_total 3.0" in metrics.text())


class Stuck:
    """A sink that takes nothing until it is released."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.written: list[bytes] = []

    async def write(self, lines: Sequence[bytes]) -> None:
        await self.released.wait()
        self.written += lines

    async def newest(self) -> Sequence[bytes]:
        return ()


class Decided(LineWriter):
    """Writes whatever it is given."""

    def write(self, decision: object, request_id: str | None, key: str | None) -> bytes:
        return f"{decision}}}".encode()


def chain() -> Chain:
    return Chain("p", lambda: 0.0)


def unlinked(written: Sequence[bytes]) -> list[bytes]:
    """The lines as they were before they were linked, without marks."""
    return [line.partition(b',"process"')[0] + b"}" for line in written if b'"mark"' not in line]


@pytest.mark.parametrize("length", [0, 10, 3_000, 100_000])
async def test_the_bytes_that_wait_for_a_slow_sink_are_bounded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, length: int
) -> None:
    monkeypatch.setattr(decision_log, "WAITING_LINE_BYTES", 1_000_000)
    monkeypatch.setattr(decision_log, "WRITE_EVERY", 0.001)
    sink, lost = Stuck(), list[int]()
    log = DecisionLog(sink, Decided("whole"), 1.0, lost.append, chain())
    number = 0

    def line(number: int) -> bytes:
        return f"{number:0{length}}".encode()

    async with log.writing():
        while not lost:
            log.note(line(number))  # type: ignore[arg-type]
            number += 1
            if number == 5:
                await until_so(log._writing.locked)  # lines of a write that hangs wait, too
        log.note(line(number))  # type: ignore[arg-type]
        assert lost == [1, 1]
        sink.released.set()
    written = unlinked(sink.written)
    assert written == [f"{line(it)!s}}}".encode() for it in range(number - 1)]
    assert 1_000_000 - 110_000 < sum(map(sys.getsizeof, written)) <= 1_000_000
    assert len(caplog.messages) == 1


async def test_lines_that_a_stuck_sink_never_takes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision_log, "LOG_CLOSING_TIME", 0.01)
    monkeypatch.setattr(decision_log, "WRITE_EVERY", 0.001)
    sink, lost = Stuck(), list[int]()
    log = DecisionLog(sink, Decided("whole"), 1.0, lost.append, chain())
    async with log.writing():
        for number in range(decision_log.LINES_PER_WRITE + 7):
            log.note(number)  # type: ignore[arg-type]
        await until_so(log._writing.locked)
    assert sum(lost) == decision_log.LINES_PER_WRITE + 7


class Numbered(int):
    """A decision, as Decided writes it."""

    question = SimpleNamespace(nonce=None)


class Signed(Numbered):
    question = SimpleNamespace(nonce="bm9uY2U=")


async def test_only_a_share_is_logged_and_what_is_signed_for(monkeypatch: pytest.MonkeyPatch) -> None:
    sink, chances = Stuck(), iter([0.05, 0.5, 0.0999, 0.1])
    monkeypatch.setattr(decision_log, "random", SimpleNamespace(random=lambda: next(chances)))
    sink.released.set()
    log = DecisionLog(sink, Decided("whole"), 0.1, lambda _: None, chain())
    async with log.writing():
        for number in range(4):
            log.note(Numbered(number))  # type: ignore[arg-type]
        log.note(Signed(4))  # type: ignore[arg-type]
    assert unlinked(sink.written) == [b"0}", b"2}", b"4}"]


async def test_a_rotated_file_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "log"
    sink = FileSink(path)
    await sink.write([b"one"])
    path.rename(tmp_path / "log.1")
    await sink.write([b"two", b"three"])
    assert (tmp_path / "log.1").read_bytes() == b"one\n"
    assert path.read_bytes() == b"two\nthree\n"
    with pytest.raises(SinkFailed):
        await FileSink(tmp_path).write([b"a folder"])


@pytest.mark.parametrize("same", [True, False], ids=["same process", "other process"])
@pytest.mark.parametrize("size", range(36, 50))
async def test_a_torn_line_swallows_no_other(tmp_path: Path, size: int, same: bool) -> None:
    sink = FileSink(tmp_path / "log")
    written = [b'{"n": %d}' % number for number in range(10, 20)]
    with full_at(size), pytest.raises(SinkFailed) as failed:
        await sink.write(written)
    later = sink if same else FileSink(tmp_path / "log")
    await later.write([b'{"n": 100}'])
    await later.write([b'{"n": 101}'])
    whole, torn = divmod(size, len(written[0]) + 1)
    expected = [*written[:whole], *([(written[whole] + b"\n")[:torn]] if torn else []), b'{"n": 100}', b'{"n": 101}']
    assert (tmp_path / "log").read_bytes().splitlines() == expected
    assert failed.value.lost == len(written) - whole


async def test_a_torn_line_of_a_pipe_swallows_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    monkeypatch.setattr(sinks, "_STDOUT", writer)
    sink = FileSink(None)
    line = b"x" * 10_000  # what is longer than PIPE_BUF may be written in part
    with pytest.raises(SinkFailed) as failed:
        await sink.write([line] * 100)
    taken = os.read(reader, 1_000_000)
    assert not taken.endswith(b"\n")
    assert failed.value.lost == 100 - taken.count(b"\n")
    await sink.write([b"next"])
    assert os.read(reader, 100) == b"\nnext\n"
    os.close(reader)
    os.close(writer)


_WRITING = """
import asyncio, sys
from app.decision_log.sinks import FileSink

async def main():
    line = sys.argv[1].encode() * 300
    for _ in range(40):
        await FileSink(None).write([line] * 500)

asyncio.run(main())
"""


async def test_workers_do_not_tear_the_lines_of_each_other_in_a_pipe() -> None:
    """Nor those that anything else writes there: a pipe takes only short pieces at once."""
    reader, writer = os.pipe()
    command = sys.executable, "-c", _WRITING
    workers = [await asyncio.create_subprocess_exec(*command, it, cwd=ROOT, stdout=writer) for it in "ab"]
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        written = await asyncio.to_thread(pipe.read)
    assert [await worker.wait() for worker in workers] == [0, 0]
    found = Counter(written.splitlines())
    assert found == {b"a" * 300: 20_000, b"b" * 300: 20_000}


async def test_a_stream_counts_the_lines_that_it_did_not_take(store_url: str, store_client: Redis) -> None:
    await store_client.set(DECISIONS_STREAM, "another type")
    async with running(store_url) as service:
        with pytest.raises(SinkFailed) as failed:
            await StreamSink(service.app.state.services.store).write([b"a", b"b"])
    assert failed.value.lost == 2


@pytest.mark.parametrize("value", ["stderr", "relative/file", "./file"])
def test_a_sink_of_another_name_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("DECISION_LOG", value)
    with pytest.raises(BadSetting, match="DECISION_LOG"):
        Settings.read()


def test_a_file_that_cannot_be_opened_stops_the_start(monkeypatch: pytest.MonkeyPatch, open_folder: Path) -> None:
    (open_folder / "file").touch()
    (open_folder / "closed").mkdir(mode=0o500)
    (open_folder / "read-only").touch(mode=0o400)
    with socket.socket(socket.AF_UNIX) as server, ExitStack() as stack:
        server.bind(str(open_folder / "socket"))
        stack.enter_context(without_rights_of_root(open_folder))
        for name, reason in {
            "": "it cannot be opened: Is a directory",
            "missing/log": f"its directory {open_folder}/missing does not exist",
            "file/log": "it cannot be opened: Not a directory",
            "closed/log": f"no file can be made in {open_folder}/closed",
            "read-only": "it cannot be opened: Permission denied",
            "socket": "it cannot be opened: No such device or address",
        }.items():
            path = open_folder / name
            monkeypatch.setenv("DECISION_LOG", str(path))
            with pytest.raises(BadSetting, match=re.escape(f"DECISION_LOG={path} is invalid: {reason}.")):
                Settings.read()
    os.mkfifo(open_folder / "fifo")
    for name in ("file", "new", "fifo"):
        monkeypatch.setenv("DECISION_LOG", str(open_folder / name))
        assert Settings.read().decision_log == str(open_folder / name)
    assert not (open_folder / "new").exists()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user may reach. One in pytest's own is not: each session that starts closes that of all."""
    with TemporaryDirectory() as name:
        yield Path(name)


@contextmanager
def without_rights_of_root(directory: Path) -> Iterator[None]:
    """If root runs the tests, its file accesses are those of another user, who owns `directory`."""
    if os.getuid() != 0:
        yield
        return
    for path in (directory, *directory.iterdir()):
        os.chown(path, _NOBODY, -1)
    # The real one too: os.access asks for it.
    os.setresgid(_NOBODY, _NOBODY, 0)
    os.setresuid(_NOBODY, _NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
