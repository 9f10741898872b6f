"""`robots-decisions ingest`: the robots.txt files of WARC files reach a service, which answers by them."""

import asyncio
import base64
import gzip
import json
import os
import pty
import random
import re
import termios
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import pytest
from robots_decisions.cli import warc as warc_module
from robots_decisions.cli.entries import URL_LIMIT
from robots_decisions.cli.failures import Failed
from robots_decisions.cli.warc import HEADER_BYTES, MOST_REDIRECTS, REDIRECTED_BYTES, Copy, WarcFiles

from tests.clients.commands import WORDS, Ended, command, run
from tests.clients.crawling import ROOT, SOURCES, environment
from tests.faults.until import until
from tests.operator_token import TOKEN_FILE
from tests.origins import Exchange, Reply, serve, text

RULES = b"User-agent: *\nDisallow: /private/\n"
DATE = "2026-01-02T03:04:05Z"
PLAIN = ("Content-Type", "text/plain")
KEY = TOKEN_FILE.read_text().strip()
USED = {"ingested": {"in_use": True}}


class Warc:
    """A WARC file that is being written."""

    def __init__(self, *, compressed: bool = True) -> None:
        self.data = b""
        self._compressed = compressed

    def add(
        self,
        url: str,
        body: bytes = RULES,
        status: str = "200 OK",
        *fields: tuple[str, str],
        date: str = DATE,
        kind: str = "response",
        **more: str,
    ) -> "Warc":
        """Add a record; `more` are fields of the record itself, with underscores for hyphens."""
        http = _head(f"HTTP/1.1 {status}", fields or [PLAIN]) + body
        named = {
            "WARC-Type": kind,
            "WARC-Record-ID": "<urn:uuid:00000000-0000-4000-8000-000000000000>",
            "WARC-Date": date,
            "WARC-Target-URI": url,
            "Content-Type": "application/http; msgtype=response",
            "Content-Length": str(len(http)),
            **{name.replace("_", "-"): value for name, value in more.items()},
        }
        record = _head("WARC/1.1", list(named.items())) + http + b"\r\n\r\n"
        self.data += gzip.compress(record, mtime=0) if self._compressed else record
        return self

    def redirect(self, url: str, location: str, date: str = DATE) -> "Warc":
        return self.add(url, b"", "301 Moved", ("Location", location), date=date)

    def to(self, path: Path) -> str:
        path.write_bytes(self.data)
        return str(path)


def _head(first: str, fields: Sequence[tuple[str, str]]) -> bytes:
    lines = [first, *(f"{name}: {value}" for name, value in fields), "", ""]
    return "\r\n".join(lines).encode("latin-1")


async def ingest(service: str, *arguments: str, given: bytes = b"", key: str = KEY) -> Ended:
    return await run("ingest", *arguments, "--server", service, given=given, ROBOTS_API_KEY=key)


def history(service: str, url: str) -> list[dict[str, Any]]:
    answer = httpx2.get(f"{service}/v1/robots/history", params={"url": url})
    assert answer.status_code in {200, 503}, answer.text  # 503 at a moment in which the machine is busy
    found: list[dict[str, Any]] = answer.json().get("versions", [])
    return found


@pytest.mark.parametrize("of_pipe", [False, True])
async def test_progress_is_shown_on_a_terminal(of_pipe: bool, tmp_path: Path) -> None:
    warc = Warc()
    for number in range(300):
        warc.add(f"http://h{number}.example/robots.txt")
    listed = warc.to(tmp_path / "a.warc.gz")
    reads, writes = pty.openpty()
    termios.tcsetwinsize(writes, (24, 200))
    async with serve(Taking()) as server:
        process = await asyncio.create_subprocess_exec(
            *(*WORDS, "ingest", "-" if of_pipe else listed, "--server", server.url),
            cwd=ROOT,
            env=environment(),
            stdin=asyncio.subprocess.PIPE,
            stderr=writes,
        )
        await process.communicate(warc.data if of_pipe else b"")
    os.close(writes)
    shown = os.read(reads, 100_000).decode()
    os.close(reads)
    assert shown.splitlines()[-1].endswith("300 responses for robots.txt: 300 in use")
    assert re.search(r"records/s, [0-9]+ in use" if of_pipe else r"[0-9.]+k?B/s, [0-9]+ in use", shown)


