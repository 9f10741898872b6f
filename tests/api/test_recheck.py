"""When a file is fetched again: by the crawler's model, by the domain table, and by visits."""

import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from app.cache.visits import key
from robots_core.origin import Origin
from tests.api.service import START, running
from tests.faults.until import until
from tests.origins import serve, text

RULES = "User-agent: *\nDisallow: /private/\n"
DAY = timedelta(days=1)


def recheck_in(answer: dict[str, Any]) -> timedelta:
    return datetime.fromisoformat(answer["robots"]["recheck_at"]) - datetime.fromtimestamp(START, UTC)


def near(wanted: timedelta, found: timedelta) -> bool:
    return 0.89 * wanted <= found <= 1.11 * wanted


async def test_one_copy_is_rechecked_by_each_crawlers_model(store_url: str, store_client: Redis) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        assert near(DAY, recheck_in(await service.allowed(f"{origin.url}/", "ExampleBot")))
        # A first visit counts as one a day, for which Seznam's delay is 12 days.
        assert near(12 * DAY, recheck_in(await service.allowed(f"{origin.url}/", "SeznamBot")))
        for _ in range(8):
            await service.allowed(f"{origin.url}/", "SeznamBot")
        assert near(3 * DAY, recheck_in(await service.allowed(f"{origin.url}/", "SeznamBot")))
        assert near(DAY, recheck_in(await service.allowed(f"{origin.url}/", "ExampleBot")))
        assert len(origin.requests) == 1


async def test_recheck_model_setting_is_the_default(store_url: str, store_client: Redis) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url, recheck_model="seznam") as service:
        assert near(12 * DAY, recheck_in(await service.allowed(f"{origin.url}/", "ExampleBot")))


async def test_only_seznam_visits_are_written_at_shutdown(store_url: str, store_client: Redis) -> None:
    async with serve(text(200, RULES)) as origin:
        asked = key(Origin("http", "127.0.0.1", origin.port))
        async with running(store_url) as service:
            for agent in ("SeznamBot", "ExampleBot", "SeznamBot"):
                await service.allowed(f"{origin.url}/", agent)
        assert await store_client.get(asked) == f"V1 2 {START:.0f} {START:.0f}".encode()
        async with running(store_url) as service:
            assert near(12 * DAY - 9 * DAY * 0.477, recheck_in(await service.allowed(f"{origin.url}/", "SeznamBot")))


async def test_domain_table_takes_precedence_and_reloads_on_sighup(
    store_url: str, store_client: Redis, tmp_path: Path
) -> None:
    table = tmp_path / "recheck.toml"
    write(table, "2h")
    async with serve(text(200, RULES)) as origin, running(store_url, recheck_file=table) as service:
        assert near(DAY / 12, recheck_in(await service.allowed(f"{origin.url}/", "SeznamBot")))
        write(table, "5d")
        os.kill(os.getpid(), signal.SIGHUP)
        await until(lambda: service.allowed(f"{origin.url}/"), lambda answer: near(5 * DAY, recheck_in(answer)))
        assert await store_client.keys("*:visits") == []


def write(table: Path, delay: str) -> None:
    table.write_text(f'"127.0.0.1" = {{delay = "{delay}"}}')


async def test_a_lifetime_of_an_hour_is_kept_or_raised_to_seznams_minimum(store_url: str, store_client: Redis) -> None:
    async with serve(text(200, RULES, {"Cache-Control": "max-age=3600"})) as origin, running(store_url) as service:
        assert near(DAY / 24, recheck_in(await service.allowed(f"{origin.url}/", "ExampleBot")))
        assert near(3 * DAY, recheck_in(await service.allowed(f"{origin.url}/", "SeznamBot")))
