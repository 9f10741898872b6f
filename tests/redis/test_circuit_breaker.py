"""Calls that fail: what is said about them, and what is logged."""

import asyncio
import gc
from typing import Any

import pytest
from redis.exceptions import AuthenticationError, InvalidResponse, ResponseError
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import TimeoutError as NoAnswer

from app.redis.circuit_breaker import CircuitBreaker, StoreDown
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


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (TimeoutError(), "the store did not answer within 0.1 s"),
        (NoAnswer("Timeout reading from 127.0.0.1:6379"), "the store did not answer within 0.1 s"),
        (NoConnection("Connection refused."), "the store cannot be used: Connection refused."),
        (ConnectionResetError(), "the store cannot be used: ConnectionResetError"),
        (AuthenticationError("WRONGPASS"), "the store refused the user or the password: WRONGPASS"),
        (InvalidResponse("Protocol Error"), "the store sent an invalid answer: InvalidResponse: Protocol Error"),
        (ValueError("not a number"), "the store sent an invalid answer: ValueError: not a number"),
        (ResponseError("NOPERM"), "the store refused: NOPERM"),
    ],
)
async def test_a_failure_says_what_happened(error: Exception, text: str) -> None:
    breaker = CircuitBreaker("the store", Limits.within(20, 0.1), monotonic=lambda: 0.0, failed=ignore, answered=ignore)

    async def command() -> None:
        raise error

    with pytest.raises(StoreDown) as raised:
        await breaker.run(command)
    assert str(raised.value) == text
    assert breaker.trouble is not None
    assert breaker.trouble.what == text
    await breaker.aclose()
