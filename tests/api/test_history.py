"""Earlier versions: listed, used for decisions as of an instant, and compared."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from redis.asyncio import Redis

from app.api.routes.history import DiffOut
from app.decisions import cached_files
from app.decisions.evaluate import CachedFile
from app.history.versions import Version
from robots_core.robots.dialects import DIALECTS
from tests.api.service import START, Service, counted, running
from tests.faults.until import until
from tests.origins import LoopbackOrigin, Reply, redirect, serve, text

pytestmark = pytest.mark.usefixtures("store_client")

OLD = "User-agent: *\nDisallow: /old\nCrawl-delay: 5\n"
NEW = "User-agent: *\nDisallow: /new\nCrawl-delay: 9\n\nUser-agent: Foo\nUser-agent: bar\nDisallow: /\nSitemap: http://h/s\n"
HOUR = 3600


def at(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def id_of(body: str | bytes) -> str:
    return hashlib.sha256(body.encode() if isinstance(body, str) else body).hexdigest()[:16]


async def get(service: Service, path: str, **query: str) -> Any:
    response = await service.client.get(path, params={name.rstrip("_"): value for name, value in query.items()})
    assert response.status_code == 200, response.text
    return response.json()


async def versions(service: Service, url: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await get(service, "/v1/robots/history", url=url))["versions"]
    return found


@asynccontextmanager
async def with_history(store_url: str, *replies: Reply) -> AsyncIterator[tuple[Service, LoopbackOrigin]]:
    """A service that has fetched each of these replies, an hour apart, and has stored the versions."""
    async with serve(*replies) as origin, running(store_url) as service:
        for number in range(len(replies)):
            service.now = START + number * HOUR
            response = await service.client.post("/v1/robots/refresh", params={"url": origin.url})
            assert response.status_code == 200, response.text
        yield service, origin


async def test_versions_are_listed_with_their_times(store_url: str) -> None:
    async with with_history(store_url, text(200, OLD), text(200, NEW), text(404)) as (service, origin):
        service.now += 60
        answer = await get(service, "/v1/robots/history", url=f"{origin.url}/any/page")
        assert answer["url"] == f"{origin.url}/robots.txt"
        gone, new, old = answer["versions"]
        assert old == {
            "id": id_of(OLD),
            "outcome": "successful",
            "status": 200,
            "cause": None,
            "size": len(OLD),
            "truncated": False,
            "final_url": None,
            "from": at(START),
            "seen": at(START),
            "until": at(START + HOUR),
            "source": "fetched",
        }
        assert (new["id"], new["from"], new["until"]) == (id_of(NEW), at(START + HOUR), at(START + 2 * HOUR))
        assert (gone["outcome"], gone["status"], gone["size"], gone["until"]) == ("unavailable", 404, None, None)
        assert len(origin.requests) == 3


async def test_unchanged_file_is_one_version_seen_later(store_url: str) -> None:
    async with with_history(store_url, text(200, OLD), text(200, OLD), text(200, OLD)) as (service, origin):
        [version] = await versions(service, origin.url)
        assert (version["from"], version["seen"], version["until"]) == (at(START), at(START + 2 * HOUR), None)


async def test_unchanged_file_has_no_stored_history(store_url: str, store_client: Redis) -> None:
    async with with_history(store_url, text(200, OLD), text(200, OLD)) as (service, origin):
        assert len(await versions(service, origin.url)) == 1
        assert (await service.allowed(f"{origin.url}/old", as_of=at(START + 60)))["verdict"] == "disallow"
    assert await store_client.keys("*:history") == []


async def test_purged_file_stays_in_the_history(store_url: str) -> None:
    async with with_history(store_url, text(200, OLD), text(200, OLD), text(200, NEW)) as (service, origin):
        before = await versions(service, origin.url)
        assert (await service.client.delete("/v1/robots", params={"url": origin.url})).status_code == 204
        assert await versions(service, origin.url) == before
        service.now += HOUR
        await service.client.post("/v1/robots/refresh", params={"url": origin.url})
        new, old = await versions(service, origin.url)
        assert (old["id"], old["from"], old["until"]) == (id_of(OLD), at(START), at(START + 2 * HOUR))
        assert (new["from"], new["seen"]) == (at(START + 2 * HOUR), at(START + 3 * HOUR))


async def test_stale_copy_of_an_unreachable_origin_is_its_version(store_url: str) -> None:
    async with with_history(store_url, text(200, OLD), text(503), text(503)) as (service, origin):
        [version] = await versions(service, origin.url)
        assert (version["id"], version["seen"]) == (id_of(OLD), at(START))
        assert (await service.allowed(f"{origin.url}/old", as_of=at(START + HOUR)))["verdict"] == "disallow"


async def test_unreachable_origin_without_a_copy_defers_as_of_then(store_url: str) -> None:
    async with with_history(store_url, text(404), text(503), text(200, OLD)) as (service, origin):
        outcomes = [version["outcome"] for version in await versions(service, origin.url)]
        assert outcomes == ["successful", "unreachable", "unavailable"]
        answer = await service.allowed(f"{origin.url}/x", as_of=at(START + HOUR))
        assert (answer["verdict"], answer["reason"], answer["retry_at"]) == ("defer", "unreachable", None)
        assert (await service.allowed(f"{origin.url}/x", as_of=at(START)))["reason"] == "unavailable"


async def test_one_version_has_its_text_and_its_bytes(store_url: str) -> None:
    body = b"User-agent: *\nDisallow: /\xff<script>\n"
    async with with_history(store_url, text(200, body), text(404)) as (service, origin):
        path, id_ = "/v1/robots/history", id_of(body)
        [version] = (await get(service, path, url=origin.url, version=id_))["versions"]
        assert (version["id"], version["text"]) == (id_, body.decode("utf-8", "replace"))
        by_digest = {"url": origin.url, "version": hashlib.sha256(body).hexdigest(), "as": "text"}
        raw = await service.client.get(path, params=by_digest)
        assert raw.content == body
        assert raw.headers["content-type"].startswith("text/plain")
        assert "default-src 'none'" in raw.headers["content-security-policy"]
        gone = (await versions(service, origin.url))[0]["id"]
        no_file = await service.client.get(path, params={"url": origin.url, "version": gone, "as": "text"})
        assert (no_file.status_code, no_file.json()["type"][-7:]) == (404, "no-file")


async def test_as_of_answers_by_the_version_and_rates_of_then(store_url: str) -> None:
    async with with_history(store_url, text(200, OLD), text(200, NEW)) as (service, origin):
        service.now += 60
        before = await service.allowed(f"{origin.url}/old", as_of=at(START + HOUR - 1))
        assert (before["verdict"], before["rate"]["interval"]) == ("disallow", 5.0)
        assert (before["robots"]["source"], before["robots"]["fetched_at"]) == ("history", at(START))
        assert (before["robots"]["recheck_at"], before["robots"]["age"]) == (None, None)
        after = await service.allowed(f"{origin.url}/old", as_of=at(START + HOUR))
        assert (after["verdict"], after["rate"]["interval"]) == ("allow", 9.0)
        assert (await service.allowed(f"{origin.url}/old"))["robots"]["source"] == "memory"


async def test_as_of_rates_are_of_then_unless_at_is_given(store_url: str) -> None:
    body = "User-agent: *\nRequest-rate: 1/60 1800-1900\nRequest-rate: 1/2\n"
    async with with_history(store_url, text(200, body), text(404)) as (service, origin):
        url, then = f"{origin.url}/x", at(START)
        assert (await service.allowed(url, as_of=then))["rate"]["interval"] == 60.0
        other = await service.allowed(url, as_of=then, at="2026-11-21T03:00:00Z", explain="true")
        assert other["rate"]["interval"] == 2.0
        assert other["explanation"]["schedule"][0]["start"] == "00:00"


async def test_as_of_answers_are_not_cached(store_url: str) -> None:
    async with with_history(store_url, text(200, OLD)) as (service, origin):
        query = {"url": origin.url, "agent": "A", "as_of": at(START)}
        response = await service.client.get("/v1/allowed", params=query)
        assert response.headers["cache-control"] == "no-store"


async def test_as_of_before_the_first_version_names_the_earliest(store_url: str) -> None:
    async with with_history(store_url, text(200, OLD)) as (service, origin):
        query = {"url": origin.url, "agent": "A", "as_of": at(START - 1)}
        response = await service.client.get("/v1/allowed", params=query)
        assert response.status_code == 404
        problem = response.json()
        assert problem["type"] == "urn:robots-decisions:problem:no-version"
        assert problem["earliest"] == at(START)
        assert "2026-11-21T18:29:59Z" in problem["detail"]


async def test_the_history_of_an_unknown_origin_is_empty_without_a_fetch(store_url: str) -> None:
    async with serve(text(200, OLD)) as origin, running(store_url) as service:
        assert await versions(service, origin.url) == []
        query = {"url": origin.url, "agent": "A", "as_of": at(START)}
        response = await service.client.get("/v1/allowed", params=query)
        assert (response.status_code, response.json()["earliest"]) == (404, None)
        assert (await service.client.get("/v1/robots/diff", params={"url": origin.url})).status_code == 404
        assert origin.requests == []


async def test_as_of_counts_no_visit(store_url: str, store_client: Redis) -> None:
    async with serve(text(200, OLD)) as origin, running(store_url) as service:
        await service.client.post("/v1/robots/refresh", params={"url": origin.url})
        await service.allowed(origin.url, agent="SeznamBot", as_of=at(START))
        await versions(service, origin.url)
    assert await store_client.keys("*:visits") == []


@pytest.mark.parametrize(
    ("path", "name", "value"),
    [
        ("/v1/allowed", "as_of", at(START + 1)),
        ("/v1/allowed", "as_of", "yesterday"),
        ("/v1/robots/history", "version", "not-hex"),
        ("/v1/robots/history", "as", "text"),
        ("/v1/robots/history", "as", "pdf"),
        ("/v1/robots/diff", "from", "yesterday"),
        ("/v1/robots/diff", "to", "abc"),
        ("/v1/robots/diff", "dialect", "klingon"),
        ("/v1/robots/diff", "url", "gopher://h/"),
    ],
)
async def test_invalid_input_is_named(store_url: str, path: str, name: str, value: str) -> None:
    async with running(store_url) as service:
        response = await service.client.get(path, params={"url": "http://h/", "agent": "A", name: value})
        assert response.status_code == 422
        named = "version" if (name, value) == ("as", "text") else name
        assert response.json()["parameter"] == named


async def test_diff_lists_gained_and_lost_paths_by_agent(store_url: str) -> None:
    async with with_history(store_url, text(200, OLD), text(200, NEW)) as (service, origin):
        answer = await get(service, "/v1/robots/diff", url=origin.url)
        assert (answer["from"]["id"], answer["to"]["id"], answer["dialect"]) == (id_of(OLD), id_of(NEW), "rfc9309")
        everyone, named = answer["agents"]
        assert (everyone["agents"], named["agents"]) == (["*"], ["bar", "Foo"])
        assert everyone["added"] == [{"directive": "disallow", "pattern": "/new", "line": 2}]
        assert everyone["paths"] == [
            {
                "path": "/new",
                "gained": False,
                "before": {"verdict": "allow", "reason": "no_match", "rule": None},
                "after": {"verdict": "disallow", "reason": "rule", "rule": everyone["added"][0]},
            },
            {
                "path": "/old",
                "gained": True,
                "before": {"verdict": "disallow", "reason": "rule", "rule": everyone["removed"][0]},
                "after": {"verdict": "allow", "reason": "no_match", "rule": None},
            },
        ]
        assert [side[0]["rate"]["interval"] for side in everyone["rates"].values()] == [5.0, 9.0]
        assert [(it["path"], it["gained"]) for it in named["paths"]] == [("/", False)]
        assert named["rates"]["after"] == [{"start": "00:00", "end": "24:00", "rate": None}]
        assert (answer["sitemaps_added"], answer["sitemaps_removed"]) == (["http://h/s"], [])
        assert answer["truncated"] is False
        assert "text" not in {**answer["from"], **answer["to"]}


async def test_versions_to_compare_are_named_by_id_or_instant(store_url: str) -> None:
    async with with_history(store_url, text(200, OLD), text(200, NEW), text(404)) as (service, origin):
        path, url = "/v1/robots/diff", origin.url
        by_instant = await get(service, path, url=url, from_=at(START + 1), to=at(START + HOUR))
        by_id = await get(service, path, url=url, from_=id_of(OLD), to=id_of(NEW))
        assert by_instant == by_id
        back = await get(service, path, url=url, from_=id_of(NEW), to=id_of(OLD))
        assert back["agents"][0]["added"] == by_id["agents"][0]["removed"]
        to_none = await get(service, path, url=url)
        assert (to_none["from"]["id"], to_none["to"]["status"]) == (id_of(NEW), 404)
        assert to_none["agents"][0]["paths"][0]["after"] == {"verdict": "allow", "reason": "unavailable", "rule": None}
        same = await get(service, path, url=url, from_=id_of(OLD), to=id_of(OLD), dialect="google")
        assert (same["agents"], same["dialect"]) == ([], "google")
        unknown = await service.client.get(path, params={"url": url, "from": "0123456789abcdef"})
        assert (unknown.status_code, unknown.json()["type"][-10:]) == (404, "no-version")
        too_early = await service.client.get(path, params={"url": url, "from": at(START - 1)})
        assert (too_early.status_code, too_early.json()["earliest"]) == (404, at(START))


async def test_diff_needs_an_earlier_version(store_url: str) -> None:
    async with with_history(store_url, text(200, OLD)) as (service, origin):
        response = await service.client.get("/v1/robots/diff", params={"url": origin.url})
        assert (response.status_code, response.json()["type"][-10:]) == (404, "no-version")


async def test_history_includes_versions_of_other_processes(store_url: str) -> None:
    async with with_history(store_url, redirect("/moved"), text(200, OLD), text(200, NEW)) as (service, origin):
        found = await versions(service, origin.url)
        assert [version["final_url"] for version in found] == [None, f"{origin.url}/moved"]
        async with running(store_url) as other:
            other.now = service.now
            await until(lambda: versions(other, origin.url), lambda it: it == found)


async def test_without_the_store_only_the_history_is_unavailable() -> None:
    async with serve(text(200, OLD)) as origin, running("unix:///nonexistent/valkey.sock") as service:
        assert (await service.allowed(f"{origin.url}/old"))["verdict"] == "disallow"
        for path in ("/v1/robots/history", "/v1/robots/diff"):
            response = await service.client.get(path, params={"url": origin.url})
            assert (response.status_code, response.json()["type"][-10:]) == (503, "store-down")
            assert response.headers["retry-after"] == "1"
        query = {"url": origin.url, "agent": "A", "as_of": at(START)}
        assert (await service.client.get("/v1/allowed", params=query)).status_code == 503


async def test_diff_of_large_files_does_not_delay_others(store_url: str) -> None:
    def large(mark: str) -> str:
        return "User-agent: *\n" + "".join(f"Disallow: /{mark}{at}*x*y{at}\n" for at in range(9000))

    ask: Callable[[Service, str], Any] = lambda service, url: service.client.get(  # noqa: E731
        "/v1/robots/diff", params={"url": url}
    )
    async with with_history(store_url, text(200, large("p")), text(200, large("q"))) as (service, origin):
        slow = asyncio.create_task(ask(service, origin.url))
        answered = 0
        while not slow.done():
            assert (await service.client.get("/healthz")).status_code == 200
            answered += 1
            await asyncio.sleep(0.01)
        assert answered > 1
        assert slow.result().json()["truncated"] is True
        assert await counted(service, "robots_helper_calls_total", outcome="done") == 1


EVERYTHING = """User-agent: a
User-agent: B\u00e9
Disallow: /x # why
Allow: /\u00e9"\\
Crawl-delay: 2
Request-rate: 1/10s 0800-2000
Disallow: /%ff

