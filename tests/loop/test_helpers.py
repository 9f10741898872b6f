"""Helper processes: each caller gets its own answer, within limits, and no process is left."""

import asyncio
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.api.sites.sitemap import sitemap_json
from app.api.trials.rows import imported, trial_json
from app.loop import helpers as module
from app.loop.admission import Overloaded
from app.loop.background import cancel_and_wait
from app.loop.helper_process import REPLY_LIMIT
from app.loop.helpers import CPU_SECONDS, WAITING, HelperFailed, Helpers, TooMuchWork, WorkRaised
from robots_core.diff.as_json import changes_json
from robots_core.file_json import file_json
from robots_core.meta_tags import metas_json
from tests.faults.until import PATIENCE, until_so
from tests.loop import work

MIB = 2**20
SOURCE = Path(module._PROCESS).read_text()
SERVICE_LIBRARIES = {"asyncio", "fastapi", "httptools", "redis", "starlette", "uvicorn"}
MODELS = {"logging", "pydantic"}
WORKS: list[Callable[..., bytes]] = [work.pid, file_json, changes_json, metas_json, trial_json, imported, sitemap_json]
"""One function of each module that helpers import."""

MADE_BY_MODELS = {trial_json, imported}
"""Those whose answers are encoded by pydantic."""


class Called(Helpers):
    """Helpers that note what became of each call, and the CPU seconds that were charged for it."""

    def __init__(self, helpers: int = 1, *, seconds: int = CPU_SECONDS) -> None:
        self.outcomes: list[str] = []
        self.refusals: list[str] = []
        self.charged: list[float] = []
        super().__init__(helpers, called=self._note, refused=self.refusals.append, seconds=seconds)

    def _note(self, outcome: str, _seconds: float) -> None:
        self.outcomes.append(outcome)

    async def do(self, task: Callable[..., bytes], *arguments: Any, caller: str = "a") -> bytes:
        return await self.run(caller, task, *arguments, spent=self.charged.append)

    async def pid(self) -> int:
        return int(await self.do(work.pid))

    async def __aenter__(self) -> "Called":
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()


async def gone(pid: int) -> None:
    def has_ended() -> bool:
        try:
            return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    await until_so(has_ended)


async def test_calls_get_their_own_answers() -> None:
    async with Called(2) as helpers:
        sizes = [0, 1, 70_000, MIB, 5 * MIB, 3] * 5
        bodies = [os.urandom(1) * size for size in sizes]
        assert await asyncio.gather(*(helpers.do(work.same, body) for body in bodies)) == bodies
        assert len(helpers._all) == 2
        assert helpers.outcomes == ["done"] * len(sizes)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_to_a_helper_gives_no_caller_the_answer_of_another(number: signal.Signals) -> None:
    async with Called() as helpers:
        helper = await helpers.pid()
        for text in (b"one", b"two", b"three"):
            os.kill(helper, number)  # idle
            assert await helpers.do(work.same, text) == text
        busy = asyncio.create_task(helpers.do(work.rested, 0.5))
        await asyncio.sleep(0.1)
        os.kill(helper, number)
        assert int(await busy) == helper
        assert [await helpers.do(work.same, b"%d" % it) for it in range(3)] == [b"0", b"1", b"2"]
        assert await helpers.pid() == helper


async def test_a_signal_while_a_helper_starts_ends_it_at_worst(monkeypatch: pytest.MonkeyPatch) -> None:
    start = module._Helper.start

    async def interrupted(*limits: int) -> module._Helper:
        helper = await start(*limits)
        helper._process.send_signal(signal.SIGINT)
        return helper

    monkeypatch.setattr(module._Helper, "start", interrupted)
    async with Called() as helpers:
        answers = []
        for text in (b"one", b"two", b"three"):
            with suppress(HelperFailed):
                answers.append((text, await helpers.do(work.same, text)))
        assert all(text == answer for text, answer in answers)


