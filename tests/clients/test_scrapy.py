"""A real Scrapy with the middleware, in its own process: what it fetches, and at which pace."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.clients.crawling import crawl_by_scrapy as crawl
from tests.clients.permitting import Permitting, Relay, allow, defer, disallow, wait_too_long
from tests.clients.site import HTML, TICK, Site, links, new_address
from tests.origins import serve, text

SCHEDULERS = pytest.mark.parametrize(
    "scheduler", ["scrapy.core.scheduler.Scheduler", "robots_decisions.scrapy_scheduler.PermitScheduler"]
)


def kept(job: Path) -> bool:
    """Whether requests are stored for the next run of the job."""
    return any(job.glob("robots_decisions.waiting/*"))


def counted(came: Mapping[str, Any]) -> dict[str, int]:
    """The stats that the middleware keeps."""
    own = "robots_decisions/"
    return {name.removeprefix(own): number for name, number in came["stats"].items() if name.startswith(own)}


async def test_scrapy_fetches_allowed_pages_at_the_pace_of_the_file(service_url: str) -> None:
    interval = 0.3
    pages = [f"/{number}" for number in range(7)]
    site = Site(
        f"User-agent: *\nDisallow: /private/\nCrawl-delay: {interval}\n",
        {
            "/": links(*pages, "/private/page", "/busy"),
            "/busy": [text(503, "busy", {**HTML, "Retry-After": "2"}), text(200, "at last", HTML)],
        },
    )
    relay = Relay(service_url)
    async with serve(site, host=new_address()) as origin, serve(relay) as between:
        came = await crawl(f"{origin.url}/", service=between.url, RETRY_TIMES=1)
    assert sorted(came["fetched"]) == sorted(f"{origin.url}{path}" for path in ["/", *pages, "/busy"])
    assert came["failed"] == {f"{origin.url}/private/page": "Disallowed"}
    assert came["versions"] == dict.fromkeys(came["fetched"], site.version)
    assert sorted(site.paths) == sorted(["/robots.txt", "/", *pages, "/busy", "/busy"])
    # A busy machine may delay requests, but none may come before its slot.
    assert site.ahead_of_turns(origin.url, relay.turns) == []
    assert relay.shortest >= interval - TICK
    refused, again = site.at("/busy")
    assert again - refused > 2 - 0.01
    stats = counted(came)
    assert stats["allowed"] == len(pages) + 3
    assert (stats["disallowed"], stats["disallowed/rule"], stats["reported"]) == (1, 1, 1)
    assert came["stats"]["downloader/request_count"] == len(pages) + 3


@SCHEDULERS
async def test_slow_origin_delays_no_other_and_a_job_resumes(scheduler: str, tmp_path: Path, service_url: str) -> None:
    slow, fast = [Site("User-agent: *\nCrawl-delay: 600\n"), Site("User-agent: *\nDisallow:\n")]
    async with serve(slow, host=new_address()) as one, serve(fast, host=new_address()) as other:
        urls = [f"{one.url}/{number}" for number in range(20)] + [f"{other.url}/{number}" for number in range(20)]
        came = await crawl(
            *urls,
            service=service_url,
            plan={"close_at": other.url, "close_after": 20, "close_waiting": 20},
            CONCURRENT_REQUESTS=4,
            JOBDIR=str(tmp_path),
            SCHEDULER=scheduler,
        )
        assert set(urls[20:]) <= set(came["fetched"])
        fetched = {path for path in slow.paths if path != "/robots.txt"}
        assert len(fetched) <= 1
        assert counted(came)["left_waiting"] == 20 - len(fetched)
        assert kept(tmp_path) is (scheduler == "scrapy.core.scheduler.Scheduler")
        # Resume the job with a service that grants every permit.
        generous = Permitting(allow(interval=0.01))
        async with serve(generous) as double:
            again = await crawl(service=double.url, JOBDIR=str(tmp_path), SCHEDULER=scheduler)
    assert sorted(url for url in again["fetched"] if url.startswith(one.url)) == sorted(
        url for url in urls[:20] if url.removeprefix(one.url) not in fetched
    )
    assert "left_waiting" not in counted(again)
    assert not kept(tmp_path)


@pytest.mark.parametrize("queue", ["disk", "pickling"])
async def test_serializing_queue_loses_no_call(queue: str, tmp_path: Path, default_pace_url: str) -> None:
    site = Site("User-agent: *\nDisallow:\n")
    settings: dict[str, Any] = {"SCHEDULER_START_MEMORY_QUEUE": None}
    if queue == "disk":
        settings["JOBDIR"] = str(tmp_path)
    else:
        settings["SCHEDULER_MEMORY_QUEUE"] = "tests.clients.pickling.PicklingQueue"
    async with serve(site, host=new_address()) as origin:
        urls = [f"{origin.url}/{number}" for number in range(8)]
        # A lost call keeps the only slot of a second for a minute.
        came = await crawl(*urls, service=default_pace_url, plan={"garbage": False}, CLOSESPIDER_TIMEOUT=45, **settings)
    assert sorted(came["fetched"]) == urls
    assert sorted(site.paths) == ["/0", "/1", "/2", "/3", "/4", "/5", "/6", "/7", "/robots.txt"]
    assert came["stats"]["finish_reason"] == "finished"


async def test_requests_that_wait_go_back_to_a_queue_that_outlives_the_spider(tmp_path: Path, service_url: str) -> None:
    kept: dict[str, Any] = {
        "SCHEDULER": "tests.clients.kept_queue.KeptScheduler",
        "KEPT_QUEUE": str(tmp_path / "queue"),
    }
    slow, fast = Site("User-agent: *\nCrawl-delay: 600\n"), Site("")
    async with serve(slow, host=new_address()) as one, serve(fast, host=new_address()) as other:
        urls = [f"{one.url}/{number}" for number in range(10)] + [f"{other.url}/{number}" for number in range(3)]
        stop = {"close_at": other.url, "close_after": 3, "close_waiting": 10}
        first = await crawl(*urls, service=service_url, plan=stop, SCHEDULER_PERSIST=True, **kept)
        fetched = {path for path in slow.paths if path != "/robots.txt"}
        assert counted(first)["left_waiting"] == 10 - len(fetched)
        async with serve(Permitting(allow(interval=0.01))) as generous:
            again = await crawl(service=generous.url, SCHEDULER_PERSIST=True, **kept)
            last = await crawl(service=generous.url, SCHEDULER_PERSIST=True, **kept)
    assert sorted(path for path in slow.paths if path != "/robots.txt") == [f"/{number}" for number in range(10)]
    assert (len(again["fetched"]), last["fetched"]) == (10 - len(fetched), [])


@SCHEDULERS
async def test_deferred_origin_is_retried_and_blocks_no_other(scheduler: str) -> None:
    late, other = Site(""), Site("")
    asked: dict[str, list[float]] = {}

    def says(question: Mapping[str, Any]) -> Mapping[str, object]:
        times = asked.setdefault(question["url"], [])
        times.append(time.monotonic())
        if question["url"].startswith(other_origin.url):
            return allow(interval=0.01)
        if question["url"].endswith("/by-hand") and len(times) == 1:
            return wait_too_long(1.5)
        return defer("2026-11-21T18:30:02Z") if len(times) == 1 else allow(interval=0.01)

    async with serve(Permitting(says)) as double, serve(late) as origin, serve(other) as other_origin:
        came = await crawl(
            f"{origin.url}/late",
            *(f"{other_origin.url}/{number}" for number in range(3)),
            service=double.url,
            plan={"by_hand": f"{origin.url}/by-hand"},
            CONCURRENT_REQUESTS=1,
            ROBOTS_DECISIONS_MAX_WAIT=0.5,
            SCHEDULER=scheduler,
        )
    first, second = asked[f"{origin.url}/late"]
    assert second - first > 2 - 0.01
    assert sorted(late.paths) == ["/by-hand", "/late"]
    assert [at for at, _ in other.log] < late.at("/late")
    assert (counted(came)["deferred"], counted(came)["allowed"]) == (1, 5)
    assert len(came["fetched"]) == 5
    assert came["failed"] == {}


@SCHEDULERS
async def test_request_deferred_for_too_long_is_given_up(scheduler: str) -> None:
    site = Site("")
    async with serve(Permitting(defer("2026-11-21T19:30:00Z"))) as double, serve(site) as origin:
        urls = [f"{origin.url}/{number}" for number in range(20)]
        came = await crawl(*urls, service=double.url, ROBOTS_DECISIONS_GIVE_UP_AFTER=60, SCHEDULER=scheduler)
    assert site.log == []
    assert came["failed"] == dict.fromkeys(urls, "GivenUp")
    assert counted(came)["given_up"] == 20


async def test_a_silent_service_stops_the_crawl_unless_configured_otherwise() -> None:
    site = Site("")
    async with serve(text(500)) as broken, serve(site) as origin:
        url = f"{origin.url}/page"
        came = await crawl(url, service=broken.url, ROBOTS_DECISIONS_GIVE_UP_AFTER=1)
        assert site.log == []
        assert came["failed"] == {url: "GivenUp"}
        assert counted(came)["unreachable"] >= 2
        came = await crawl(url, service=broken.url, ROBOTS_DECISIONS_UNREACHABLE="allow")
        assert came["fetched"] == [url]
        assert counted(came) == {"asked": 1, "unreachable": 1, "unasked": 1}
        assert f"{broken.url} answers 500. Until it answers, pages are fetched without a permit" in came["complaints"]


async def test_each_hop_of_a_redirect_has_a_signature_of_its_own() -> None:
    headers = {"Signature-Agent": "a", "Signature-Input": "b", "Signature": "c", "User-Agent": "AcmeBot/2.0"}
    signed = {**allow(), "signed": {"headers": headers, "method": "GET"}}
    permitting = Permitting(signed, {**allow(), "signed": None})
    async with serve(permitting) as service, serve(text(200, "", HTML)) as last:
        moved = text(302, "", {"Location": f"{last.url}/b", "Connection": "close"})
        async with serve(moved) as first:
            await crawl(f"{first.url}/a", service=service.url, ROBOTS_DECISIONS_SIGN=True)
    assert [asked["sign"] for asked in permitting.asked] == [True, True]
    one, other = first.requests[0].lower(), last.requests[0].lower()
    for line in (b"signature-agent: a\r\n", b"signature-input: b\r\n", b"signature: c\r\n"):
        assert line in one
    assert b"signature" not in other
    assert one.count(b"user-agent: ") == 1
    assert b"user-agent: acmebot/2.0" in one


async def test_agent_key_and_caller_are_settings() -> None:
    site = Site("")
    double = Permitting(allow(), disallow())
    async with serve(double) as service, serve(site) as origin:
        await crawl(
            f"{origin.url}/1",
            service=service.url,
            ROBOTS_DECISIONS_AGENT="OtherBot",
            ROBOTS_DECISIONS_KEY="k3y",
            ROBOTS_DECISIONS_CALLER="pod-1",
            ROBOTS_DECISIONS_MAX_WAIT=3,
        )
    assert double.asked == [
        {"url": f"{origin.url}/1", "agent": "OtherBot", "max_wait": 3.0, "wait": 2.0, "caller": "pod-1"}
    ]
    assert double.keys == ["Bearer k3y"]
    assert site.paths == ["/1"]


async def test_many_requests_of_a_slow_origin_delay_no_other(service_url: str) -> None:
    slow, fast, count = Site("User-agent: *\nCrawl-delay: 600\n"), Site("User-agent: *\nDisallow:\n"), 10_100
    async with serve(slow, host=new_address()) as one, serve(fast, host=new_address()) as other:
        pages = [f"{other.url}/{number}" for number in range(5)]
        came = await crawl(
            *pages,
            f"{one.url}/page",
            service=service_url,
            plan={"close_at": other.url, "close_after": 5, "close_waiting": count, "count": count},
        )
    assert set(pages) <= set(came["fetched"])
    assert counted(came)["left_waiting"] >= count


@SCHEDULERS
async def test_duplicates_of_waiting_requests_are_dropped(scheduler: str, service_url: str) -> None:
    site = Site("User-agent: *\nCrawl-delay: 0.1\n")
    async with serve(site, host=new_address()) as origin:
        urls = [f"{origin.url}/{number}" for number in range(12)]
        came = await crawl(*urls, *urls, *urls, service=service_url, SCHEDULER=scheduler)
    assert sorted(came["fetched"]) == sorted(urls)
    assert sorted(site.paths) == sorted(["/robots.txt", *(f"/{number}" for number in range(12))])
    assert came["stats"]["dupefilter/filtered"] == 24


async def test_log_says_once_for_each_origin_why_requests_wait() -> None:
    late, quota, paced = ["http://127.2.255.1", "http://127.2.255.2", "http://127.2.255.3"]
    used_up = httpx.Response(429, headers={"Retry-After": "600"}, json={"detail": "The quota is used up."})

    def says(question: Mapping[str, Any]) -> Any:
        if question["url"].startswith(quota):
            return used_up
        why = {"explanation": {"summary": "Status 503 since 15:02."}}
        return (
            wait_too_long(600, 300) if question["url"].startswith(paced) else {**defer("2026-11-21T19:30:00Z"), **why}
        )

    async with serve(Permitting(says)) as double:
        urls = [f"{origin}/{number}" for origin in (late, quota, paced) for number in range(3)]
        came = await crawl(*urls, service=double.url, LOG_LEVEL="INFO", CLOSESPIDER_TIMEOUT=3)
    said = came["complaints"]
    assert said.count(f"{late} is deferred until ") == 1
    assert said.count(f"{double.url} says: Status 503 since 15:02.") == 1
    assert said.count(f"{double.url} answers 429: The quota is used up.") == 1
    assert said.count(f"{paced} may be asked for a page every 300 s, so requests wait for their slots") == 1
    assert "HTTP Request:" not in said


@SCHEDULERS
@pytest.mark.parametrize(
    ("refusal", "remedy"),
    [
        (text(401, '{"detail": "Unknown API key."}'), "Set ROBOTS_DECISIONS_KEY to an API key of the service."),
        (text(200, "<html>Welcome</html>"), "Set ROBOTS_DECISIONS_URL to the URL of a robots.txt decision service"),
    ],
)
async def test_misconfigured_spider_closes_and_keeps_its_requests(
    refusal: bytes, remedy: str, scheduler: str, tmp_path: Path
) -> None:
    site = Site("")
    async with serve(refusal) as wrong, serve(Permitting(allow(interval=0.01))) as right, serve(site) as origin:
        urls = [f"{origin.url}/{number}" for number in range(20)]
        settings: dict[str, Any] = {
            "JOBDIR": str(tmp_path),
            "ROBOTS_DECISIONS_UNREACHABLE": "allow",
            "SCHEDULER": scheduler,
        }
        came = await crawl(*urls, service=wrong.url, **settings)
        assert site.log == []
        assert came["stats"]["finish_reason"] == "robots_decisions_misconfigured"
        assert came["complaints"].count(f"There is no verdict on {origin.url}") == 1
        assert remedy in came["complaints"]
        again = await crawl(service=right.url, **settings)
    assert sorted(again["fetched"]) == sorted(urls)


async def test_silent_service_opens_at_a_second_for_each_host() -> None:
    site = Site("")
    async with serve(text(500)) as silent, serve(site) as origin:
        urls = [f"{origin.url}/{number}" for number in range(4)]
        settings: dict[str, Any] = {"ROBOTS_DECISIONS_UNREACHABLE": "allow", "ROBOTS_DECISIONS_MAX_WAIT": 1.5}
        came = await crawl(*urls, service=silent.url, **settings)
    assert sorted(came["fetched"]) == urls
    instants = sorted(at for at, _ in site.log)
    assert instants[-1] - instants[0] > 3 - 0.5
    assert counted(came)["unasked"] == 4


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ROBOTS_DECISIONS_URL", ""),
        ("ROBOTS_DECISIONS_MAX_WAIT", -1),
        ("ROBOTS_DECISIONS_MAX_AGE", "a day"),
        ("ROBOTS_DECISIONS_GIVE_UP_AFTER", ""),
        ("ROBOTS_DECISIONS_UNREACHABLE", "open"),
        ("TWISTED_REACTOR", "twisted.internet.selectreactor.SelectReactor"),
    ],
)
async def test_invalid_setting_ends_the_crawl_before_it_starts(name: str, value: Any) -> None:
    site = Site("")
    async with serve(site) as origin:
        came = await crawl(f"{origin.url}/page", service="http://127.0.0.1:9", plan={}, **{name: value})
    assert site.log == []
    assert f"ValueError: {name}" in came["complaints"]
