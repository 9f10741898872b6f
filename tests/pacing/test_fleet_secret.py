"""The secret of permits: processes agree on one in the store, and keep theirs without it."""

import pytest
from redis.asyncio import Redis

from app.pacing.fleet_secret import MAX_ACCEPTED, SECRET_BYTES, STORED_AT, FleetSecret
from app.store.guarded_client import GuardedClient
from tests.valkey import process_of, stopped


@pytest.fixture
def calls(store_client: Redis) -> GuardedClient:
    return GuardedClient(store_client, monotonic=lambda: 0.0, timeout=20.0)


async def test_processes_agree_on_the_first_secret(calls: GuardedClient) -> None:
    first, second = FleetSecret(calls), FleetSecret(calls)
    own = second.current
    await first.agree()
    await second.agree()
    assert first.current == second.current != own
    assert own in second.accepted  # for permits that it has issued
    assert len(first.current) == SECRET_BYTES


async def test_an_emptied_store_gets_the_secret_again(calls: GuardedClient, store_client: Redis) -> None:
    first, second = FleetSecret(calls), FleetSecret(calls)
    await first.agree()
    await second.agree()
    agreed = first.current
    await store_client.flushall()
    await second.agree()
    await FleetSecret(calls).agree()
    await first.agree()
    assert first.current == second.current == agreed == await store_client.get(STORED_AT)


@pytest.mark.parametrize("wrong", [b"", b"short", b"x" * 10**6, ["a", "list"]])
async def test_a_foreign_stored_secret_is_replaced(
    calls: GuardedClient, store_client: Redis, wrong: bytes | list[str]
) -> None:
    if isinstance(wrong, list):
        await store_client.rpush(STORED_AT, *wrong)
    else:
        await store_client.set(STORED_AT, wrong)
    one, other = FleetSecret(calls), FleetSecret(calls)
    await one.agree()
    await other.agree()
    assert one.current == other.current == await store_client.get(STORED_AT)


async def test_the_last_three_secrets_are_accepted(calls: GuardedClient, store_client: Redis) -> None:
    secret = FleetSecret(calls)
    for number in range(10):
        await store_client.set(STORED_AT, bytes([number]) * SECRET_BYTES)
        await secret.agree()
    assert secret.accepted == tuple(bytes([number]) * SECRET_BYTES for number in (9, 8, 7))
    assert len(secret.accepted) == MAX_ACCEPTED


async def test_without_the_store_the_secret_stays(store_client: Redis) -> None:
    secret = FleetSecret(GuardedClient(store_client, monotonic=lambda: 0.0, timeout=0.3))
    own = secret.current
    with stopped(await process_of(store_client)):
        await secret.agree()
    assert secret.accepted == (own,)


async def test_a_configured_secret_is_not_stored(calls: GuardedClient, store_client: Redis) -> None:
    secret = FleetSecret(calls, "s" * 32)
    async with secret.running():
        assert secret.accepted == (b"s" * 32,)
    assert await store_client.get(STORED_AT) is None
