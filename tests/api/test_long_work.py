"""Long work runs in helper processes, is charged and bounded, and stops when its client disconnects."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Scope

from app.api.caller import CALLER, Caller
from app.api.long_work import SMALL_FILE, LongWork
from app.auth.keys import Limit
from app.auth.quotas import QuotaAccount
from app.loop.admission import Overloaded
from app.loop.background import cancel_and_wait
from app.loop.helpers import WAITING, Helpers, TooMuchWork, WorkRaised
from app.loop.work_turns import WorkTurns
from tests.faults.until import until_so
from tests.loop import work

LARGE = SMALL_FILE + 1


class Client:
    """The client side of one request."""

    def __init__(self, host: str = "192.0.2.1", state: dict[str, Any] | None = None) -> None:
        self.scope: Scope = {"type": "http", "client": (host, 1), "state": state or {}}
        self.gone = asyncio.Event()

    @property
    def request(self) -> Request:
        return Request(self.scope, self.receive)

    async def receive(self) -> Message:
        await self.gone.wait()
        return {"type": "http.disconnect"}


class Shared:
    """Long work, and the reasons for which requests were refused."""

    def __init__(self) -> None:
        self.refused: list[str] = []
        self.helpers = Helpers(1, seconds=1, refused=self.refused.append)
        self.work = LongWork(WorkTurns(), self.helpers)


@asynccontextmanager
async def shared() -> AsyncIterator[Shared]:
    it = Shared()
    yield it
    await it.helpers.aclose()


async def test_small_work_runs_here_and_large_work_in_a_helper() -> None:
    async with shared() as it:
        own = psutil.Process().pid
        assert int(await it.work.run(Client().request, SMALL_FILE, work.pid)) == own
        assert int(await it.work.run(Client().request, LARGE, work.pid)) != own


async def test_small_work_waits_for_its_turn() -> None:
    async with shared() as it:
        async with it.work._turns.turn():
            task = asyncio.create_task(it.work.run(Client().request, SMALL_FILE, work.pid))
            await asyncio.sleep(0.01)
            assert not task.done()
        assert await task


async def test_work_ends_with_its_helper_when_the_client_disconnects() -> None:
    async with shared() as it:
        client = Client()
        helper = int(await it.work.run(client.request, LARGE, work.pid))
        task = asyncio.create_task(it.work.run(client.request, LARGE, work.asleep))
        await asyncio.sleep(0.05)
        client.gone.set()
        with pytest.raises(ClientDisconnect):
            await task
        assert not psutil.pid_exists(helper)
        assert await it.work.run(Client().request, LARGE, work.same, b"next") == b"next"


async def test_work_is_charged_by_cpu_time_whatever_becomes_of_it() -> None:
    debts: list[float] = []
    quotas = SimpleNamespace(add_debt=lambda _id, seconds: debts.append(seconds))
    account = QuotaAccount(quotas, "crawler", Limit(10, 60, 10))  # type: ignore[arg-type]

    def request() -> Request:
        return Client(state={CALLER: Caller("crawler", account=account)}).request

    async with shared() as it:
        await it.work.run(request(), LARGE, work.pid)
        assert sum(debts) == 0
        await it.work.run(request(), LARGE, work.burnt, 0.35)
        assert sum(debts) in (3 * 6.0, 4 * 6.0)
        debts.clear()
        with pytest.raises(WorkRaised):
            await it.work.run(request(), LARGE, work.wrong, "no")
        assert sum(debts) == 0
        with pytest.raises(TooMuchWork):
            await it.work.run(request(), LARGE, work.endless)
        assert sum(debts) == 10 * 6.0


async def test_one_caller_does_not_keep_out_another() -> None:
    async with shared() as it:
        tasks = [asyncio.create_task(it.work.run(Client().request, LARGE, work.asleep)) for _ in range(WAITING + 1)]
        await until_so(lambda: it.helpers._slots.waiting == WAITING)
        with pytest.raises(Overloaded):
            await it.work.run(Client().request, LARGE, work.pid)
        assert it.refused == ["helpers"]
        other = asyncio.create_task(it.work.run(Client("198.51.100.1").request, LARGE, work.pid))
        [displaced], _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        assert isinstance(displaced.exception(), Overloaded)
        await cancel_and_wait(tasks)
        assert await other
        assert await it.work.run(Client().request, LARGE, work.pid)
