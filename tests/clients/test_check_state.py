"""`robots-decisions check --state`: what an interrupted run left is done by the next, no line lost and none twice."""

import asyncio
import json
import signal
from pathlib import Path

import pytest
from robots_decisions.cli.batches import BATCH_LINES
from robots_decisions.cli.failures import Failed
from robots_decisions.cli.state_file import StateFile

from tests.clients.commands import ALLOW, DISALLOW, answering, command, log, numbered, run
from tests.faults.until import until_so
from tests.full_disk import full_at
from tests.origins import Exchange, serve

COUNT = 6 * BATCH_LINES
AGENT = ("--agent", "ExampleBot")


async def stall(exchange: Exchange) -> None:
    await exchange.stall()


def lines_in(output: Path) -> list[int]:
    return [json.loads(line)["line"] for line in output.read_text().splitlines()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("of_log", [False, True])
async def test_interrupted_command_resumes(number: int, of_log: bool, tmp_path: Path) -> None:
    listed, output, state = (tmp_path / name for name in ("list", "out", "state"))
    listed.write_bytes(log(COUNT) if of_log else numbered(COUNT))
    stalls = {1 + 3 * BATCH_LINES, 1 + 5 * BATCH_LINES}
    arguments = (
        "check",
        str(listed),
        *(["--log"] if of_log else AGENT),
        "--output",
        str(output),
        "--state",
        str(state),
    )
    async with serve(answering(lambda _: DISALLOW, lambda first: stall if first in stalls else None)) as server:
        async with command(*arguments, "--server", server.url) as running:
            await until_so(lambda: output.exists() and output.read_bytes().count(b"\n") >= 3 * BATCH_LINES)
            # Rows that are not recorded are written again.
            running.interrupt(number)
            ended = await running.ended()
        done = output.read_bytes().count(b"\n")
        stalls.clear()
        if number == signal.SIGINT:
            assert (ended.code, ended.err.splitlines()[-1]) == (
                130,
                f"Not finished. Run the same command with --state {state} to resume.",
            )
            assert f"{done} lines: {done} disallow (" in ended.err
        else:
            with output.open("ab") as file:
                file.write(b'{"line": 7, cut short')
            with state.open("ab") as file:
                file.write(b'{"done": [[')
        asked = len(server.requests)
        resumed = await run(*arguments, "--server", server.url, "--concurrency", "3")
        most = 6 - done // BATCH_LINES + 1
        assert len(server.requests) - asked <= (most if of_log else 2 * most)  # one about the site, one about the rest
    assert resumed.err == f"{COUNT} lines: {COUNT} disallow ({COUNT} rule)\n"
    assert sorted(lines_in(output)) == list(range(1, COUNT + 1))
    assert lines_in(output) == sorted(lines_in(output)) or not of_log
    again = await run(*arguments, "--server", "http://127.0.0.1:9")
    assert (again.code, again.err) == (resumed.code, resumed.err)
    assert len(lines_in(output)) == COUNT


async def test_rows_of_standard_output_are_continued_after_ctrl_c(tmp_path: Path) -> None:
    listed, state = tmp_path / "list", tmp_path / "state"
    listed.write_bytes(numbered(COUNT))
    arguments = ("check", str(listed), *AGENT, "--state", str(state), "--format", "csv")
    stalls = {1 + 4 * BATCH_LINES}
    async with serve(answering(lambda _: ALLOW, lambda first: stall if first in stalls else None)) as server:
        async with command(*arguments, "--server", server.url) as running:
            await until_so(lambda: state.exists() and state.read_bytes().count(b"\n") >= 6)
            running.interrupt()
            first = await running.ended()
        stalls.clear()
        second = await run(*arguments, "--server", server.url)
    head, *rows = (first.out + second.out).splitlines()
    assert head.startswith("line,url,")
    assert sorted(int(row.partition(",")[0]) for row in rows) == list(range(1, COUNT + 1))
    assert (first.code, second.code) == (130, 0)


async def test_state_of_other_work_is_not_used(tmp_path: Path) -> None:
    listed, state, output = (tmp_path / name for name in ("list", "state", "out"))
    listed.write_bytes(numbered(3))
    async with serve(answering(lambda _: ALLOW)) as server:
        arguments = ("check", str(listed), *AGENT, "--server", server.url, "--state", str(state))
        assert (await run(*arguments, "--output", str(output))).code == 0
        before = state.read_bytes()
        other = await run(*arguments)
        listed.write_bytes(numbered(4))
        longer = await run(*arguments, "--output", str(output))
        listed.write_bytes(numbered(3))
        output.write_bytes(b"")
        shorter = await run(*arguments, "--output", str(output))
        own = await run("check", str(listed), *AGENT, "--server", server.url, "--state", str(listed))
    assert [it.code for it in (other, longer, shorter, own)] == [3] * 4
    assert "is the state of other work: output changed." in other.err
    assert "is the state of other work: lines changed." in longer.err
    assert "has 0 bytes, but the earlier run had written" in shorter.err
    assert "is not a state file of this command" in own.err
    assert (state.read_bytes(), listed.read_bytes()) == (before, numbered(3))


async def test_state_is_of_one_command_at_a_time(tmp_path: Path) -> None:
    listed, state = tmp_path / "list", tmp_path / "state"
    listed.write_bytes(numbered(1))
    async with serve(stall) as server:
        arguments = ("check", str(listed), *AGENT, "--server", server.url, "--state", str(state))
        async with command(*arguments) as running:
            await asyncio.wait_for(server.wait_for_requests(1), 60)
            second = await run(*arguments)
            running.interrupt()
            await running.ended()
    assert second.code == 3
    assert "is in use by another running command" in second.err


def test_record_that_a_full_disk_cuts_short_swallows_no_other(tmp_path: Path) -> None:
    path, identity = tmp_path / "state", {"lines": "0"}
    with StateFile(str(path)) as state:
        state.load(identity)
        state.add({"done": [[0, 1]]})
        for room in range(20):
            with full_at(path.stat().st_size + room), pytest.raises(Failed, match="Cannot write the state file"):
                state.add({"done": [[100, 200]]})
        state.add({"done": [[1, 2]]})
    with StateFile(str(path)) as state:
        assert state.load(identity) == [{"done": [[0, 1]]}, {"done": [[1, 2]]}]
