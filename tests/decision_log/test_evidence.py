"""A decision log and an archive prove a year later what was decided: no line can be changed, dropped or moved."""

import asyncio
import gzip
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from hashlib import sha256
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from redis.asyncio import Redis

from app.cache.freshness import Snapshot
from app.decision_log import chain as chain_module
from app.decision_log import log as decision_log
from app.decision_log.chain import CHECKPOINT_EVERY, Chain
from app.decision_log.line import LineWriter
from app.decision_log.log import DecisionLog
from app.decision_log.signing import is_signed
from app.decision_log.sinks import FileSink, SinkFailed
from app.decision_log.verify import LogVerifier
from app.history.archive.archive import Archive
from app.history.archive.folder import Folder
from app.history.archive.span import span_of
from app.main.settings import BadSetting, Settings
from robots_core.origin import Origin
from robots_core.robots.access import Successful
from tests.api.service import START, running
from tests.cli.command import run
from tests.faults.until import until_so
from tests.forked import ROOT
from tests.origins import redirect, serve, text

DAY = 86_400

FILE = """User-agent: ExampleBot
Disallow: /private
Crawl-delay: 1

User-agent: Googlebot
User-agent: é
Disallow: /*.gif$

User-agent: *
Content-Signal: ai-train=no
Disallow: /all
"""

AGENTS = ["ExampleBot", "Googlebot-Image", "SeznamBot", "other/1.0", "*", "AdsBot-Google", "bingbot"]
PATHS = ["/", "/private/a", "/x.gif", "/x.gif?b", "/all", "/robots.txt", "/%C3%A9?q=%2F"]


def key_file(path: Path) -> Ed25519PrivateKey:
    key = Ed25519PrivateKey.generate()
    path.touch(0o600)
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    path.with_suffix(".pub").write_bytes(public)
    return key


def faults(folder: Path, *logs: Sequence[bytes], **options: Any) -> list[str]:
    verifier = LogVerifier(Archive(Folder(folder)), **options)
    found = [fault.fault for number, log in enumerate(logs) for fault in verifier.verify(str(number), log)]
    return [*found, *(fault.fault for fault in verifier.end())]


async def test_a_log_is_decided_again_without_service_and_store(
    store_url: str, store_client: Redis, tmp_path: Path
) -> None:
    log, folder = tmp_path / "decisions.ndjson", tmp_path / "archive"
    folder.mkdir()
    key_file(tmp_path / "key.pem")
    agents = tmp_path / "agents.toml"
    agents.write_text(
        '[profiles.own]\nuser_agent = "OwnBot/1.0 (+https://own.example)"\n'
        '[agents.OwnBot]\nchain = ["ExampleBot"]\nprofile = "own"\n'
    )
    settings: dict[str, Any] = {
        "decision_log": str(log),
        "decision_log_key_file": tmp_path / "key.pem",
        "archive": folder,
        "agents_file": agents,
        "on_forbidden": "deny",
        "purposes": ("ai-train",),
        "enforce_purposes": True,
    }
    asked = 0
    async with (
        serve(text(200, FILE), text(200, FILE), text(200, FILE.replace("/private", "/public"))) as good,
        serve(text(404)) as missing,
        serve(text(403)) as forbidden,
        serve(text(503)) as down,
        serve(redirect("/robots.txt")) as loop,
        serve(text(200, FILE + "Disallow: /\n" + "# x\n" * 200_000)) as long,
    ):
        sites = (good, missing, forbidden, down, loop, long)
        async with running(store_url, **settings) as service:
            body = {"scope": "127.0.0.1", "action": "deny", "agents": ["bingbot"], "reason": "They asked."}
            assert (await service.client.put("/v1/overrides/asked", json=body)).status_code == 201
            body |= {"action": "allow", "agents": ["other"], "reason": "They agreed."}
            assert (await service.client.put("/v1/overrides/agreed", json=body)).status_code == 201
            for day in range(2):
                service.now = START + day * 3 * DAY
                for site in sites:
                    items = [
                        {"url": site.url + path, "agent": agent, "dialect": dialect}
                        for path in PATHS
                        for agent in [*AGENTS, "OwnBot", ["nobody", "Googlebot"]]
                        for dialect in ("rfc9309", "google", "seznam", "draft1996")
                    ]
                    asked += len(items)
                    response = await service.client.post("/v1/allowed", json={"items": items})
                    assert not [it["problem"] for it in response.json()["answers"] if "problem" in it]
                if not day:
                    await until_so(log.exists)  # it is written in the background
                    log.rename(tmp_path / "decisions.ndjson.1")
    await store_client.flushall()
    lines = [*(tmp_path / "decisions.ndjson.1").read_bytes().splitlines(), *log.read_bytes().splitlines()]
    reasons = {json.loads(line).get("reason") for line in lines}
    assert {"rule", "no_match", "no_group", "usage", "overridden", "implicit", "forbidden", "unreachable"} <= reasons
    assert faults(folder, lines) == []
    (tmp_path / "decisions.ndjson.1.gz").write_bytes(gzip.compress((tmp_path / "decisions.ndjson.1").read_bytes()))
    logs = (str(tmp_path / "decisions.ndjson.1.gz"), str(log))
    options = ("--archive", str(folder), "--public-key", str(tmp_path / "key.pub"))
    ended = await run("audit", "--verify", *logs, *options)
    assert (ended.code, ended.out) == (0, ""), ended.out[:2000]
    assert f"{asked} decided again, 2 signed checkpoints: no faults" in ended.err
    # The newest file alone begins in the middle.
    assert (await run("audit", "--verify", str(log), *options)).code == 1
    assert (await run("audit", "--verify", str(log), *options, "--partial")).code == 0
    # A verdict that was forged when the line was written is no break of the chain.
    assert [fault for fault in faults(folder, relinked(forged(lines))) if "otherwise" not in fault] == []
    assert len(faults(folder, relinked(forged(lines)))) == 1
    # A text that was forged in the archive is none.
    for path in folder.glob("objects/*/*"):
        path.write_bytes(path.read_bytes() + b"#")
    assert "the archive has no version" in faults(folder, lines)[0]


