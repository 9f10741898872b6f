"""A server that refuses commands of the service is degraded until it accepts them, which is logged once."""

import asyncio
import logging
from collections.abc import Iterator

import pytest

from app.cache.redis_snapshots import RedisSnapshots
from app.store.circuit_breaker import SHARD_LOG_EVERY
from app.store.commands import PROBED
from app.store.connect import connect
from app.store.guarded_client import GuardedClient, StoreDown
from robots_core.origin import Origin
from tests.api.service import running
from tests.engines import PASSWORD, QUOTED, Node, node
from tests.origins import serve, text

SITE = Origin("https", "www.example.com", 443)


@pytest.fixture
def server() -> Iterator[Node]:
    with node() as one:
        yield one


def url(server: Node) -> str:
    return f"redis://service:{QUOTED}@127.0.0.1:{server.port}"


def grant(server: Node, *less: str) -> None:
    """Create the service's user, with all permissions but these."""
    server.ask("ACL", "SETUSER", "service", "reset", "on", f">{PASSWORD}", "~robots:*", "&robots:*", "+@all", *less)


@pytest.mark.parametrize("refused", sorted(PROBED.values()))
async def test_a_store_that_refuses_a_command_is_degraded(
    server: Node, refused: str, caplog: pytest.LogCaptureFixture
) -> None:
    grant(server, f"-{refused}")
    async with serve(text(200)) as origin, running(url(server)) as service:
        for number in range(3):
            await service.allowed(f"{origin.named(f'127.0.0.{number + 1}').key}/")
            readiness = (await service.client.get("/readyz")).json()
            assert readiness["store"] == "degraded"
            assert "refused" in readiness["detail"]
        assert [record.levelname for record in caplog.records if "is degraded" in record.getMessage()] == ["WARNING"]
        assert not any("available again" in record.getMessage() for record in caplog.records)
        grant(server)
        assert (await service.client.get("/readyz")).json()["store"] == "ok"
        assert sum("available again" in record.getMessage() for record in caplog.records) == 1


async def test_repeated_failures_are_logged_once_a_minute(server: Node, caplog: pytest.LogCaptureFixture) -> None:
    now = 1000.0
    grant(server)
    client = connect(url(server))
    calls = GuardedClient(client, monotonic=lambda: now, timeout=20.0)
    store = RedisSnapshots(calls)
    caplog.set_level(logging.WARNING)

    async def flap() -> None:
        grant(server, "resetkeys", "~robots:probe")
        with pytest.raises(StoreDown):
            await store.get(SITE)
        await calls.ping()

    for _ in range(20):
        await flap()
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "The store is degraded",
        "The store is available again",
    ]
    now += SHARD_LOG_EVERY
    await flap()
    assert len(caplog.records) == 4
    await calls.aclose()
    await client.aclose()
    await asyncio.sleep(0)
