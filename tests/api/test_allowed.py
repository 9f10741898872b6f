"""`GET /v1/allowed` over real origins: answers, their reasons, and failing sites."""

import asyncio
import gzip
from hashlib import sha256
from typing import Any

import pytest
from redis.asyncio import Redis
from starlette.datastructures import QueryParams
from starlette.requests import Request

from app.api.parameters import read_query
from app.api.routes.allowed import AllowedQuery
from tests.api.service import running
from tests.origins import Authority, Exchange, redirect, serve, text

pytestmark = pytest.mark.usefixtures("store_client")

RULES = "User-agent: ExampleBot\nDisallow: /private/ # keep out\nCrawl-delay: 2.5\n\nSitemap: https://h.example/s.xml\n"
DAY = 86_400


async def test_decision_names_its_rule_line_and_fetch(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        answer = await service.allowed(f"{origin.url}/private/a?b=1#c", "ExampleBot/1.0 (+http://bot.example)")
        recheck_at = answer["robots"].pop("recheck_at")
        assert answer == {
            "url": f"{origin.url}/private/a?b=1",
            "agent": "ExampleBot",
            "dialect": "rfc9309",
            "verdict": "disallow",
            "allowed": False,
            "reason": "rule",
            "explanation": {"summary": "Line 2 (Disallow: /private/) in the group for examplebot disallows this URL."},
            "partial": False,
            "rule": {"directive": "disallow", "pattern": "/private/", "line": 2, "text": "Disallow: /private/"},
            "group": {"token": "examplebot", "agents": ["ExampleBot"], "more_agents": 0, "line": 1},
            "rate": {
                "interval": 2.5,
                "documents": 1,
                "seconds": 2.5,
                "declared_interval": 2.5,
                "source": "crawl-delay",
                "line": 3,
                "inherited": False,
                "window": None,
                "valid_until": None,
            },
            "next_rate": None,
            "crawl_delay": 2.5,
            "visit": None,
            "usage": None,
            "override": None,
            "sitemaps": ["https://h.example/s.xml"],
            "more_sitemaps": 0,
            "licenses": [],
            "version": sha256(RULES.encode()).hexdigest()[:16],
            "robots": {
                "url": f"{origin.url}/robots.txt",
                "final_url": None,
                "outcome": "successful",
                "status": 200,
                "cause": None,
                "detail": None,
                "fetched_at": "2026-11-21T18:30:00Z",
                "age": 0,
                "stale": False,
                "failing_since": None,
                "truncated": False,
                "source": "fetched",
            },
            "retry_at": None,
        }
        assert "2026-11-22T16" <= recheck_at <= "2026-11-22T18:30:00Z"


async def test_one_fetch_answers_every_path_and_agent(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin:
        async with running(store_url) as service:
            assert (await service.allowed(f"{origin.url}/private/"))["allowed"] is False
            other = await service.allowed(f"{origin.url}/private/", "OtherBot")
            assert (other["allowed"], other["reason"], other["robots"]["source"]) == (True, "no_group", "memory")
        async with running(store_url) as second_process:
            assert (await second_process.allowed(f"{origin.url}/"))["robots"]["source"] == "store"
        assert len(origin.requests) == 1


async def test_a_hundred_callers_of_a_cold_origin_cause_one_fetch(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        answers = await asyncio.gather(*(service.allowed(f"{origin.url}/{number}") for number in range(100)))
        assert {answer["verdict"] for answer in answers} == {"allow"}
        assert len(origin.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451])
async def test_rfc9309_4xx_allows(store_url: str, status: int) -> None:
    async with serve(text(status, "User-agent: *\nDisallow: /")) as origin, running(store_url) as service:
        answer = await service.allowed(f"{origin.url}/x")
        assert (answer["verdict"], answer["reason"]) == ("allow", "unavailable")
        assert (answer["robots"]["outcome"], answer["robots"]["status"]) == ("unavailable", status)


async def test_on_forbidden_deny_disallows_after_403(store_url: str) -> None:
    async with serve(text(403)) as origin, running(store_url, on_forbidden="deny") as service:
        assert (await service.allowed(f"{origin.url}/x"))["reason"] == "forbidden"


async def refuse(exchange: Exchange) -> None:
    exchange.reset()


async def stall(exchange: Exchange) -> None:
    await exchange.stall()


async def drip(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nUser-agent: *\n")
    await exchange.stall()


FAILURES = [
    (text(503), "server_error", 503),
    (text(500), "server_error", 500),
    (text(429), "too_many_requests", 429),
    (refuse, "connection", None),
    (stall, "timeout", None),
    (drip, "timeout", None),
    (b"SSH-2.0-OpenSSH_9.0\r\n\r\n", "bad_response", None),
    (text(200, "x", {"Content-Length": "500"}), "bad_response", None),
]


@pytest.mark.parametrize(("reply", "cause", "status"), FAILURES, ids=[f"{row[1]}-{row[2]}" for row in FAILURES])
async def test_rfc9309_unreachable_file_defers(store_url: str, reply: Any, cause: str, status: int | None) -> None:
    async with serve(reply) as origin, running(store_url, fetch_timeout=0.3) as service:
        answer = await service.allowed(f"{origin.url}/x")
        assert (answer["verdict"], answer["allowed"], answer["reason"]) == ("defer", False, "unreachable")
        assert (answer["robots"]["outcome"], answer["robots"]["cause"]) == ("unreachable", cause)
        assert answer["retry_at"] == answer["robots"]["recheck_at"] > "2026-11-21T18:35"
        if status is not None:
            assert answer["robots"]["status"] == status


async def test_an_origin_with_no_address_defers(store_url: str) -> None:
    async with running(store_url) as service:
        answer = await service.allowed("http://nowhere.example/x")
        assert (answer["verdict"], answer["robots"]["cause"]) == ("defer", "dns")


async def test_a_private_address_is_a_verdict(store_url: str) -> None:
    async with running(store_url, {"inside.example": ["10.0.0.1"]}) as service:
        for url in ("http://inside.example/x", "http://192.168.1.1/", "http://[::1]:8080/robots.txt"):
            answer = await service.allowed(url)
            assert (answer["verdict"], answer["reason"]) == ("disallow", "blocked_address")


async def test_last_good_copy_answers_for_a_failing_site(store_url: str) -> None:
    async with serve(text(200, RULES), text(503)) as origin, running(store_url) as service:
        await service.allowed(f"{origin.url}/")
        service.now += 2 * DAY
        answer = await service.allowed(f"{origin.url}/private/")
        assert (answer["verdict"], answer["reason"]) == ("disallow", "rule")
        facts = answer["robots"]
        assert (facts["outcome"], facts["status"], facts["cause"]) == ("successful", 200, "server_error")
        assert (facts["stale"], facts["failing_since"]) == (True, "2026-11-23T18:30:00Z")
        service.now += 40 * DAY
        assert (await service.allowed(f"{origin.url}/private/"))["verdict"] == "defer"


async def test_failing_site_is_not_refetched_before_its_recheck(store_url: str) -> None:
    async with serve(text(503, "", {"Retry-After": "7200"})) as origin, running(store_url) as service:
        first = await service.allowed(f"{origin.url}/")
        assert first["retry_at"] >= "2026-11-21T20:30:00Z"
        service.now += 3600
        await service.allowed(f"{origin.url}/")
        assert len(origin.requests) == 1
        service.now += 2 * 3600
        await service.allowed(f"{origin.url}/")
        assert len(origin.requests) == 2


async def test_redirected_file_applies_to_the_original_origin(store_url: str) -> None:
    async with serve(text(200, "User-agent: *\nDisallow: /")) as target:
        names = {"a.example": ["127.0.0.1"], "b.example": ["127.0.0.1"]}
        there = target.named("b.example").key
        async with serve(redirect(f"{there}/elsewhere.txt")) as first, running(store_url, names) as service:
            answer = await service.allowed(first.named("a.example").key + "/x")
            assert answer["verdict"] == "disallow"
            assert answer["robots"]["url"] == first.named("a.example").key + "/robots.txt"
            assert answer["robots"]["final_url"] == f"{there}/elsewhere.txt"
            await service.allowed(f"{there}/x")
            assert [request.split()[1] for request in target.requests] == [b"/elsewhere.txt", b"/robots.txt"]


async def test_https_is_a_separate_origin_with_a_verified_certificate(store_url: str) -> None:
    authority = Authority()
    names = {"good.example": ["127.0.0.1"], "other.example": ["127.0.0.1"]}
    certificate = authority.server_context("good.example")
    async with (
        serve(text(200, RULES), tls=certificate) as origin,
        running(store_url, names, authority.client_context()) as service,
    ):
        good = await service.allowed(origin.named("good.example").key + "/private/")
        assert good["verdict"] == "disallow"
        wrong = await service.allowed(origin.named("other.example").key + "/private/")
        assert (wrong["verdict"], wrong["robots"]["cause"]) == ("defer", "tls")


async def test_gzip_bomb_is_a_truncated_file(store_url: str) -> None:
    bomb = gzip.compress(b"User-agent: *\nDisallow: /x\n" + b"# " + b"a" * 50_000_000)
    reply = text(200, bomb, {"Content-Encoding": "gzip"})
    async with serve(reply) as origin, running(store_url) as service:
        answer = await service.allowed(f"{origin.url}/x")
        assert (answer["verdict"], answer["robots"]["truncated"]) == ("disallow", True)
        assert answer["partial"] is True
        assert "which are not read, could say otherwise" in answer["explanation"]["summary"]


async def test_wait_0_answers_at_once_and_fetches_in_the_background(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        pending = await service.allowed(f"{origin.url}/private/", wait=0)
        assert (pending["verdict"], pending["reason"]) == ("defer", "pending")
        assert (pending["robots"]["source"], pending["robots"]["outcome"]) == ("none", None)
        assert pending["retry_at"] > "2026-11-21T18:30:00Z"
        await origin.wait_for_requests(1)
        assert (await service.allowed(f"{origin.url}/private/"))["verdict"] == "disallow"
        assert len(origin.requests) == 1


async def test_max_age_revalidates_an_older_copy(store_url: str) -> None:
    replies = (text(200, RULES, {"ETag": '"1"'}), b"HTTP/1.1 304 Not Modified\r\n\r\n")
    async with serve(*replies) as origin, running(store_url) as service:
        await service.allowed(f"{origin.url}/")
        service.now += 600
        assert (await service.allowed(f"{origin.url}/", max_age=3600))["robots"]["age"] == 600
        renewed = await service.allowed(f"{origin.url}/private/", max_age=60)
        assert (renewed["robots"]["source"], renewed["robots"]["age"]) == ("revalidated", 0)
        assert renewed["verdict"] == "disallow"
        assert b'\r\nIf-None-Match: "1"\r\n' in origin.requests[1]


async def test_dialect_is_the_agents_or_the_requested_one(store_url: str) -> None:
    body = "User-agent: *\nDisallow: /a%7Eb\nRequest-rate: 1/60s 1800-1900\n"
    async with serve(text(200, body)) as origin, running(store_url) as service:
        url = f"{origin.url}/a~b"
        assert (await service.allowed(url, "ExampleBot"))["allowed"] is False
        assert (await service.allowed(url, "Googlebot"))["allowed"] is True
        assert (await service.allowed(url, "Googlebot", dialect="rfc9309"))["allowed"] is False
        seznam = await service.allowed(url, "SeznamBot")
        assert (seznam["dialect"], seznam["rate"]["interval"], seznam["rate"]["declared_interval"]) == (
            "seznam",
            10,
            60,
        )
        assert seznam["rate"]["valid_until"] == "2026-11-21T19:00:00Z"
        assert (await service.allowed(url, "SeznamBot", at="2026-11-21T20:00:00+01:00"))["rate"] is None


async def test_every_answer_says_when_the_next_limit_begins(store_url: str) -> None:
    body = "User-agent: *\nRequest-rate: 1/20s 1900-2000\nRequest-rate: 1/2s 2330-0030\n"
    evening, over = ("2026-11-21T19:00:00Z", 20.0), ("2026-11-21T20:00:00Z", None)
    async with serve(text(200, body)) as origin, running(store_url) as service:
        item = {"url": f"{origin.url}/", "agent": "ExampleBot"}

        async def answers(at: str | None) -> list[dict[str, Any]]:
            asked = {**item, "at": at} if at else item
            post = service.client.post
            pasted = {"robots": body, "urls": [item["url"]], "agents": [item["agent"]], "at": at}
            found = [
                (await service.client.get("/v1/allowed", params=asked)).json(),
                (await service.client.get("/v1/allowed", params={**asked, "explain": "true"})).json(),
                (await post("/v1/allowed", json={"items": [asked]})).json()["answers"][0],
                (await post("/v1/test", json=pasted)).json()["rows"][0],
            ]
            return found if at else [*found, (await post("/v1/permits", json=item)).json()]

        for at, expected in [
            (None, evening),
            ("2026-11-21T18:59:59.999Z", evening),
            ("2026-11-21T19:00:00Z", over),
            ("2026-11-21T20:00:00Z", ("2026-11-21T23:30:00Z", 2.0)),
            ("2026-12-31T23:45:00Z", ("2027-01-01T00:30:00Z", None)),
            ("2027-01-01T00:30:00Z", ("2027-01-01T19:00:00Z", 20.0)),
        ]:
            for answer in await answers(at):
                assert tuple(answer["next_rate"].values()) == expected
                assert (answer["rate"] is None) is (expected[1] is not None)
        service.now += 1800  # the encoded answer ends with the rate
        assert [tuple(answer["next_rate"].values()) for answer in await answers(None)] == [over] * 5


async def test_several_agents_are_looked_up_in_order(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        query = {"url": f"{origin.url}/private/", "agent": ["NewBot", "ExampleBot"]}
        answer = (await service.client.get("/v1/allowed", params=query)).json()
        assert (answer["agent"], answer["group"]["token"], answer["allowed"]) == ("NewBot", "examplebot", False)


async def test_without_the_store_nothing_is_allowed_silently(store_url: str, store_client: Redis) -> None:
    async with serve(text(200, RULES)) as origin, running("unix:///nowhere/valkey.sock") as service:
        assert (await service.allowed(f"{origin.url}/private/"))["verdict"] == "disallow"
        ready = (await service.client.get("/readyz")).json()
        assert (ready["status"], ready["store"]) == ("ready", "degraded")
        assert (await service.allowed(f"{origin.url}/private/"))["robots"]["source"] == "memory"
        assert len(origin.requests) == 1


@pytest.mark.parametrize(
    "query",
    [
        b"url=http://h.example/a+b%2B%2525&agent=a",
        b"url=http://h.example/%ff%C3%A9%F0%9F&agent=%zz%2",
        b"url=http://h.example/\xff\xc3\xa9&agent=a",
        b"url=first&agent=a&agent=b&dialect=&wait=1&&",
        b"%75rl=http://h.example/?a=b%26c=d;e%00&agent=a%20b",
    ],
)
def test_query_strings_mean_what_they_do_to_starlette(query: bytes) -> None:
    expected = QueryParams(query)
    read = read_query(Request({"type": "http", "query_string": query}), AllowedQuery)
    assert (read.url, read.agent) == (expected["url"], expected.getlist("agent"))
    wait = expected.get("wait")
    assert (read.dialect, read.wait) == (expected.get("dialect"), None if wait is None else float(wait))