def forged(lines: Sequence[bytes]) -> list[bytes]:
    at = next(number for number, line in enumerate(lines) if b'"reason":"rule"' in line)
    return [*lines[:at], lines[at].replace(b'"verdict":"disallow"', b'"verdict":"allow"'), *lines[at + 1 :]]


def relinked(lines: Sequence[bytes]) -> list[bytes]:
    """The lines of one process with their links made anew, as who forges them would."""
    made: list[bytes] = []
    for number, line in enumerate(lines, 1):
        previous = sha256(made[-1]).hexdigest() if made else ""
        head = line[: line.rindex(b',"number":')]
        made.append(head + b',"number":%d,"previous":"%s"}' % (number, previous.encode()))
    return made


def chained(count: int, key: Ed25519PrivateKey | None = None, process: str = "p") -> list[bytes]:
    """Lines that decide nothing but are whole, and the end."""
    chain = Chain(process, lambda: START, None if key is None else key.sign)
    page = '"agent":"a","dialect":"rfc9309","verdict":"defer","reason":"pending","line":null,"rule":null,"version":null'
    lines = [b'{"url":"http://h/%d",%s}' % (number, page.encode()) for number in range(count)]
    half = count // 2
    marks = [] if key is None else [chain.mark("checkpoint")]
    return [*marks, *chain.link(lines[:half]), *chain.link(lines[half:]), chain.mark("end")]


