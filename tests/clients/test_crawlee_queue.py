"""Crawlee's queue on disk, with a real service, over processes that end and are killed.

Whatever becomes of the service, every page is fetched once in the end, and none fails.
"""

import asyncio
import json
import math
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from robots_decisions.origin_queue import OriginQueue

from app.auth.keys import new_key
from tests.clients.crawling import crawl, crawler
from tests.clients.permitting import Permitting, Relay, allow, defer, disallow
from tests.clients.serving import service
from tests.clients.site import HTML, TICK, Site, new_address
from tests.origins import Exchange, LoopbackOrigin, serve, text

PACE = 0.05


class Gate(Relay):
    """A proxy to a real service that resets all further questions about permits after `most`."""

    def __init__(self, url: str, most: float = math.inf) -> None:
        super().__init__(url)
        self.most = most
        self.asked = 0
        self.refused = 0

    async def __call__(self, exchange: Exchange) -> None:
        """Forward a request, or reset its connection."""
        if exchange.path == "/v1/permits":
            if self.asked >= self.most:
                self.refused += 1
                exchange.reset()
                return
            self.asked += 1
        await super().__call__(exchange)


def plan_of(between: LoopbackOrigin, origin: LoopbackOrigin, folder: Path, pages: int, **more: Any) -> dict[str, Any]:
    urls = [f"{origin.url}/{number}" for number in range(pages)]
    return {"service": between.url, "storage": str(folder), "urls": urls, **more}


def each_once(site: Site, pages: int) -> bool:
    """Whether each page was asked for once."""
    return sorted(path for path in site.paths if path != "/robots.txt") == sorted(f"/{n}" for n in range(pages))


def handled(folder: Path) -> int:
    """How many requests the queue on disk has as handled."""
    files = folder.glob("request_queues/default/*.json")
    return sum(bool(json.loads(file.read_text()).get("handled_at")) for file in files)


async def killed(plan: dict[str, Any], how: signal.Signals, when: Callable[[], bool]) -> None:
    """A crawl that is ended so, at that time, and not before."""
    async with crawler(plan, "queued") as process:
        while not when():
            assert process.returncode is None, await process.communicate()
            await asyncio.sleep(0.02)
        process.send_signal(how)
        await process.communicate()


async def test_dead_service_costs_no_page(service_url: str, tmp_path: Path) -> None:
    site, gate, pages = Site(""), Gate(service_url, 0), 20
    async with serve(site, host=new_address()) as origin, serve(gate) as between:
        plan = plan_of(between, origin, tmp_path, pages)
        await killed(plan, signal.SIGKILL, lambda: gate.refused > 30)
        await killed(plan, signal.SIGINT, lambda: gate.refused > 60)
        assert site.log == []
        gate.most = math.inf
        came = await crawl(plan, "queued")
    assert (len(came["fetched"]), came["failed"]) == (pages, {})
    assert each_once(site, pages)


async def test_crawl_goes_on_when_the_service_answers_again(service_url: str, tmp_path: Path) -> None:
    site, gate, pages = Site(f"User-agent: *\nCrawl-delay: {PACE}\n"), Gate(service_url, 7), 20
    async with serve(site, host=new_address()) as origin, serve(gate) as between:

        async def mend() -> None:
            while gate.refused < 10:  # noqa: ASYNC110 - there is no event
                await asyncio.sleep(0.02)
            gate.most = math.inf

        mending = asyncio.create_task(mend())
        came = await crawl(plan_of(between, origin, tmp_path, pages), "queued")
        await mending
    assert (len(came["fetched"]), came["failed"]) == (pages, {})
    assert each_once(site, pages)
    assert gate.refused < 100


async def test_wrong_key_stops_the_crawler_and_costs_no_page(tmp_path: Path) -> None:
    key, lines = new_key("crawler")
    keys, pages, site = tmp_path / "keys.toml", 20, Site("")
    keys.write_text(lines)
    with service(PACE_FLOOR="0.01", API_KEYS_FILE=str(keys)) as url:
        async with serve(site, host=new_address()) as origin:
            urls = [f"{origin.url}/{number}" for number in range(pages)]
            plan = {"service": url, "storage": str(tmp_path), "urls": urls}
            for wrong in ({"key": "rd_wrong"}, {}):
                came = await crawl({**plan, "options": wrong}, "queued")
                assert (came["fetched"], came["failed"], site.log) == ([], {}, [])
                assert "Set `key`" in came["misconfigured"]
                assert came["complaints"].count("its requests stay in its queue") == 1
            came = await crawl({**plan, "options": {"key": key}}, "queued")
    assert (len(came["fetched"]), came["failed"], came["misconfigured"]) == (pages, {}, "")
    assert each_once(site, pages)


