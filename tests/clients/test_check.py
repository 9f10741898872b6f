"""`robots-decisions check`: a row for every line of a list, decided by a running service."""

import asyncio
import csv
import gzip
import hashlib
import json
import os
import pty
import shlex
import signal
import termios
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from robots_decisions.cli.batches import BATCH_LINES
from robots_decisions.cli.entries import URL_LIMIT

from tests.clients.commands import WORDS, command, run
from tests.clients.crawling import ROOT, environment
from tests.clients.site import Site, new_address
from tests.faults.until import until_so
from tests.origins import Gate, http_only, serve, text

ROBOTS = "User-agent: *\nDisallow: /private/\nCrawl-delay: 7\n"
AGENT = ("--agent", "ExampleBot")


async def test_every_line_has_a_row_whatever_the_order(service_url: str, tmp_path: Path) -> None:
    listed = tmp_path / "list"
    async with (
        serve(Site(ROBOTS), host=new_address()) as one,
        serve(Site(ROBOTS), host=new_address()) as two,
        serve(text(503), host=new_address()) as failing,
    ):
        urls = [f"{origin.url}/{name}" for name in ("private/1", "2", "3") for origin in (one, two, failing)]
        lines = ["\ufeff# pages", "", *urls, "gopher://h/", "x" * (URL_LIMIT + 1), f"  {one.url}/last  "]
        listed.write_text("\n".join(lines))
        ended = await run("check", str(listed), *AGENT, "--server", service_url)
        private = [row for row in ended.rows() if row["verdict"] == "disallow"]
    rows = {row["line"]: row for row in ended.rows()}
    assert sorted(rows) == list(range(3, 15))
    assert len(ended.rows()) == len(rows)
    assert [rows[number]["url"] for number in range(3, 12)] == urls
    assert [rows[n]["verdict"] for n in range(3, 15)] == [
        *2 * ["disallow"],
        "defer",
        *2 * [*2 * ["allow"], "defer"],
        None,
        None,
        "allow",
    ]
    version = hashlib.sha256(ROBOTS.encode()).hexdigest()[:16]
    assert private[0] == {
        "line": 3, "url": urls[0], "agent": "ExampleBot", "verdict": "disallow", "reason": "rule",
        "rule": "disallow: /private/", "rule_line": 2, "version": version, "interval": 7.0,
        "retry_at": None, "detail": None,
    }  # fmt: skip
    assert rows[5]["retry_at"] is not None
    assert [rows[n]["reason"] for n in (12, 13)] == ["unreadable", "unreadable"]
    *named, summary = ended.err.splitlines()
    assert sorted(line.partition(": ")[0] for line in named) == ["line 12", "line 13"]
    assert "is longer than 16384 bytes." in ended.err
    counts = "5 allow (5 no_match), 3 defer (3 unreachable), 2 disallow (2 rule), 2 unreadable"
    assert summary == f"12 lines: {counts}"
    assert ended.code == 1