MUTATIONS: dict[str, Callable[[list[bytes], int], list[bytes]]] = {
    "changed": lambda lines, at: (
        [*lines[:at], lines[at].replace(b'"time":', b'"Time":', 1), *lines[at + 1 :]]
        if b'"time":' in lines[at]
        else [*lines[:at], lines[at].replace(b"http://h/", b"http://i/"), *lines[at + 1 :]]
    ),
    "dropped": lambda lines, at: [*lines[:at], *lines[at + 1 :]],
    "moved": lambda lines, at: [*lines[:at], *lines[at + 1 : at + 2], lines[at], *lines[at + 2 :]],
    "repeated": lambda lines, at: [*lines[: at + 1], lines[at], *lines[at + 1 :]],
    "torn": lambda lines, at: [*lines[:at], lines[at][:-7], *lines[at + 1 :]],
    "rid of its link": lambda lines, at: [
        *lines[:at],
        lines[at][: lines[at].index(b',"process"')] + b"}",
        *lines[at + 1 :],
    ],
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_every_line_that_is_tampered_with_is_found(tmp_path: Path, mutation: str) -> None:
    lines, other = chained(40), chained(3, process="other")
    mixed = [line for number, line in enumerate(lines) for line in (*other[number : number + 1], line)]
    assert faults(tmp_path, mixed) == []
    last = len(lines) - 1
    for at in range(len(lines)):
        tampered = MUTATIONS[mutation](lines, at)
        if (mutation, at) == ("changed", last):
            continue  # no line follows the end: a signature shows it
        if tampered == lines:
            continue
        assert faults(tmp_path, other, tampered), at
        for cut in {1, at, at + 1, len(tampered) - 1}:  # where the log was rotated
            assert faults(tmp_path, other, tampered[:cut], tampered[cut:]), (at, cut)


VALUES: list[Any] = [
    None,
    True,
    5,
    -1,
    1e400,
    "",
    "x",
    "\ud800",
    "https://[",
    [],
    [5],
    {},
    {"names": 5, "chain": [[]], "star": 1},
]

DECIDED = {
    "url": "https://www.example.com/a",
    "agent": "ExampleBot",
    "dialect": "rfc9309",
    "verdict": "disallow",
    "reason": "rule",
    "line": 2,
    "rule": "disallow: /a",
    "profile": None,
    "reads_as": {"names": ["examplebot"], "chain": ["examplebot"], "star": True},
    "enforced": ["ai-train"],
    "on_forbidden": "deny",
    "action": None,
    "override": None,
}


@pytest.mark.parametrize("value", VALUES, ids=ascii)
def test_a_line_with_any_value_is_a_fault_and_no_error(tmp_path: Path, value: Any) -> None:
    archive = Archive(Folder(tmp_path))
    site = Origin("https", "www.example.com", 443)
    span, body = span_of(site, Snapshot(Successful(200, b"User-agent: *\nDisallow: /a\n"), START))
    archive.write([(span, body)], "p", "2026-09-21")
    whole = {**DECIDED, "version": span.id, "digest": span.digest[:32]}
    assert faults(tmp_path, linked(whole)) == []
    reads_as = whole["reads_as"]
    assert isinstance(reads_as, dict)
    for reason in ("rule", "overridden", "pending"):
        for name in whole:
            members = {**whole, "reason": reason, name: value}
            faults(tmp_path, linked(members))
            faults(tmp_path, linked({**members, "version": None}))
            faults(tmp_path, linked({**members, "reads_as": None}))
            assert value == whole[name] or name not in JUDGED or faults(tmp_path, linked({**whole, name: value})), name
    for name in reads_as:
        faults(tmp_path, linked({**whole, "reads_as": {**reads_as, name: value}}))


JUDGED = {"url", "dialect", "verdict", "reason", "line", "rule", "version"}
"""Members that a verdict rests on, or is. With `reads_as`, the agent's name is not read."""


def linked(members: dict[str, Any]) -> list[bytes]:
    chain = Chain("p", lambda: START)
    return [*chain.link([json.dumps(members).encode()]), chain.mark("end")]


@pytest.mark.parametrize("at", range(10, 200, 9))
async def test_a_damaged_compressed_log_is_named(tmp_path: Path, at: int) -> None:
    log = tmp_path / "log.gz"
    data = bytearray(gzip.compress(b"\n".join(chained(40)) + b"\n"))
    data[at] ^= 0xFF
    log.write_bytes(data)
    ended = await run("audit", "--verify", str(log), "--archive", str(tmp_path))
    assert ended.code == 3, ended.err
    assert str(log) in ended.err


def test_every_file_of_a_rotated_log_that_is_missing_or_moved_is_found(tmp_path: Path) -> None:
    lines = chained(40)
    for first in range(1, len(lines) - 1):
        for second in range(first + 1, len(lines)):
            files = lines[:first], lines[first:second], lines[second:]
            assert faults(tmp_path, *files) == []
            wrong = [files[:at] + files[at + 1 :] for at in range(3)]
            wrong += [it for it in permutations(files) if it != files]
            wrong += [(*files, files[at]) for at in range(3)]
            assert all(faults(tmp_path, *it) for it in wrong), (first, second)


def test_a_log_that_is_made_anew_lacks_the_signature(tmp_path: Path) -> None:
    key, other = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    lines = chained(9, key)

    def signed(text: bytes, signature: bytes) -> bool:
        return is_signed(key.public_key(), text, signature)

    assert faults(tmp_path, lines, is_signed=signed) == []
    for tampered in (
        chained(9),
        chained(9, other),
        [line.replace(b'"lost":0', b'"lost":1') for line in lines],
        [*lines[:-1], lines[-1][:-2] + b'="}'],
        [*lines[:-1], lines[-1].replace(b'"signature"', b'"Signature"')],
    ):
        assert "its signature is missing or wrong" in faults(tmp_path, tampered, is_signed=signed)
    # Nor can the marks be left out, however little of the log is given.
    unsigned = [line for line in chained(9) if b'"mark"' not in line]
    for tampered in (unsigned, unsigned[:1], unsigned[4:]):
        [fault] = faults(tmp_path, tampered, is_signed=signed, partial=True)
        assert "nothing is signed of process p" in fault
    verifier = LogVerifier(Archive(Folder(tmp_path)), signed, partial=True)
    assert [*verifier.verify("log", lines[:4]), *verifier.end()] == []
    assert verifier.counts == {"lines": 4, "decided": 3, "marks": 1, "signed": 1, "unsigned": 3}


async def write_log(path: Path, key: Ed25519PrivateKey, *names: str) -> None:
    """Let processes of these names write to one log at the same time, three lines each."""
    async with AsyncExitStack() as stack:
        logs = []
        for name in names:
            chain = Chain(name, lambda: START, key.sign)
            log = DecisionLog(FileSink(path), Noted("whole"), 1.0, lambda _lost: None, chain)
            await stack.enter_async_context(log.writing())
            logs.append(log)
        for _ in range(3):
            for log in logs:
                log.note(chained(1)[0].partition(b',"process"')[0] + b"}")  # type: ignore[arg-type]
                await log._write_all()


async def test_a_process_whose_lines_are_all_removed_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decision_log, "WRITE_EVERY", 3600)
    key, path = Ed25519PrivateKey.generate(), tmp_path / "log"
    for names in (["a"], ["b", "c"], ["d"]):
        await write_log(path, key, *names)
    lines = path.read_bytes().splitlines()

    def signed(text: bytes, signature: bytes) -> bool:
        return is_signed(key.public_key(), text, signature)

    assert faults(tmp_path, lines, is_signed=signed) == []
    for removed in ({"a"}, {"b"}, {"c"}, {"a", "b"}, {"b", "c"}):
        rest = [line for line in lines if json.loads(line)["process"] not in removed]
        found = faults(tmp_path, rest, is_signed=signed)
        assert {name for name in "abcd" if any(f"of process {name} are missing" in it for it in found)} == removed
    # A log that goes on from files that are not given says nothing of their processes.
    own = [line for line in lines if json.loads(line)["process"] == "d"]
    assert faults(tmp_path, own, is_signed=signed, partial=True) == []
    # Nor can the lines of one be cut off at its end.
    cut = [line for line in lines if json.loads(line)["process"] != "b" or json.loads(line)["number"] < 3]
    assert faults(tmp_path, cut, is_signed=signed)


