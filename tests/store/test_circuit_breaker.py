"""Calls that fail: what is said about them, and what is logged."""

import asyncio

import pytest
from redis.exceptions import AuthenticationError, InvalidResponse, NoPermissionError, ResponseError
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import TimeoutError as NoAnswer

from app.loop.request import REQUEST_ID
from app.store.circuit_breaker import IN_FLIGHT, CircuitBreaker, Failure, StoreDown
from app.store.failures import ConnectionEnded


def ignore(_event: object) -> None:
    pass


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (TimeoutError(), "the store did not answer within 0.1 s"),
        (NoAnswer("Timeout reading from 127.0.0.1:6379"), "the store did not answer within 0.1 s"),
        (NoConnection("Connection refused."), "the store cannot be used: Connection refused"),
        (ConnectionResetError(), "the store cannot be used: ConnectionResetError"),
        (AuthenticationError("WRONGPASS"), "the store refused the user or the password: WRONGPASS"),
        (InvalidResponse("Protocol Error"), "the store sent an invalid answer: InvalidResponse: Protocol Error"),
        (ValueError("not a number"), "the store sent an invalid answer: ValueError: not a number"),
        (ResponseError("MISCONF"), "the store refused: MISCONF"),
        (NoPermissionError("no right", status_code="NOPERM"), "the store refused: NOPERM no right"),
        (AuthenticationError("no.", status_code="NOAUTH"), "the store refused the user or the password: NOAUTH no"),
    ],
)
async def test_a_failure_says_what_happened(error: Exception, text: str) -> None:
    breaker = CircuitBreaker("the store", 0.1, monotonic=lambda: 0.0, failed=ignore, answered=ignore)

    async def command() -> None:
        raise error

    with pytest.raises(StoreDown) as raised:
        await breaker.call(command)
    assert str(raised.value) == text
    assert breaker.trouble is not None
    assert breaker.trouble.what == text


async def test_a_connection_that_ends_fails_only_its_own_calls() -> None:
    failures: list[object] = []
    breaker = CircuitBreaker("the store", 0.1, monotonic=lambda: 0.0, failed=failures.append, answered=ignore)

    async def cut() -> None:
        raise ConnectionEnded("the server closed the connection")

    async def answer() -> int:
        return 1

    with pytest.raises(StoreDown, match="closed the connection"):
        await breaker.call(cut)
    assert await breaker.call(answer) == 1
    assert not breaker.degraded
    assert failures == [Failure.UNANSWERED]


async def test_a_request_does_not_wait_for_all_calls_of_another() -> None:
    breaker = CircuitBreaker("the store", 0.1, monotonic=lambda: 0.0, failed=ignore, answered=ignore)
    begun: list[str | None] = []

    async def command() -> None:
        begun.append(REQUEST_ID.get())
        await asyncio.sleep(0)

    async def ask(request: str) -> None:
        REQUEST_ID.set(request)
        await breaker.call(command)

    async with asyncio.TaskGroup() as calls:
        for _ in range(20 * IN_FLIGHT):
            calls.create_task(ask("list"))
        calls.create_task(ask("page"))
    assert len(begun) == 20 * IN_FLIGHT + 1
    assert begun.index("page") <= IN_FLIGHT + 2