@pytest.mark.parametrize("shift", [-1, 1])
async def test_an_answer_to_another_call_ends_the_helper(
    shift: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shifted = tmp_path / "process.py"
    shifted.write_text(SOURCE.replace("ANSWER.pack(call,", f"ANSWER.pack((call + {shift}) % 2**64,"))
    async with Called() as helpers:
        with monkeypatch.context() as patch:
            patch.setattr(module, "_PROCESS", str(shifted))
            with pytest.raises(HelperFailed, match="another call"):
                await helpers.do(work.same, b"mine")
        [helper] = helpers._all
        assert not helper.lives()
        assert await helpers.do(work.same, b"mine") == b"mine"
        assert helpers.outcomes == ["unanswered", "done"]


@pytest.mark.parametrize("function", WORKS)
async def test_a_helper_imports_nothing_of_the_service(function: Callable[..., bytes]) -> None:
    async with Called() as helpers:
        loaded = set((await helpers.do(work.modules, function.__module__)).decode().split())
        assert function.__module__ in loaded
        assert not loaded & SERVICE_LIBRARIES
        assert bool(loaded & MODELS) == (function in MADE_BY_MODELS)
        path, own_session = eval(await helpers.do(work.environment))
        assert (path, own_session) == (sys.path, True)


async def test_cpu_time_is_limited_for_each_call_and_not_for_all_together() -> None:
    async with Called(seconds=1) as helpers:
        assert len({await helpers.do(work.burnt, 0.3) for _ in range(4)}) == 1
        with pytest.raises(TooMuchWork, match="more than 1 s of CPU time; retry in 60 s"):
            await helpers.do(work.endless)
        assert await helpers.do(work.same, b"next") == b"next"
        assert helpers.outcomes == [*["done"] * 4, "unanswered", "done"]
        assert min(helpers.charged[:4]) >= 0.3
        assert helpers.charged[4] == 1


async def test_memory_is_limited() -> None:
    async with Called() as helpers:
        helper = await helpers.pid()
        with pytest.raises(TooMuchWork, match="memory"):
            await helpers.do(work.grown, 400 * MIB)
        assert int(await helpers.do(work.grown, 100 * MIB)) == helper
        assert helpers.outcomes == ["done", "no_memory", "done"]


async def test_answers_are_bounded() -> None:
    async with Called() as helpers:
        assert len(await helpers.do(work.zeros, REPLY_LIMIT)) == REPLY_LIMIT
        with pytest.raises(TooMuchWork, match="bytes of answer"):
            await helpers.do(work.zeros, REPLY_LIMIT + 1)
        assert await helpers.do(work.same, b"next") == b"next"


async def test_what_work_raises_is_raised_with_its_traceback() -> None:
    async with Called() as helpers:
        with pytest.raises(WorkRaised, match=r"(?s)in wrong.*ValueError: no \\ud800"):
            await helpers.do(work.wrong, "no \ud800")
        assert helpers.outcomes == ["raised"]


async def test_what_work_prints_is_in_no_answer() -> None:
    async with Called() as helpers:
        assert await helpers.do(work.printed, "text") == b"text"
        assert await helpers.do(work.same, b"next") == b"next"


async def test_a_cancelled_call_ends_its_helper() -> None:
    async with Called(seconds=2) as helpers:
        helper = await helpers.pid()
        call = asyncio.create_task(helpers.do(work.asleep))
        await asyncio.sleep(0.05)
        await cancel_and_wait([call])
        assert not psutil.pid_exists(helper)
        assert await helpers.pid() != helper
        assert 0 < helpers.charged[1] < 2


async def test_a_call_cancelled_at_any_moment_leaves_slots_and_answers_in_order() -> None:
    async with Called(2) as helpers:
        for turns in range(40):
            call = asyncio.create_task(helpers.do(work.zeros, 3 * MIB))
            for _ in range(turns):
                await asyncio.sleep(0)
            await cancel_and_wait([call])
        bodies = [b"%d" % number for number in range(10)]
        assert await asyncio.gather(*(helpers.do(work.same, body) for body in bodies)) == bodies
        assert helpers._slots._free == 2


async def test_a_helper_that_was_killed_is_replaced() -> None:
    async with Called() as helpers:
        idle = await helpers.pid()
        os.kill(idle, signal.SIGKILL)
        await gone(idle)
        await until_so(lambda: not any(it.lives() for it in helpers._all))
        busy = await helpers.pid()
        call = asyncio.create_task(helpers.do(work.asleep))
        await asyncio.sleep(0.05)
        os.kill(busy, signal.SIGKILL)
        with pytest.raises(HelperFailed, match="ended with status -9; retry in 1 s"):
            await call
        assert await helpers.pid() not in (idle, busy)


async def test_without_file_descriptors_the_call_fails_and_the_next_one_works() -> None:
    async with Called() as helpers:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        taken = os.open(os.devnull, os.O_RDONLY)
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken, hard))
        try:
            with pytest.raises(HelperFailed, match="No helper process can be started"):
                await helpers.pid()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            os.close(taken)
        assert await helpers.pid()
        assert helpers.outcomes == ["unanswered", "done"]


