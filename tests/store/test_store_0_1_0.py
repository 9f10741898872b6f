"""This release reads what release 0.1.0 wrote to a store: `tests/cases/store-0.1.0.jsonl` has its keys as bytes.

Snapshots have frozen bytes of their own (tests/cache/test_codec_versions.py).
"""

import json
from base64 import b64decode
from pathlib import Path

import pytest
from redis.asyncio import Redis

from app.cache.freshness import Failing, Snapshot
from app.cache.redis_visits import RedisVisits
from app.cache.visits import Tally
from app.history.redis_history import RedisHistory
from app.overrides.redis_overrides import RedisOverrides, Row
from app.overrides.replica import Overrides
from app.overrides.table import Delay, Deny, Override, Replace
from app.store.guarded_client import GuardedClient
from robots_core.origin import Origin
from robots_core.robots.access import Cause, Successful, Unavailable, Unreachable

CASES = Path(__file__).parent.parent / "cases"
SITE = Origin("https", "www.example.com", 443)
AT = 1_790_000_000
DOWN = Unreachable(Cause.SERVER_ERROR, 503, 60)


@pytest.fixture
async def filled(store_client: Redis) -> GuardedClient:
    """A store with the keys that 0.1.0 wrote."""
    for row in map(json.loads, (CASES / "store-0.1.0.jsonl").read_text().splitlines()):
        key, value = row["key"], row["value"]
        match row["type"]:
            case "string":
                await store_client.set(key, b64decode(value))
            case "hash":
                await store_client.hset(key, mapping={name: b64decode(text) for name, text in value.items()})
            case "list":
                await store_client.rpush(key, *map(b64decode, value))
            case unknown:
                pytest.fail(f"a key of type {unknown}")
    return GuardedClient(store_client, monotonic=lambda: 0.0, timeout=20.0)


async def test_history_of_0_1_0_is_read(filled: GuardedClient) -> None:
    versions = await RedisHistory(filled, lambda: AT + 900.0, lost=lambda: None).read(SITE)
    assert [(it.first_seen - AT, it.last_seen - AT) for it in versions] == [(-500, 0), (100, 100), (200, 200)]
    assert [it.read() for it in versions] == [
        Snapshot(Successful(200, b"User-agent: *\nDisallow: /a\n", content_type="text/plain"), AT - 500.0),
        Snapshot(Unavailable(404), AT + 100.0),
        Snapshot(DOWN, AT + 200.0, failing=Failing(AT + 150.0, AT + 200.0, 2, DOWN)),
    ]


async def test_visits_of_0_1_0_are_read(filled: GuardedClient) -> None:
    assert await RedisVisits(filled, clock=lambda: float(AT)).read(SITE) == Tally(12.5, AT - 10.0, AT - 86_400.0)


async def test_overrides_of_0_1_0_stay_in_force(filled: GuardedClient) -> None:
    overrides = Overrides(RedisOverrides(filled), lambda: float(AT))
    await overrides.sync()
    own = Replace(Successful(200, "User-agent: *\nDisallow: /é\n".encode(), content_type="text/plain"))
    assert overrides.rows == {
        "closed": Row(
            Override("closed", "example.com", ("goodbot",), Deny(), "A complaint", AT + 1000.0, shadow=False), AT, "ops"
        ),
        "own": Row(Override("own", SITE, (), own, "Trial", None, shadow=True), AT, "ops"),
        "slow": Row(Override("slow", "example.org", (), Delay(7.5), "Slow site", None, shadow=False), AT, "ops"),
    }
    assert overrides.loaded
    assert not overrides.lost


async def test_a_change_after_0_1_0_keeps_its_audit_and_version(filled: GuardedClient) -> None:
    store = RedisOverrides(filled)
    before = (await store.state()).version
    assert await store.remove("slow", "ops", AT + 5.0)
    after = (await store.state()).version
    assert before is not None
    assert after is not None
    assert after.follows(before)
    assert [entry.id for entry in await store.audit(0, 10)] == ["slow", "gone", "gone", "slow", "own", "closed"]