async def test_input_is_files_gzip_standard_input_and_urls(service_url: str, tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain", tmp_path / "packed.gz"
    async with serve(Site(ROBOTS), host=new_address()) as origin:
        plain.write_text(f"{origin.url}/1\n{origin.url}/private/2\n")
        packed.write_bytes(gzip.compress(f"\n{origin.url}/3\n".encode()))
        inputs = (str(plain), str(packed), "-", f"{origin.url}/5\n{origin.url}/6")
        given = gzip.compress(f"{origin.url}/4".encode())
        ended = await run("check", *inputs, *AGENT, "--server", service_url, "--only", "allow", given=given)
        urls = [f"{origin.url}/{number}" for number in (1, 3, 4, 5, 6)]
    found = sorted((row["url"], row["file"], row["line"]) for row in ended.rows())
    assert found == list(zip(urls, (*inputs, inputs[-1]), (1, 2, 1, 1, 2), strict=True))
    assert ended.err == "6 lines: 5 allow (5 no_match), 1 disallow (1 rule)\n"


async def test_csv_has_the_members_of_the_json_lines(service_url: str, tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    async with serve(Site('User-agent: *\nDisallow: /"a,b"\n'), host=new_address()) as origin:
        arguments = ("check", "-", *AGENT, "--server", service_url)
        given = f'{origin.url}/"a,b"\n{origin.url}/é\n'.encode()
        ended = await run(*arguments, "--format", "csv", "--output", str(output), given=given)
        as_json = await run(*arguments, given=given)
    assert (ended.code, ended.out) == (1, "")
    with output.open(newline="") as file:
        found = list(csv.DictReader(file))
    assert found == [
        {name: "" if value is None else str(value) for name, value in row.items()} for row in as_json.rows()
    ]


@pytest.mark.parametrize("begin", ["=", "+", "-", "@"])
async def test_csv_has_no_formulas(begin: str, service_url: str) -> None:
    listed = begin + 'HYPERLINK("http://x/")'
    arguments = ("check", "-", *AGENT, "--server", service_url)
    ended = await run(*arguments, "--format", "csv", given=listed.encode())
    as_json = await run(*arguments, given=listed.encode())
    [row] = csv.DictReader(ended.out.splitlines())
    assert (row["url"], row["reason"]) == (f"'{listed}", "unreadable")
    assert [row["url"] for row in as_json.rows()] == [listed]


async def test_purpose_dialect_and_fallback_are_asked_for(service_url: str) -> None:
    robots = "User-agent: SecondBot\nContent-Usage: train-ai=n\nDisallow: /*.pdf\n"
    async with serve(Site(robots), host=new_address()) as origin:
        arguments = ("check", f"{origin.url}/a.pdf", "--agent", "FirstBot", "--server", service_url)
        alone = await run(*arguments)
        second = await run(*arguments, "--fallback", "SecondBot")
        old = await run(*arguments, "--fallback", "SecondBot", "--dialect", "draft1996", "--purpose", "ai-train")
        wrong = await run(*arguments, "--dialect", "nothing")
    assert [ended.code for ended in (alone, second, old, wrong)] == [0, 1, 0, 3]
    assert "Unknown dialect 'nothing'" in wrong.err


async def test_pages_whose_sites_refuse_a_purpose_are_disallowed_if_asked(service_url: str) -> None:
    async with serve(Site("User-agent: *\nContent-Signal: ai-train=no\n"), host=new_address()) as origin:
        arguments = ("check", f"{origin.url}/a", *AGENT, "--purpose", "ai-train", "--server", service_url)
        reported, enforced = await run(*arguments), await run(*arguments, "--enforce")
    assert [ended.code for ended in (reported, enforced)] == [0, 1]
    assert [row["reason"] for row in enforced.rows()] == ["usage"]


async def test_bare_host_is_asked_about_by_https_then_http(service_url: str) -> None:
    async with serve(at_once=http_only(text(200, ROBOTS)), host=new_address()) as origin:
        host = origin.url.removeprefix("http://")
        ended = await run("check", "-", *AGENT, "--server", service_url, given=f"{host}/private/\n{host}\n".encode())
        origins = await run(
            "check", "-", "--origins-only", "--server", service_url, given=f"{host}/private/\n".encode()
        )
    assert (ended.code, [row["verdict"] for row in ended.rows()]) == (1, ["disallow", "allow"])
    assert [row["outcome"] for row in origins.rows()] == ["successful"]


async def test_dead_site_delays_only_itself(service_url: str, tmp_path: Path) -> None:
    output, listed = tmp_path / "out", tmp_path / "list"
    gate = Gate(text(200, ROBOTS))
    async with serve(gate, host="127.250.0.1") as slow, serve(Site(ROBOTS), host="127.250.0.2") as other:
        count = 6 * BATCH_LINES
        urls = [f"{origin.url}/{number}" for origin in (slow, other) for number in range(count)]
        listed.write_text("\n".join(urls))
        arguments = (
            "check",
            str(listed),
            *AGENT,
            "--server",
            service_url,
            "--output",
            str(output),
            "--concurrency",
            "2",
        )
        async with command(*arguments) as running:
            # The last batch of the slow site may have lines of the other, too.
            await until_so(lambda: output.exists() and output.read_bytes().count(b"\n") > count - BATCH_LINES)
            assert slow.url not in output.read_text()
            gate.open.set()
            ended = await running.ended()
    assert ended.code == 0
    assert sorted(json.loads(line)["line"] for line in output.read_text().splitlines()) == list(range(1, 2 * count + 1))


async def test_dead_sites_delay_no_line_of_their_batch(service_url: str, tmp_path: Path) -> None:
    output, state, listed = tmp_path / "out", tmp_path / "state", tmp_path / "list"
    async with AsyncExitStack() as stack:
        live = [(await stack.enter_async_context(serve(Site(ROBOTS), host=new_address()))).url for _ in range(4)]
        gates = [Gate(text(200, ROBOTS)) for _ in live]
        dead = [
            (await stack.enter_async_context(serve(gate, host=origin.split("/")[2].split(":")[0]))).url
            for gate, origin in zip(gates, live, strict=True)
        ]
        arguments = ("check", str(listed), *AGENT, "--server", service_url, "--output", str(output))
        listed.write_text("\n".join(live))
        assert (await run(*arguments)).code == 0
        # Sorted by site, those that answer and those that do not alternate in one batch.
        urls = [f"{origin}/{number}" for pair in zip(live, dead, strict=True) for origin in pair for number in range(5)]
        listed.write_text("\n".join(urls))
        resumable = (*arguments, "--state", str(state))
        async with command(*resumable) as running:
            await until_so(lambda: output.exists() and output.read_bytes().count(b"\n") >= 20)
            written = [json.loads(line)["url"] for line in output.read_text().splitlines()]
            assert sorted(written) == sorted(url for url in urls if url.rpartition("/")[0] in live)
            running.interrupt(signal.SIGKILL)
            await running.ended()
        for gate in gates:
            gate.open.set()
        ended = await run(*resumable)
    assert (ended.code, ended.err) == (0, "40 lines: 40 allow (40 no_match)\n")
    assert sorted(json.loads(line)["line"] for line in output.read_text().splitlines()) == list(range(1, 41))


async def test_each_origin_is_fetched_once(service_url: str) -> None:
    async with (
        serve(Site(ROBOTS), host=new_address()) as one,
        serve(text(404), host=new_address()) as two,
        serve(text(503), host=new_address()) as three,
    ):
        urls = [f"{origin.url}/{number}" for number in range(3) for origin in (one, two, three)]
        arguments = ("check", "-", "--origins-only", "--server", service_url)
        ended = await run(*arguments, given=("\n".join(urls) + "\nnonsense\n").encode())
        again = await run(*arguments, given=urls[0].encode())
    found = {row["origin"]: (row["line"], row["outcome"], row["status"]) for row in ended.rows()}
    assert found == {
        one.url: (1, "successful", 200), two.url: (2, "unavailable", 404), three.url: (3, "unreachable", 503),
        None: (10, None, None),
    }  # fmt: skip
    assert ended.err.endswith("4 origins: 1 successful, 1 unavailable, 1 unreachable, 1 unreadable\n")
    assert (ended.code, again.code) == (3, 0)
    assert [len(origin.requests) for origin in (one, two)] == [1, 1]


async def test_progress_is_shown_on_a_terminal_alone(service_url: str, tmp_path: Path) -> None:
    async with serve(Site(ROBOTS), host=new_address()) as origin:
        arguments = ("check", f"{origin.url}/", *AGENT, "--server", service_url, "--output", str(tmp_path / "out"))
        assert (await run(*arguments)).err == "1 line: 1 allow (1 no_match)\n"
        reads, writes = pty.openpty()
        termios.tcsetwinsize(writes, (24, 80))
        process = await asyncio.create_subprocess_exec(*WORDS, *arguments, cwd=ROOT, env=environment(), stderr=writes)
        await process.wait()
        os.close(writes)
        shown = os.read(reads, 10_000).decode()
        os.close(reads)
    assert "0/1 [" in shown
    assert "lines/s" in shown


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), "the following arguments are required: FILE"),
        (("-",), "--agent is missing"),
        (("/nowhere", *AGENT), "Cannot read /nowhere: No such file or directory."),
        (("/", *AGENT), "Cannot read /: "),
        (("-", "--agent", ""), "argument --agent: '' is not a name"),
        (("-", *AGENT, "--fallback", " "), "argument --fallback: ' ' is not a name"),
        (("-", *AGENT, "--dialect", ""), "argument --dialect: '' is not a name"),
        (("-", *AGENT, "--concurrency", "33"), "'33' is not a number from 1 to 32"),
        (("-", *AGENT, "--concurrency", "many"), "'many' is not a number from 1 to 32"),
        (("-", *AGENT, "--server", "nowhere"), "nowhere"),
        (("-", *AGENT, "--output", "/nowhere/out"), "Cannot write /nowhere/out: "),
        (("/nowhere/a", *AGENT, "--output", "/nowhere/b/../a"), "--output: /nowhere/b/../a is also an input."),
        (("-", *AGENT, "--output", "/nowhere/a", "--state", "/nowhere/a"), "--state: /nowhere/a is also --output."),
        (("-", *AGENT, "--format", "parquet"), "--format parquet needs "),
        (("-", "--log", "--origins-only"), "exclude each other"),
        (("-", "--log", "--origin", "example.com"), "--origin: "),
        (("-", "--log", "--tolerance", "-1"), "'-1' is not a number of seconds"),
    ],
)
async def test_bad_arguments_exit_with_3_and_an_error(arguments: tuple[str, ...], error: str) -> None:
    ended = await run("check", *arguments)
    assert (ended.code, ended.out) == (3, "")
    assert error in ended.err
    assert "Traceback" not in ended.err


