"""A budget of documents for a pool and day: the script in a real Valkey, whose clock is moved."""

import math
import time
from collections.abc import Iterator

import pytest

from app.pacing.redis_pacer import RedisPacer
from app.pacing.schedule import PaceWindow
from app.pacing.slots import PaceKey, QueueState, Slot, SlotRequest, SlotResult, WaitTooLong
from app.store.guarded_client import GuardedClient
from tests.engines import Node, client_of
from tests.pacing.server_clock import ServerClock, clocked

DAY = 86_400
KEY = PaceKey.of("pool:shop", "ExampleBot")


@pytest.fixture(scope="module")
def clocked_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerClock, Node]]:
    with clocked(tmp_path_factory.mktemp("clock")) as both:
        yield both


async def test_a_budget_holds_for_a_pool_until_the_day_ends(clocked_server: tuple[ServerClock, Node]) -> None:
    clock, server = clocked_server
    noon = math.ceil(time.time() / DAY) * DAY + DAY // 2 - time.time()
    async with client_of(server) as client:

        async def ask(budget: int, cost: float = 1.0) -> SlotResult:
            # A process that has just started does not know that the clock was moved, so the time has passed.
            pace = RedisPacer(GuardedClient(client, monotonic=lambda: 0.0, timeout=20.0))
            windows = (PaceWindow(math.inf, 0.01),)
            request = SlotRequest(KEY, windows, "w", cost=cost, max_wait=3600, budget=budget)
            return (await pace.reserve(request, QueueState(), closed_for=0.0, closed_if_behind=0.0))[0]

        clock.set(server, round(noon))
        assert all([isinstance(await ask(5, cost), Slot) for cost in (1.0, 1.0, 0.5)])
        # A host of the pool without a budget spends it, too.
        assert isinstance(await ask(0, 2.0), Slot)
        refused = await ask(5)
        assert isinstance(refused, WaitTooLong)
        assert refused.bound == "budget"
        assert refused.retry_after == refused.wait == pytest.approx(DAY / 2, abs=10)
        assert isinstance(await ask(5, 0.5), Slot)
        clock.set(server, round(noon) + DAY // 4)  # the queue has been idle for hours
        assert isinstance(await ask(5, 0.5), WaitTooLong)
        assert isinstance(await ask(6), Slot)
        clock.set(server, round(noon) + DAY)
        assert isinstance(await ask(5, 5.0), Slot)
        assert isinstance(await ask(5), WaitTooLong)