class Taking:
    """A service that takes what is sent, and keeps it."""

    def __init__(self, *replies: Reply) -> None:
        self.sent: list[dict[str, Any]] = []
        self.targets: list[str] = []
        self._replies = list(replies)

    async def __call__(self, exchange: Exchange) -> None:
        lines = exchange.head.decode().split("\r\n")
        [length] = [line for line in lines if line.lower().startswith("content-length:")]
        body = await exchange.receive(int(length.partition(":")[2]))
        reply = (
            self._replies.pop(0) if self._replies else text(200, json.dumps(USED), {"Content-Type": "application/json"})
        )
        if isinstance(reply, bytes):
            if reply.startswith(b"HTTP/1.1 200"):
                self.targets.append(lines[0].split()[1])
                self.sent.append(json.loads(body))
            await exchange.send(reply)
        else:
            await reply(exchange)


async def sent_from(tmp_path: Path, *warcs: Warc, arguments: Sequence[str] = ()) -> tuple[Taking, Ended]:
    taking = Taking()
    files = [warc.to(tmp_path / f"{number}.warc.gz") for number, warc in enumerate(warcs)]
    async with serve(taking) as server:
        return taking, await ingest(server.url, *files, "--concurrency", "1", *arguments)


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("from_stdin", [True, False])
async def test_a_service_answers_by_what_a_crawl_stored(
    service_url: str, tmp_path: Path, *, compressed: bool, from_stdin: bool
) -> None:
    site = f"https://www-{compressed}-{from_stdin}.example.com"
    warc = (
        Warc(compressed=compressed).add(f"{site}/page", b"<html>").add(f"{site}/robots.txt").add(f"{site}/a/robots.txt")
    )
    file = "-" if from_stdin else warc.to(tmp_path / "crawl.warc.gz")
    ended = await ingest(service_url, file, given=warc.data if from_stdin else b"")
    assert (ended.code, ended.out) == (0, ""), ended.err
    assert ended.err == "1 response for robots.txt: 1 earlier than what the service knows\n"
    found = await until(lambda: asyncio.to_thread(history, service_url, site), bool)
    [version] = found
    assert (version["from"], version["source"], version["status"]) == (DATE, "ingested", 200)
    asked = {"url": f"{site}/private/a", "agent": "a", "as_of": "2026-01-02T04:00:00Z"}
    assert httpx2.get(f"{service_url}/v1/allowed", params=asked).json()["verdict"] == "disallow"


async def test_a_redirect_is_followed_within_the_files(tmp_path: Path) -> None:
    first = Warc().redirect("http://a.example/robots.txt", "https://A.example:443/robots.txt#x")
    second = Warc().add("https://a.example/robots.txt", date="2026-01-02T03:04:06Z")
    taking, ended = await sent_from(tmp_path, first, second, arguments=("--profile", "own"))
    assert (ended.code, ended.err) == (0, "2 responses for robots.txt: 2 in use\n")
    to = {
        target.partition("url=")[2].partition("&")[0]: sent
        for target, sent in zip(taking.targets, taking.sent, strict=True)
    }
    redirected, own = to["http%3A%2F%2Fa.example%2Frobots.txt"], to["https%3A%2F%2Fa.example%2Frobots.txt"]
    assert (redirected["observed_at"], redirected["final_url"]) == (DATE, "https://a.example/robots.txt")
    assert (own["observed_at"], own.get("final_url")) == ("2026-01-02T03:04:06Z", None)
    assert all(target.endswith("&profile=own") for target in taking.targets)


@pytest.mark.parametrize("count", range(MOST_REDIRECTS + 3))
async def test_five_redirects_are_followed_and_no_more(tmp_path: Path, count: int) -> None:
    warc = Warc()
    names = ["robots.txt", *(f"r{number}.txt" for number in range(count))]
    for name, following in pairwise(names):
        warc.redirect(f"http://a.example/{name}", following)
    taking, ended = await sent_from(tmp_path, warc.add(f"http://a.example/{names[-1]}"))
    assert len(taking.sent) == (count <= MOST_REDIRECTS)
    assert ended.code == (count > MOST_REDIRECTS)


