"""A call whose caller is cancelled while it fails logs no error."""

import asyncio
import gc
from typing import Any

from app.redis.circuit_breaker import CircuitBreaker
from app.redis.timed_calls import Limits


def ignore(_event: object) -> None:
    pass


async def test_a_failure_at_the_moment_of_a_cancellation_is_not_logged() -> None:
    loop = asyncio.get_running_loop()
    logged: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: logged.append(context))
    breaker = CircuitBreaker("the store", Limits.within(20, 20.0), monotonic=loop.time, failed=ignore, answered=ignore)
    begun: asyncio.Event = asyncio.Event()
    answer: asyncio.Future[None] = loop.create_future()

    async def command() -> None:
        begun.set()
        await answer

    caller = asyncio.create_task(breaker.run(command))
    await begun.wait()
    await asyncio.sleep(0)
    answer.set_exception(ConnectionError("gone"))
    await asyncio.sleep(0)  # the call has failed, but its caller has not run yet
    caller.cancel()
    await asyncio.wait([caller])
    assert caller.cancelled()
    del caller
    gc.collect()  # asyncio logs an exception that was never retrieved when its task is collected
    await breaker.aclose()
    assert logged == []