@pytest.mark.parametrize("partial", [False, True])
async def test_a_signed_log_without_lines_is_a_fault(tmp_path: Path, partial: bool) -> None:
    key_file(tmp_path / "key.pem")
    log = tmp_path / "decisions.ndjson"
    log.touch()
    arguments = ["audit", "--verify", str(log), "--archive", str(tmp_path), *(["--partial"] if partial else [])]
    ended = await run(*arguments, "--public-key", str(tmp_path / "key.pub"))
    assert (ended.code, ended.out) == (1, f"{log}: nothing is signed: there are no lines\n")
    assert (await run(*arguments)).code == 0


@pytest.mark.parametrize("mode", [0o644, 0o666, 0o640 | 0o020, 0o604])
def test_a_key_that_others_may_read_or_change_stops_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    key_file(tmp_path / "key.pem")
    monkeypatch.setenv("DECISION_LOG_KEY_FILE", str(tmp_path / "key.pem"))
    Settings.read()
    (tmp_path / "key.pem").chmod(mode)
    with pytest.raises(BadSetting, match=r"^DECISION_LOG_KEY_FILE=.* other users may read or change it"):
        Settings.read()


def test_a_version_is_found_by_128_bits_of_its_digest(tmp_path: Path) -> None:
    """Two files whose ids are the same, which takes 2^32 hashes, are two files."""
    archive = Archive(Folder(tmp_path))
    site = Origin("https", "www.example.com", 443)
    span, body = span_of(site, Snapshot(Successful(200, b"User-agent: *\nDisallow: /a\n"), START))
    archive.write([(span, body)], "p", "2026-09-21")
    other = span.id + "0" * 16
    assert faults(tmp_path, linked({**DECIDED, "version": span.id, "digest": span.digest[:32]})) == []
    [fault] = faults(tmp_path, linked({**DECIDED, "version": span.id, "digest": other}))
    assert f"the archive has no version {other}" in fault
    [fault] = faults(tmp_path, linked({**DECIDED, "version": span.id, "digest": "0" * 32}))
    assert "the line was changed" in fault
    for name in ("../../../x", "?" * 16, ""):
        assert faults(tmp_path, linked({**DECIDED, "version": name}))


