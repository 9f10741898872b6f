"""Origins that accept and never answer, however many one request names, take nothing from the others in it."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from redis.asyncio import Redis

from tests.api.service import Service, running
from tests.faults.loopback import Visit, web
from tests.faults.many import WAYS, Answers, Items
from tests.faults.until import until_so
from tests.origins import text

LIVE = 20
FILE = text(200, "User-agent: *\nDisallow: /private/\n")


@pytest.mark.parametrize("dead", [64, 100, 300])
@pytest.mark.parametrize("ask", WAYS, ids=lambda ask: ask.__name__)
async def test_dead_origins_do_not_delay_the_others_of_a_request(
    store_url: str,
    store_client: Redis,
    monkeypatch: pytest.MonkeyPatch,
    ask: Callable[[Service, Items], Awaitable[Answers]],
    dead: int,
) -> None:
    over = asyncio.Event()

    async def silence(visit: Visit) -> None:
        await over.wait()
        await visit.send(FILE)

    # No fetch ends before `over`, and after half a second it leaves its slot to others.
    monkeypatch.setattr("app.fetch.queue.PROMPT", 0.005)
    async with web(FILE) as origins, running(store_url, fetch_timeout=100.0) as service:
        urls = [*(origins.new(silence) for _ in range(dead)), *(origins.new() for _ in range(LIVE))]
        items = [{"url": url + "/private/", "agent": "a", "wait": 60} for url in urls]
        asking = asyncio.ensure_future(ask(service, items))
        await until_so(lambda: len(origins.requests) == len(urls))
        over.set()
        assert [answer.get("verdict") for answer in await asking] == ["disallow"] * len(urls)