@pytest.mark.parametrize(
    "warc",
    [
        Warc().redirect("http://a.example/robots.txt", "/elsewhere.txt"),
        Warc().redirect("http://a.example/robots.txt", "/robots.txt"),
        Warc().redirect("http://a.example/robots.txt", "ftp://a.example/"),
        Warc().redirect("http://a.example/robots.txt", "http://[/"),
        Warc()
        .redirect("http://a.example/robots.txt", f"/{'t' * URL_LIMIT}")
        .add(f"http://a.example/{'t' * URL_LIMIT}"),
        Warc().add("http://a.example/robots.txt", b"", "302 Found"),
        Warc().redirect("http://a.example/robots.txt", "/t").add("http://a.example/t", date="2026-01-02T05:00:00Z"),
        Warc().redirect("http://a.example/robots.txt", "/t").add("http://a.example/t", date="2026-01-01T05:00:00Z"),
    ],
)
async def test_a_redirect_without_its_target_is_counted(tmp_path: Path, warc: Warc) -> None:
    taking, ended = await sent_from(tmp_path, warc)
    assert (ended.code, taking.sent) == (1, [])
    assert ended.err == "1 response for robots.txt: 1 redirected to what the files lack\n"


def test_redirects_that_wait_for_one_target_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warc_module, "MOST_WAITING", 3)
    warc, target = Warc(), "http://t.example/t"
    for number in range(5):
        warc.redirect(f"http://{number}.example/robots.txt", target)
    for number in range(5, 7):  # there is room again when the target has come
        warc.add(target).redirect(f"http://{number}.example/robots.txt", target)
    files = WarcFiles([warc.add(target).to(tmp_path / "a.warc.gz")])
    sent = [copy.url for copy in files.copies() if copy is not None]
    assert sent == [f"http://{number}.example/robots.txt" for number in (0, 1, 2, 5, 6)]
    assert files.counts["unfollowed"] == 2


@pytest.mark.parametrize(("size", "all_sent"), [(1000, True), (500_000, False)])
def test_bytes_that_are_sent_for_redirects_are_bounded(tmp_path: Path, size: int, all_sent: bool) -> None:
    count, target = 20_000, "http://t.example/robots.txt"
    warc = Warc(compressed=False)
    redirects = [Warc(compressed=False).redirect(f"http://{at}.example/robots.txt", target) for at in range(count)]
    warc.data = b"".join(it.data for it in redirects)
    files = WarcFiles([warc.add(target, b"#" * size).to(tmp_path / "a.warc.gz")])
    sent, urls = 0, []
    for copy in files.copies():
        if copy is not None:
            urls.append(copy.url)
            sent += len(copy.message["robots_base64"])
    assert target in urls  # it was asked for itself
    assert sent < REDIRECTED_BYTES + 2 * size * 4 / 3 + 100
    assert (len(urls) == count + 1) is all_sent
    assert files.counts["repeated"] == count + 1 - len(urls)


async def test_the_date_of_a_redirect_may_have_nanoseconds(tmp_path: Path) -> None:
    first = Warc().redirect("http://a.example/robots.txt", "/t", date="2026-01-02T03:04:05.123456789Z")
    second = Warc().add("http://a.example/t", date="2026-01-02T03:04:05.2Z")
    taking, ended = await sent_from(tmp_path, first, second)
    assert (ended.code, len(taking.sent)) == (0, 1)


