"""The decision log says what was decided and why, and never delays an answer."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from app.decision_log import log as decision_log
from app.decision_log.line import LineWriter
from app.decision_log.log import DecisionLog
from app.decision_log.sinks import STREAM, FileSink, SinkFailed
from app.settings import BadSetting, Settings
from tests.api.service import running
from tests.faults.until import until_so
from tests.origins import serve, text

FILE = "User-agent: *\nDisallow: /private\n"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


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
        assert (first["key"], first["override"], first["origin"]) == (None, None, origin.url)
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
        entries: Any = await store_client.xrange(STREAM)
        [(_, entry)] = entries
        assert json.loads(entry[b"decision"])["url"] == f"{origin.url}/"


async def test_a_log_that_cannot_be_written_fails_no_answer(
    store_url: str, store_client: Redis, tmp_path: Path
) -> None:
    async with (
        serve(text(200, FILE)) as origin,
        running(store_url, decision_log=str(tmp_path / "missing" / "file")) as service,
    ):
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


class Decided(LineWriter):
    """Writes whatever it is given."""

    def write(self, decision: object, request_id: str | None, key: str | None) -> bytes:
        return str(decision).encode()


async def test_a_slow_sink_loses_what_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision_log, "WAITING", 10)
    sink, lost = Stuck(), list[int]()
    log = DecisionLog(sink, Decided("whole"), 1.0, lost.append, every=0.001)
    async with log.writing():
        for number in range(25):
            log.note(number)  # type: ignore[arg-type]
        sink.released.set()
    assert sink.written == [str(number).encode() for number in range(10)]
    assert sum(lost) == 15


async def test_only_a_share_is_logged() -> None:
    sink, chances = Stuck(), iter([0.05, 0.5, 0.0999, 0.1])
    sink.released.set()
    log = DecisionLog(sink, Decided("whole"), 0.1, lambda _: None, chance=lambda: next(chances))
    async with log.writing():
        for number in range(4):
            log.note(number)  # type: ignore[arg-type]
    assert sink.written == [b"0", b"2"]


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


@pytest.mark.parametrize("value", ["stderr", "relative/file", "./file"])
def test_a_sink_of_another_name_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("DECISION_LOG", value)
    with pytest.raises(BadSetting, match="DECISION_LOG"):
        Settings.read()