User-agent: *
Disallow: /y*z

Sitemap: http://h/s\u00e9.xml
"""


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("lines", [0, 3000], ids=["small", "large"])
async def test_a_diff_matches_its_schema(store_url: str, dialect: str, lines: int) -> None:
    comments = "# comment\n" * lines
    async with with_history(store_url, text(200, comments), text(200, EVERYTHING + comments)) as (service, origin):
        there = await get(service, "/v1/robots/diff", url=origin.url, dialect=dialect)
        newest, oldest = (it["id"] for it in await versions(service, origin.url))
        query = {"url": origin.url, "dialect": dialect, "from": newest, "to": oldest}
        back = await get(service, "/v1/robots/diff", **query)
        in_helper = await counted(service, "robots_helper_calls_total", outcome="done")
    for answer in (there, back):
        old, new = ({**answer[side], "from_": answer[side]["from"]} for side in ("from", "to"))
        model = DiffOut.model_validate({**answer, "from_": old, "to": new})
        without = {"from_": {"text"}, "to": {"text"}}
        assert model.model_dump(mode="json", by_alias=True, exclude=without) == answer
    assert [it["agents"] for it in there["agents"]] == [it["agents"] for it in back["agents"]]
    assert there["agents"]
    assert in_helper == (2 if lines else 0)


async def test_batch_and_stream_answer_each_item_by_the_version_of_its_time(store_url: str) -> None:
    async with with_history(store_url, text(200, OLD), text(200, NEW)) as (service, origin):
        service.now += 60
        item = {"url": f"{origin.url}/old", "agent": "ExampleBot"}
        times = [at(START + HOUR), at(START), None, at(START - 1), at(START + HOUR - 1), at(START + 10 * HOUR), "noon"]
        items = [item if time is None else {**item, "as_of": time} for time in times]
        batch = (await service.client.post("/v1/allowed", json={"items": items})).json()["answers"]
        lines = "".join(json.dumps(item) + "\n" for item in items)
        headers = {"Content-Type": "application/x-ndjson"}
        streamed = await service.client.post("/v1/allowed", content=lines, headers=headers)
        stream = [json.loads(line) for line in streamed.text.splitlines()]
        for answers in (batch, stream):
            found = [(it.get("verdict"), it.get("version")) for it in answers]
            assert found[:3] == [("allow", id_of(NEW)), ("disallow", id_of(OLD)), ("allow", id_of(NEW))]
            assert found[4] == found[1]
            assert [answers[n]["problem"]["type"].rpartition(":")[2] for n in (3, 5, 6)] == [
                "no-version",
                "bad-as_of",
                "bad-as_of",
            ]
            assert answers[3]["problem"]["earliest"] == at(START)
            assert answers[1]["rate"]["interval"] == 5.0
        single = await service.allowed(f"{origin.url}/old", as_of=at(START))
        assert single == batch[1]
        explained = await service.allowed(f"{origin.url}/old", as_of=at(START), explain="true")
        assert explained["version"] == id_of(OLD)
        assert len(origin.requests) == 2


async def test_a_changing_comment_keeps_the_history(store_url: str) -> None:
    replies = [text(200, NEW), *[text(200, f"# generated {number}\n{OLD}") for number in range(30)]]
    async with with_history(store_url, *replies) as (service, origin):
        newest, first = await until(lambda: versions(service, origin.url), lambda found: len(found) == 2)
        assert (newest["from"], newest["until"], newest["seen"]) == (at(START + HOUR), None, at(START + 30 * HOUR))
        assert first["id"] == id_of(NEW)
        for hour in (0, 1, 12, 29, 30):
            answer = await service.allowed(f"{origin.url}/old", as_of=at(START + hour * HOUR))
            assert answer["verdict"] == ("disallow" if hour else "allow")


async def test_batch_reads_the_history_of_an_origin_once(store_url: str, store_client: Redis) -> None:
    async def reads() -> int:
        commands: dict[str, Any] = await store_client.info("commandstats")
        return int(commands["cmdstat_getrange"]["calls"])

    async with with_history(store_url, text(200, OLD), text(200, NEW)) as (service, origin):
        item = {"url": f"{origin.url}/old", "agent": "ExampleBot", "as_of": at(START)}
        # The history is written in the background, which reads it.
        await until(lambda: store_client.keys("robots:*:history"), bool)
        await service.client.post("/v1/allowed", json={"items": [item]})
        before = await reads()
        await service.client.post("/v1/allowed", json={"items": [item]})
        once = await reads() - before
        await service.client.post("/v1/allowed", json={"items": [item] * 500})
        assert once > 0
        assert await reads() == before + 2 * once


async def test_items_about_the_past_fail_alone_without_the_store() -> None:
    async with serve(text(200, OLD)) as origin, running("unix:///nonexistent/valkey.sock") as service:
        item = {"url": f"{origin.url}/old", "agent": "A"}
        items = [{**item, "as_of": at(START)}, item]
        past, now = (await service.client.post("/v1/allowed", json={"items": items})).json()["answers"]
        assert (past["problem"]["status"], past["problem"]["type"][-10:]) == (503, "store-down")
        assert past["problem"]["retry_after"] == 1
        assert now["verdict"] == "disallow"


async def test_a_batch_about_the_past_reads_each_version_once(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    read = cached_files._read

    def note(version: Version) -> CachedFile | None:
        seen.append(version.id)
        return read(version)

    monkeypatch.setattr(cached_files, "_read", note)
    async with with_history(store_url, text(200, OLD), text(200, NEW), text(200, OLD)) as (service, origin):
        await until(lambda: versions(service, origin.url), lambda found: len(found) == 3)
        service.now += 120
        instants = [at(START + hours * HOUR + 60) for hours in (0, 2, 1, 0, 1, 2, 0)]
        items = [{"url": f"{origin.url}/old", "agent": "a", "as_of": instant} for instant in instants]
        response = await service.client.post("/v1/allowed", json={"items": items})
        answers = response.json()["answers"]
    assert [answer["verdict"] for answer in answers] == [
        "disallow" if instant != at(START + HOUR + 60) else "allow" for instant in instants
    ]
    assert seen == [id_of(OLD), id_of(NEW), id_of(OLD)]