async def test_a_device_may_be_input_and_output() -> None:
    ended = await run("check", "/dev/null", *AGENT, "--output", "/dev/null", "--format", "csv")
    assert (ended.code, ended.err) == (0, "0 lines\n")


async def test_damaged_gzip_ends_the_command(tmp_path: Path) -> None:
    damaged = tmp_path / "list.gz"
    damaged.write_bytes(gzip.compress(b"http://h/1\nhttp://h/2\n")[:-4])
    ended = await run("check", str(damaged), *AGENT)
    assert (ended.code, ended.out) == (3, "")
    assert f"Cannot read {damaged}: " in ended.err


async def test_closed_pipe_ends_the_command_quietly(service_url: str, tmp_path: Path) -> None:
    listed = tmp_path / "list"
    async with serve(Site(ROBOTS), host=new_address()) as origin:
        listed.write_text("".join(f"{origin.url}/{number}\n" for number in range(20 * BATCH_LINES)))
        words = shlex.join([*WORDS, "check", str(listed), *AGENT, "--server", service_url])
        process = await asyncio.create_subprocess_exec(
            "bash", "-c", f"{words} | head -1; exit ${{PIPESTATUS[0]}}",
            cwd=ROOT, env=environment(), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await process.communicate()
    assert (process.returncode, err, out.count(b"\n")) == (3, b"", 1)