@pytest.mark.parametrize(
    ("fields", "body", "sent", "headers"),
    [
        ([PLAIN, ("Server", "x"), ("ETag", '"1"')], RULES, RULES, [list(PLAIN)]),
        ([("Transfer-Encoding", "chunked")], b"5\r\nUser-\r\n3\r\nage\r\n0\r\n\r\n", b"User-age", []),
        ([("Transfer-Encoding", "chunked")], RULES, RULES, []),
        ([("Content-Encoding", "gzip")], RULES, RULES, []),
        (
            [("Content-Encoding", "gzip")],
            gzip.compress(RULES, mtime=0),
            gzip.compress(RULES, mtime=0),
            [["Content-Encoding", "gzip"]],
        ),
        ([PLAIN], b"a" * 600_000, b"a" * 512_001, [list(PLAIN)]),
        ([("Cache-Control", "a"), ("cache-control", "b")], b"", b"", [["Cache-Control", "a"], ["cache-control", "b"]]),
    ],
)
async def test_the_body_is_sent_as_received(
    tmp_path: Path, fields: list[tuple[str, str]], body: bytes, sent: bytes, headers: list[list[str]]
) -> None:
    taking, _ = await sent_from(tmp_path, Warc().add("http://a.example/robots.txt", body, "200 OK", *fields))
    [message] = taking.sent
    assert message["headers"] == headers
    assert base64.b64decode(message["robots_base64"]) == sent
    assert (message["status"], message["truncated"]) == (200, False)


async def test_a_record_that_was_cut_says_so(tmp_path: Path) -> None:
    taking, _ = await sent_from(tmp_path, Warc().add("http://a.example/robots.txt", WARC_Truncated="length"))
    assert taking.sent[0]["truncated"] is True


async def test_what_is_not_sent_is_counted(tmp_path: Path) -> None:
    warc = Warc()
    warc.add("http://a.example/robots.txt", b"", "304 Not Modified")
    warc.add("http://a.example/robots.txt", b"", kind="revisit")
    warc.add("http://a.example/robots.txt", RULES, "OK")
    for url in (
        "dns:a.example",
        "http://a.example/robots.txt?",
        "http://a.example/robots.txt?a",
        "http://[/robots.txt",
    ):
        warc.add(url)
    warc.add("http://a.example/robots.txt", b"", kind="request")
    taking, ended = await sent_from(tmp_path, warc)
    assert ended.code == 1
    assert ended.err.splitlines()[-1].startswith("4 responses for robots.txt: 1 in use, 1 without a status, ")
    assert ended.err.endswith(", 2 not modified, without a copy\n")
    assert len(taking.sent) == 1


async def test_what_the_service_refuses_is_named(service_url: str, tmp_path: Path) -> None:
    coding = ("Content-Encoding", "compress")
    warc = Warc().add("http://a.example/robots.txt", b"\1", "200 OK", coding).add("http://b.example/robots.txt")
    path = warc.to(tmp_path / "crawl.warc.gz")
    ended = await ingest(service_url, path)
    refused, summary = ended.err.splitlines()
    assert refused.startswith(f"{path}, record 1: http://a.example/robots.txt: 422: ")
    assert "content coding compress" in refused
    assert (ended.code, summary.partition(": ")[2]) == (1, "1 earlier than what the service knows, 1 refused")


@pytest.mark.parametrize("key", ["", "no-operator"])
async def test_without_the_scope_it_ends(service_url: str, tmp_path: Path, key: str) -> None:
    ended = await ingest(service_url, Warc().add("http://a.example/robots.txt").to(tmp_path / "a.warc.gz"), key=key)
    assert ended.code == 3
    assert " answers 401: " in ended.err
    assert ended.err.endswith("Set ROBOTS_API_KEY to an API key of the service.\n")
    assert ended.err.endswith(".\n")
    assert not ended.err.endswith("..\n")


async def test_a_service_that_is_down_is_named(tmp_path: Path) -> None:
    path = Warc().add("http://a.example/robots.txt").to(tmp_path / "a.warc.gz")
    ended = await ingest("http://127.0.0.1:1", path)
    assert (ended.code, ended.err.count("cannot be reached")) == (3, 1)


async def test_a_busy_service_is_asked_again(tmp_path: Path) -> None:
    busy = text(503, json.dumps({"detail": "Busy."}), {"Retry-After": "0"})
    taking = Taking(busy, busy, text(429, "", {"Retry-After": "0"}))
    path = Warc().add("http://a.example/robots.txt").to(tmp_path / "a.warc.gz")
    async with serve(taking) as server:
        ended = await ingest(server.url, path)
    assert (ended.code, len(taking.sent)) == (0, 1)