async def test_kill_in_the_middle_costs_no_page(service_url: str, tmp_path: Path) -> None:
    site, gate, pages = Site(f"User-agent: *\nCrawl-delay: {PACE}\n"), Gate(service_url), 20
    async with serve(site, host=new_address()) as origin, serve(gate) as between:
        plan = plan_of(between, origin, tmp_path, pages)

        def none_is_under_way(refused: int) -> bool:
            """The gate has been closed for a while, and every page that was fetched is handled."""
            return gate.refused >= refused and len(site.paths) - 1 == handled(tmp_path)

        for most, how in ((6, signal.SIGKILL), (13, signal.SIGINT)):
            gate.most = most
            await killed(plan, how, partial(none_is_under_way, gate.refused + 10))
        before, gate.most = handled(tmp_path), math.inf
        came = await crawl(plan, "queued")
    assert 0 < before < pages
    assert (len(came["fetched"]), came["failed"]) == (pages - before, {})
    assert each_once(site, pages)


async def test_slow_site_costs_no_page(service_url: str, tmp_path: Path) -> None:
    site, relay, pages = Site(f"User-agent: *\nCrawl-delay: {PACE}\n"), Relay(service_url), 100
    async with serve(site, host=new_address()) as origin, serve(relay) as between:
        # The last page's slot is 25 times as far away as one may wait for.
        plan = plan_of(between, origin, tmp_path, pages, concurrency=100, options={"max_wait": 0.2})
        came = await crawl(plan, "queued")
        assert site.ahead_of_turns(origin.url, relay.turns) == []
    assert (len(came["fetched"]), came["failed"]) == (pages, {})
    assert each_once(site, pages)
    assert relay.shortest >= PACE - TICK


async def test_deferred_site_leaves_the_crawler_to_others(tmp_path: Path) -> None:
    permitting = Permitting(lambda asked: defer("2026-11-21T19:00:00Z") if "/dead/" in asked["url"] else allow())
    site = Site("")
    async with serve(permitting) as between, serve(site, host=new_address()) as dead, serve(site) as origin:
        plan = plan_of(between, origin, tmp_path, 20, concurrency=2)
        plan["urls"] = [f"{dead.url}/dead/{number}" for number in range(50)] + plan["urls"]
        await killed(plan, signal.SIGKILL, lambda: handled(tmp_path) == 20)
    assert each_once(site, 20)
    assert sum("/dead/" in asked["url"] for asked in permitting.asked) < 10


async def test_site_that_stays_deferred_fails_in_the_end(tmp_path: Path) -> None:
    permitting = Permitting(lambda asked: defer("2026-11-21T18:30:01Z") if "/dead/" in asked["url"] else allow())
    site = Site("")
    async with serve(permitting) as between, serve(site, host=new_address()) as dead, serve(site) as origin:
        options = {"max_wait": 0.5, "give_up_after": 2.5}
        plan = plan_of(between, origin, tmp_path, 20, concurrency=2, options=options)
        gone = [f"{dead.url}/dead/{number}" for number in range(50)]
        came = await crawl({**plan, "urls": gone + plan["urls"]}, "queued")
    assert (len(came["fetched"]), sorted(came["failed"])) == (20, sorted(gone))
    for url, error in came["failed"].items():
        assert f"{url} is given up, since its site stays deferred for more than `give_up_after`, 2.5 s: " in error
    assert each_once(site, 20)
    assert sum("/dead/" in asked["url"] for asked in permitting.asked) >= 3


def test_silence_of_the_service_is_not_held_against_a_site() -> None:
    queue: OriginQueue[str] = OriginQueue(1)
    assert not queue.verdict_unknown(0.0, 60.0, 100.0)
    queue.forget_trouble()
    assert not queue.verdict_unknown(90.0, 60.0, 100.0)
    assert queue.verdict_unknown(150.0, 60.0, 100.0)
    assert queue.given_up_until == 210.0


async def test_redirect_to_a_deferred_site_waits_in_the_queue(tmp_path: Path) -> None:
    permitting = Permitting(allow(), defer("2026-11-21T18:30:01Z"), allow())
    other = Site("")
    async with serve(permitting) as between, serve(other, host=new_address()) as target:
        moved = Site("", {"/0": [text(302, "", {**HTML, "Location": f"{target.url}/page"})]})
        async with serve(moved, host=new_address()) as origin:
            came = await crawl(plan_of(between, origin, tmp_path, 1, options={"max_wait": 0.5}), "queued")
    assert (len(came["fetched"]), came["failed"]) == (1, {})
    assert (moved.paths, other.paths) == (["/0"], ["/page"])


async def test_redirect_goes_on_in_a_slot_far_away(service_url: str, tmp_path: Path) -> None:
    site = Site("User-agent: *\nCrawl-delay: 2\n", {"/0": [text(302, "", {**HTML, "Location": "/page"})]})
    async with serve(site, host=new_address()) as origin, serve(Relay(service_url)) as between:
        came = await crawl(plan_of(between, origin, tmp_path, 1, options={"max_wait": 0.5}), "queued")
    assert (len(came["fetched"]), came["failed"], site.paths[-2:]) == (1, {}, ["/0", "/page"])


async def test_disallowed_page_fails_at_once(tmp_path: Path) -> None:
    permitting = Permitting(disallow())
    async with serve(permitting) as between, serve(Site("")) as origin:
        came = await crawl(plan_of(between, origin, tmp_path, 3), "queued")
    assert len(came["failed"]) == len(permitting.asked) == 3
    assert all("Disallowed" in error for error in came["failed"].values())