class Unreliable(FileSink):
    """A file that takes only the first lines of every second write."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.writes = 0

    async def write(self, lines: Sequence[bytes]) -> None:
        self.writes += 1
        kept = lines[: len(lines) // 3] if self.writes % 2 else lines
        await super().write(kept)
        if len(kept) < len(lines):
            raise SinkFailed("full", len(lines) - len(kept))


class Noted(LineWriter):
    def write(self, decision: Any, request_id: str | None, key: str | None) -> bytes:
        return bytes(decision)


async def test_lines_that_are_lost_break_no_chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision_log, "WRITE_EVERY", 0.0)
    monkeypatch.setattr(chain_module, "CHECKPOINT_EVERY", 0.0)
    key, lost = Ed25519PrivateKey.generate(), list[int]()
    sink = Unreliable(tmp_path / "log")
    chain = Chain("p", lambda: START, key.sign)
    log = DecisionLog(sink, Noted("whole"), 1.0, lost.append, chain)
    async with log.writing():
        for block in range(4):
            for line in chained(30)[block : block + 25]:
                log.note(line[: line.index(b',"process"')] + b"}")  # type: ignore[arg-type]
            writes = sink.writes
            while sink.writes < writes + 2:
                await log._write_all()
    lines = (tmp_path / "log").read_bytes().splitlines()
    assert faults(tmp_path, lines, partial=True) == []
    assert sum(lost) > 0
    marks = [members for members in map(json.loads, lines) if "mark" in members]
    assert marks[-1]["lost"] >= sum(lost) > 0


class WithoutThreads(FileSink):
    """A file that cannot be written to while the process may start no more threads."""

    def __init__(self, path: Path, failing: str) -> None:
        super().__init__(path)
        self.failing = failing.encode()
        self.failures = 0

    async def write(self, lines: Sequence[bytes]) -> None:
        if self.failing in lines[0]:
            self.failures += 1
            raise RuntimeError("can't start new thread")
        await super().write(lines)


@pytest.mark.parametrize("failing", ["checkpoint", '"end"'])
async def test_a_mark_that_fails_unexpectedly_breaks_no_chain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    monkeypatch.setattr(chain_module, "CHECKPOINT_EVERY", 0.0)
    monkeypatch.setattr(decision_log, "WRITE_EVERY", 3600)
    chain = Chain("p", lambda: START, Ed25519PrivateKey.generate().sign)
    sink = WithoutThreads(tmp_path / "log", failing)
    log = DecisionLog(sink, Noted("whole"), 1.0, lambda _lost: None, chain)
    async with log.writing():
        for line in chained(9):
            log.note(line[: line.index(b',"process"')] + b"}")  # type: ignore[arg-type]
            await log._write_all()
    assert sink.failures
    assert faults(tmp_path, (tmp_path / "log").read_bytes().splitlines(), partial=True) == []


@pytest.mark.parametrize("command", ["audit", "archive"])
async def test_output_that_is_read_no_further_is_no_fault_of_the_archive(tmp_path: Path, command: str) -> None:
    """As of `| head -1`."""
    log = tmp_path / "spans" / "log.ndjson"
    log.parent.mkdir()
    log.write_bytes(b"garbage\n" * 10_000)
    audit = ("audit", "--verify", str(log), "--archive", str(tmp_path))
    arguments = audit if command == "audit" else ("archive", "verify", str(tmp_path))
    reader, writer = os.pipe()
    os.close(reader)
    ended = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "app", *arguments, cwd=ROOT, stdout=writer, stderr=asyncio.subprocess.PIPE
    )
    os.close(writer)
    assert (await ended.communicate())[1] == b""
    assert ended.returncode == 3


@pytest.mark.parametrize("following", [0, 1, 2])
def test_a_checkpoint_that_is_lost_is_made_again(following: int) -> None:
    key, now = Ed25519PrivateKey.generate(), [START]
    chain = Chain("p", lambda: now[0], key.sign)
    lines = chain.link([json.dumps(DECIDED).encode()])
    now[0] += CHECKPOINT_EVERY
    chain.unlink([chain.mark("checkpoint")], 0)
    lines += chain.link([json.dumps(DECIDED).encode()] * following)
    assert not chain.checkpoint_is_due
    now[0] += CHECKPOINT_EVERY
    assert chain.checkpoint_is_due
    mark = chain.mark("checkpoint")
    assert json.loads(mark)["number"] == len(lines) + 1
    now[0] += CHECKPOINT_EVERY
    assert not chain.checkpoint_is_due


@pytest.mark.parametrize("content", [None, b"", b"-----BEGIN PRIVATE KEY-----\n", b'{"kty": "RSA"}'])
def test_a_key_that_cannot_be_used_stops_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    path = tmp_path / "key.pem"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setenv("DECISION_LOG_KEY_FILE", str(path))
    with pytest.raises(BadSetting, match=r"^DECISION_LOG_KEY_FILE=.* is invalid: "):
        Settings.read()