async def test_calls_beyond_the_queue_are_refused() -> None:
    async with Called(2) as helpers:
        calls = [asyncio.create_task(helpers.do(work.asleep)) for _ in range(2 + WAITING)]
        await until_so(lambda: helpers._slots.waiting == WAITING)
        with pytest.raises(Overloaded, match="retry in 1 s"):
            await helpers.do(work.pid)
        assert helpers.refusals == ["helpers"]
        await until_so(lambda: len(helpers._all) == 2)
        await cancel_and_wait(calls)
        assert await helpers.pid()


async def test_a_call_that_waits_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Called() as helpers:
        busy = asyncio.create_task(helpers.do(work.asleep))
        await until_so(lambda: helpers._slots._free == 0)
        monkeypatch.setattr(module, "HELPER_WAIT", 0.1)
        with pytest.raises(Overloaded):
            await helpers.do(work.pid)
        await cancel_and_wait([busy])


async def test_callers_take_turns() -> None:
    ended: list[str] = []

    async def ask(helpers: Called, caller: str) -> None:
        await helpers.do(work.pid, caller=caller)
        ended.append(caller)

    async with Called() as helpers:
        await asyncio.gather(*(ask(helpers, caller) for caller in "aaaaab"))
        assert ended == ["a", "b", "a", "a", "a", "a"]


SERVICE = """
import asyncio, uvloop
from app.loop.helpers import Helpers
from tests.loop import work

async def main():
    helpers = Helpers()
    print((await helpers.run("a", work.pid)).decode(), flush=True)
    await {then}

{run}(main())
"""


@pytest.mark.parametrize("run", ["asyncio.run", "uvloop.run"])
@pytest.mark.parametrize(
    "then",
    ["asyncio.sleep(1000)", "helpers.run('a', work.asleep)", "helpers.run('a', work.endless)"],
    ids=["idle", "asleep", "at work"],
)
def test_no_helper_outlives_a_service_that_is_killed(run: str, then: str) -> None:
    code = SERVICE.format(run=run, then=then)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as service:
        assert service.stdout is not None
        helper = psutil.Process(int(service.stdout.readline()))
        service.kill()
    _, left = psutil.wait_procs([helper], PATIENCE)
    assert not left


async def test_helper_that_is_prepared_does_the_call_that_comes_meanwhile() -> None:
    async with Called(2) as helpers:
        helpers.prepare(work.pid)
        helpers.prepare(work.pid)
        first = await helpers.pid()
        helpers.prepare(work.pid)
        assert await helpers.pid() == first
        assert helpers.outcomes == ["done", "done", "done"]
        assert len(helpers._all) == 1


async def test_helper_that_cannot_be_prepared_is_started_by_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Called(2) as helpers:
        with monkeypatch.context() as patch:
            patch.setattr(module, "_PROCESS", str(tmp_path / "missing.py"))
            helpers.prepare(work.pid)
            await until_so(lambda: helpers._preparing.under_way("") is None)
        assert await helpers.pid() > 0
        assert helpers.outcomes == ["unanswered", "done"]
