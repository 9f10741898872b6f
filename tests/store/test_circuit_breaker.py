"""Calls that fail: what is said about them, and what is logged."""

import pytest
from redis.exceptions import AuthenticationError, InvalidResponse, ResponseError
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import TimeoutError as NoAnswer

from app.store.circuit_breaker import CircuitBreaker, StoreDown


def ignore(_event: object) -> None:
    pass


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
    breaker = CircuitBreaker("the store", 0.1, monotonic=lambda: 0.0, failed=ignore, answered=ignore)

    async def command() -> None:
        raise error

    with pytest.raises(StoreDown) as raised:
        await breaker.call(command)
    assert str(raised.value) == text
    assert breaker.trouble is not None
    assert breaker.trouble.what == text
