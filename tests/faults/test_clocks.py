"""Services whose own clock is wrong, or whose store's is, fetch and answer as all others do."""

from collections.abc import Iterator

import pytest
from redis.asyncio import Redis

from app.cache.freshness import DAY, MINUTE
from tests.api.service import Service, counted
from tests.engines import QUOTED, Node
from tests.faults.pods import pod
from tests.origins import serve, text
from tests.pacing.server_clock import ServerClock, clocked

SHORT = text(200, "User-agent: *\nDisallow: /a\n", {"Cache-Control": "max-age=300"})
OFFSETS = [-2 * DAY, -6 * MINUTE, 6 * MINUTE, 2 * DAY]


async def ages(service: Service, url: str) -> list[float]:
    """The ages of the file that eight questions were answered from."""
    return [(await service.allowed(f"{url}/{number}"))["robots"]["age"] for number in range(8)]


@pytest.mark.parametrize("ahead", OFFSETS)
async def test_a_wrong_clock_of_a_service_costs_no_fetch(store_url: str, store_client: Redis, ahead: float) -> None:
    async with serve(SHORT) as origin, pod(store_url) as right, pod(store_url, ahead=ahead) as wrong:
        for service in (wrong, right, wrong):
            assert max(await ages(service, origin.url)) < 100
        assert len(origin.requests) == 1
        offset = await counted(wrong, "robots_store_clock_offset_seconds")
        assert offset == pytest.approx(-ahead, abs=30)
        assert await counted(right, "robots_store_clock_offset_seconds") == pytest.approx(0, abs=30)


@pytest.fixture(scope="module")
def clocked_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerClock, Node]]:
    with clocked(tmp_path_factory.mktemp("clock")) as both:
        yield both


@pytest.mark.parametrize("ahead", OFFSETS)
async def test_a_wrong_clock_of_the_store_costs_no_fetch(
    clocked_server: tuple[ServerClock, Node], ahead: float
) -> None:
    clock, server = clocked_server
    clock.set(server, round(ahead))
    server.ask("FLUSHALL")
    url = f"redis://:{QUOTED}@127.0.0.1:{server.port}"
    async with serve(SHORT) as origin, pod(url) as one, pod(url) as other:
        for service in (one, other, one):
            assert max(await ages(service, origin.url)) < 100
        assert len(origin.requests) == 1