async def test_another_server_at_the_url_is_noticed(tmp_path: Path) -> None:
    path = Warc().add("http://a.example/robots.txt").to(tmp_path / "a.warc.gz")
    async with serve(Taking(text(200, "{}"))) as server:
        ended = await ingest(server.url, path)
    assert (ended.code, "Set --server to the URL of a robots.txt decision service" in ended.err) == (3, True)


async def test_without_the_library_it_names_the_extra(tmp_path: Path) -> None:
    (tmp_path / "warcio.py").write_text("raise ModuleNotFoundError('absent', name='warcio')\n")
    async with command("ingest", "a.warc", PYTHONPATH=f"{tmp_path}:{SOURCES}") as running:
        ended = await running.ended()
    assert (ended.code, ended.err) == (
        3,
        "robots-decisions ingest needs warcio: install robots-decisions[cli,warc].\n",
    )


async def test_ctrl_c_ends_with_a_summary(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def silent(exchange: Exchange) -> None:
        asked.set()
        await exchange.stall()

    path = Warc().add("http://a.example/robots.txt").to(tmp_path / "a.warc.gz")
    async with (
        serve(Taking(silent)) as server,
        command("ingest", path, "--server", server.url, ROBOTS_API_KEY=KEY) as running,
    ):
        await asked.wait()
        running.interrupt()
        ended = await running.ended()
    assert (ended.code, ended.err) == (130, "0 responses for robots.txt\n")


async def test_files_that_cannot_be_read_end_it_after_what_was_read(tmp_path: Path) -> None:
    whole = Warc(compressed=False).add("http://a.example/robots.txt").add("http://b.example/robots.txt").data
    cut, other = tmp_path / "cut.warc", tmp_path / "other.warc"
    cut.write_bytes(whole[:-20])
    other.write_bytes(b"GIF89a")
    for path, sent in ((cut, 2), (other, 0), (tmp_path / "absent.warc", 0)):
        taking = Taking()
        async with serve(taking) as server:
            ended = await ingest(server.url, str(path))
        assert ended.code == 3, path
        assert f"Cannot read {path}: " in ended.err
        assert len(taking.sent) <= sent
        assert (len(taking.sent) > 0) == (sent > 0)


@pytest.mark.parametrize("lines", [1, 1000])
@pytest.mark.parametrize("of_response", [False, True])
def test_headers_without_end_are_not_read_to_it(tmp_path: Path, lines: int, of_response: bool) -> None:
    fields = [(f"X-{number}", "x" * (2 * HEADER_BYTES // lines)) for number in range(lines)]
    warc = Warc().add("http://a.example/robots.txt")
    found: list[Copy | None] = []
    warc.add(
        "http://b.example/", RULES, "200 OK", *(fields if of_response else []), **({} if of_response else dict(fields))
    )
    path = warc.add("http://c.example/robots.txt").to(tmp_path / "a.warc.gz")
    with pytest.raises(Failed, match=f"a header is longer than {HEADER_BYTES} bytes. It was read up to record 1"):
        found.extend(WarcFiles([path]).copies())
    assert [copy.url for copy in found if copy is not None] == ["http://a.example/robots.txt"]


def test_no_damage_makes_it_fail_unexpectedly(tmp_path: Path) -> None:
    """Whatever the bytes, the error is one that names the file."""
    chance, path, failures = random.Random(32), tmp_path / "a.warc", []
    chunked = ("Transfer-Encoding", "chunked")
    for number in range(1000):
        warc = Warc(compressed=number % 4 == 0).add("http://a.example/robots.txt")
        warc.redirect("http://b.example/robots.txt", "/x").add("http://b.example/x")
        damaged = bytearray(warc.add("http://c.example/robots.txt", b"5\r\nUser-\r\n0\r\n\r\n", "200 OK", chunked).data)
        for _ in range(chance.randrange(1, 6)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        if number % 3 == 0:
            del damaged[chance.randrange(len(damaged)) :]
        path.write_bytes(damaged)
        try:
            found = [copy for copy in WarcFiles([str(path)]).copies() if copy is not None]
        except Failed as error:
            failures.append(str(error))
        else:
            assert all(len(copy.message["robots_base64"]) < 4_000_000 for copy in found)
    assert len(failures) > 100
    assert [error for error in failures if not error.startswith(f"Cannot read {path}: ")] == []
