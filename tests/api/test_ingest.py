"""`PUT /v1/robots`: what a crawler fetched itself, read as the fetch reads it, and ordered by when it was observed."""

import base64
import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from app.auth.keys import Scope, new_key
from tests.api.service import START, Service, counted, running, slug
from tests.faults.until import until
from tests.origins import head, redirect, serve, text

pytestmark = pytest.mark.usefixtures("store_client")

OLD = "User-agent: *\nDisallow: /old\nCrawl-delay: 5\n"
NEW = "User-agent: *\nDisallow: /new\n\nUser-agent: Foo\nDisallow: /\nSitemap: http://h/s\n"
SITE = "https://www.example.com"  # which no test can fetch
DAY = 86_400
KEYS = {scope: new_key(scope, scope) for scope in Scope}


async def put(service: Service, url: str = SITE, *, profile: str | None = None, **members: Any) -> httpx.Response:
    sent = {"status": 200, "observed_at": at(service.now), "robots": OLD, **members}
    query = {"url": url} | ({} if profile is None else {"profile": profile})
    return await service.client.put(
        "/v1/robots", params=query, json={name: value for name, value in sent.items() if value is not None}
    )


async def took(service: Service, url: str = SITE, **members: Any) -> Any:
    response = await put(service, url, **members)
    assert response.status_code == 200, response.text
    return response.json()


async def get(service: Service, path: str, **query: str) -> Any:
    response = await service.client.get(path, params={name.rstrip("_"): value for name, value in query.items()})
    assert response.status_code == 200, response.text
    return response.json()


async def versions(service: Service, url: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await get(service, "/v1/robots/history", url=url))["versions"]
    return found


async def listed(service: Service) -> list[dict[str, Any]]:
    response = await service.client.get("/v1/changes", params={"after": "1970-01-01T00:00:00Z"})
    assert response.status_code == 200, response.text
    return [json.loads(line) for line in response.text.splitlines()]


def at(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def id_of(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:16]


def in_base64(body: bytes) -> dict[str, str | None]:
    return {"robots": None, "robots_base64": base64.b64encode(body).decode()}


async def test_a_copy_is_in_use_at_once_and_not_fetched_again(store_url: str) -> None:
    async with serve(text(200, NEW)) as origin, running(store_url) as service, running(store_url) as other:
        answer = await took(service, f"{origin.url}/any/page", observed_at=at(START - 3600))
        assert answer["ingested"] == {
            "version": id_of(OLD),
            "outcome": "successful",
            "cause": None,
            "observed_at": at(START - 3600),
            "in_use": True,
        }
        assert (answer["version"], answer["robots"]["source"]) == (id_of(OLD), "ingested")
        for one in (service, other):
            decided = await one.allowed(f"{origin.url}/old")
            assert (decided["verdict"], decided["version"]) == ("disallow", id_of(OLD))
            facts = decided["robots"]
            assert (facts["source"], facts["fetched_at"], facts["age"]) == ("ingested", at(START - 3600), 3600)
        assert origin.requests == []
        service.now += DAY  # a copy is fresh for a day from its observation, as one of this service
        assert (await service.allowed(f"{origin.url}/old"))["robots"]["source"] == "fetched"
        assert len(origin.requests) == 1


async def test_the_next_fetch_asks_for_the_whole_file(store_url: str) -> None:
    async with serve(text(200, NEW)) as origin, running(store_url) as service:
        await took(service, origin.url, headers=[["ETag", '"1"'], ["Last-Modified", "Sat, 21 Nov 2026 10:00:00 GMT"]])
        await get(service, "/v1/robots", url=origin.url, max_age="0")
        service.now += 600
        await get(service, "/v1/robots", url=origin.url, max_age="1")
        names = {line.partition(b":")[0].lower() for line in origin.requests[-1].splitlines()}
        assert not names & {b"if-none-match", b"if-modified-since"}


async def test_the_lifetime_of_the_response_is_obeyed(store_url: str) -> None:
    async with running(store_url) as service:
        answer = await took(service, headers=[["Cache-Control", "public"], ["Cache-Control", "max-age=600"]])
        assert at(START + 530) < answer["robots"]["recheck_at"] < at(START + 670)


class Sent(NamedTuple):
    """A response of a server: the status, the fields, and the body as sent."""

    status: int
    headers: Mapping[str, str]
    body: bytes


PLAIN, HTML = {"Content-Type": "text/plain"}, {"Content-Type": "text/html"}
PAGE = b"<!doctype html><html><body>Wait</body></html>"
LONG = b"User-agent: *\n" + b"Disallow: /x\n" * 60_000
RESPONSES = [
    *(
        Sent(status, headers, PAGE if headers == HTML else OLD.encode())
        for status in (
            *range(200, 207),
            226,
            299,
            300,
            *range(305, 307),
            *range(400, 420),
            429,
            451,
            499,
            500,
            503,
            599,
        )
        for headers in (PLAIN, HTML, {})
        if status not in (204, 205)  # they have no body
    ),
    Sent(200, {}, b""),
    Sent(200, PLAIN, "User-agent: *\nDisallow: /ü\n".encode("latin-1")),
    Sent(200, PLAIN, b"\xef\xbb\xbf" + OLD.encode()),
    Sent(200, PLAIN, LONG),
    Sent(200, PLAIN | {"Content-Encoding": "gzip"}, gzip.compress(OLD.encode())),
    Sent(200, PLAIN | {"Content-Encoding": "x-gzip"}, gzip.compress(LONG)),
    Sent(200, PLAIN | {"Content-Encoding": "deflate"}, zlib.compress(OLD.encode())),
    Sent(200, PLAIN | {"Content-Encoding": "identity"}, OLD.encode()),
    Sent(200, PLAIN | {"Content-Encoding": "gzip"}, OLD.encode()),
    Sent(200, PLAIN | {"cf-mitigated": "challenge"}, OLD.encode()),
    Sent(403, HTML | {"CF-Mitigated": "challenge"}, PAGE),
    Sent(503, {"Retry-After": "7200"}, b""),
    Sent(429, {"Retry-After": "Sat, 21 Nov 2026 20:30:00 GMT"}, b""),
]


@pytest.mark.parametrize("sent", RESPONSES, ids=lambda sent: f"{sent.status} {sent.headers} {len(sent.body)}"[:60])
async def test_a_response_is_read_as_the_fetch_reads_it(store_url: str, sent: Sent) -> None:
    members = {"status": sent.status, "headers": list(map(list, sent.headers.items())), **in_base64(sent.body)}
    async with (
        serve(head(sent.status, dict(sent.headers) | {"Content-Length": str(len(sent.body))}) + sent.body) as origin,
        running(store_url) as service,
    ):
        fetched = await get(service, "/v1/robots", url=origin.url, as_="facts")
        answer = await took(service, SITE, **members)
        compared = ("outcome", "status", "cause", "truncated", "fetched_at", "stale", "failing_since", "age")
        assert {name: answer["robots"][name] for name in compared} == {
            name: fetched["robots"][name] for name in compared
        }
        assert answer["version"] == fetched["version"] == answer["ingested"]["version"]
        assert answer["ingested"]["in_use"]
        assert (await service.allowed(f"{SITE}/old"))["reason"] == (await service.allowed(f"{origin.url}/old"))[
            "reason"
        ]
        # Delays are spread by the origin's name: both are within a tenth of the same.
        waits = [_seconds(it["robots"]["recheck_at"]) - START for it in (fetched, answer)]
        assert max(waits) / min(waits) < 1.25


def _seconds(instant: str) -> float:
    return datetime.fromisoformat(instant).timestamp()


async def test_an_earlier_copy_is_history_and_no_change(store_url: str) -> None:
    async with serve(text(200, NEW)) as origin, running(store_url) as service:
        await get(service, "/v1/robots", url=origin.url)
        service.now += 60
        answer = await took(service, origin.url, observed_at=at(START - DAY))
        assert answer["ingested"]["in_use"] is False
        assert (answer["version"], answer["robots"]["source"]) == (id_of(NEW), "memory")
        new, old = await until(lambda: versions(service, origin.url), lambda found: len(found) == 2)
        assert (new["id"], new["source"], new["until"]) == (id_of(NEW), "fetched", None)
        assert (old["id"], old["source"]) == (id_of(OLD), "ingested")
        assert (old["from"], old["seen"], old["until"]) == (at(START - DAY), at(START - DAY), at(START))
        past = await service.allowed(f"{origin.url}/old", as_of=at(START - 3600))
        assert (past["verdict"], past["version"], past["robots"]["source"]) == ("disallow", id_of(OLD), "ingested")
        assert await listed(service) == []


async def test_a_later_copy_is_a_change(store_url: str) -> None:
    async with serve(text(200, OLD)) as origin, running(store_url) as service:
        await get(service, "/v1/robots", url=origin.url)
        service.now += 60
        assert (await took(service, origin.url, robots=NEW))["ingested"]["in_use"]
        [change] = await until(lambda: listed(service), bool)
        assert (change["from"], change["to"]) == (id_of(OLD), id_of(NEW))


async def test_a_comment_that_always_changes_leaves_one_span(store_url: str, tmp_path: Path) -> None:
    """A hundred copies with a new comment each: one period of the history, and every instant has its answer."""
    began, texts = START - 29 * DAY, [f"# generated {number}\n{OLD}" for number in range(100)]
    async with running(store_url, archive=tmp_path) as service:
        for number, body in enumerate(texts):
            assert (await took(service, robots=body, observed_at=at(began + number * 1800)))["ingested"]["in_use"]
        [span] = await until(lambda: versions(service, SITE), lambda it: it[0]["from"] == at(began))
        assert (span["seen"], span["until"]) == (at(began + 99 * 1800), None)
        asked = [
            {"url": f"{SITE}/old", "agent": "a", "as_of": at(began + number * 1800 + 900)} for number in range(100)
        ]
        answers = (await service.client.post("/v1/allowed", json={"items": asked})).json()["answers"]
        assert {answer["verdict"] for answer in answers} == {"disallow"}
        await until(lambda: counted(service, "robots_archive_lag_seconds"), lambda lag: lag == 0)
        for body in texts[::10]:
            query = {"url": SITE, "version": id_of(body), "as": "text"}
            assert (await service.client.get("/v1/robots/history", params=query)).text == body


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0), (2, 0, 1), (0, 2, 1)])
async def test_the_order_of_arrival_does_not_matter(store_url: str, order: tuple[int, ...]) -> None:
    bodies = [OLD, NEW, OLD + "# again\n"]
    async with running(store_url) as service:
        for number in order:
            await took(service, robots=bodies[number], observed_at=at(START - 3600 * (3 - number)))
        assert (await service.allowed(f"{SITE}/"))["version"] == id_of(bodies[2])
        found = await until(lambda: versions(service, SITE), lambda it: len(it) == 3)
        assert [(it["id"], it["from"]) for it in reversed(found)] == [
            (id_of(body), at(START - 3600 * (3 - number))) for number, body in enumerate(bodies)
        ]


async def test_a_failure_keeps_the_copy_and_an_earlier_one_says_nothing(store_url: str) -> None:
    async with running(store_url) as service:
        await took(service)
        service.now += 60
        answer = await took(service, status=503, robots=None)
        assert (answer["ingested"]["outcome"], answer["ingested"]["version"]) == ("unreachable", None)
        assert answer["ingested"]["in_use"]
        assert (answer["version"], answer["robots"]["failing_since"]) == (id_of(OLD), at(START + 60))
        answer = await took(service, status=503, robots=None, observed_at=at(START - 60))
        assert not answer["ingested"]["in_use"]
        assert answer["robots"]["failing_since"] == at(START + 60)
        assert len(await versions(service, SITE)) == 1


@pytest.mark.parametrize("status", [200, 404])
async def test_a_file_from_before_failures_stands_in_for_them(store_url: str, status: int) -> None:
    """As for a fleet behind a proxy, whose service cannot fetch at all."""
    async with running(store_url) as service, running(store_url) as other:
        assert (await service.allowed(f"{SITE}/old"))["reason"] == "unreachable"
        service.now = other.now = START + 60
        answer = await took(service, observed_at=at(START - 3600), status=status)
        assert answer["ingested"]["in_use"] is (status == 200)
        for one in (service, other):
            decided = await one.allowed(f"{SITE}/old")
            assert decided["verdict"] == ("disallow" if status == 200 else "defer")
            assert (decided["robots"]["source"] == "ingested") is (status == 200)
        facts = (await service.allowed(f"{SITE}/old"))["robots"]
        assert facts["failing_since"] == at(START)  # the other process has not met the failure
        service.now += 29 * DAY
        assert (await service.allowed(f"{SITE}/old"))["verdict"] == ("disallow" if status == 200 else "defer")
        service.now += 2 * DAY
        assert (await service.allowed(f"{SITE}/old"))["verdict"] == "defer"


async def test_a_copy_from_before_thirty_days_is_of_the_past_alone(store_url: str, tmp_path: Path) -> None:
    async with serve(text(200, NEW)) as origin, running(store_url, archive=tmp_path) as service:
        answer = await took(service, origin.url, observed_at=at(START - 400 * DAY))
        assert (answer["ingested"]["in_use"], answer["version"], answer["robots"]["outcome"]) == (False, None, None)
        assert (await service.allowed(f"{origin.url}/old"))["version"] == id_of(NEW)

        async def past() -> httpx.Response:
            query = {"url": f"{origin.url}/old", "agent": "a", "as_of": at(START - 399 * DAY)}
            return await service.client.get("/v1/allowed", params=query)

        found = await until(past, lambda response: response.status_code == 200)
        assert (found.json()["verdict"], found.json()["version"]) == ("disallow", id_of(OLD))


async def test_an_earlier_sighting_of_a_known_version_reaches_the_archive(store_url: str, tmp_path: Path) -> None:
    async with serve(text(200, OLD)) as origin, running(store_url, archive=tmp_path) as service:
        await get(service, "/v1/robots", url=origin.url)
        await took(service, origin.url, observed_at=at(START - 400 * DAY))

        async def logged() -> bytes:
            return b"".join(file.read_bytes() for file in (tmp_path / "spans").rglob("*.ndjson"))

        lines = await until(logged, lambda it: it.count(b"\n") == 2)
        assert lines.count(b'"ingested":"operator"') == 1


async def test_a_purge_is_later_than_a_copy_from_before_it(store_url: str) -> None:
    async with running(store_url) as service:
        await took(service)
        service.now += 60
        assert (await service.client.delete("/v1/robots", params={"url": SITE})).status_code == 204
        answer = await took(service, observed_at=at(START + 1))
        assert (answer["ingested"]["in_use"], answer["version"]) == (False, None)
        service.now += 60
        assert (await took(service))["ingested"]["in_use"]


async def test_a_clock_that_is_a_little_ahead_counts_as_now(store_url: str) -> None:
    async with running(store_url) as service:
        answer = await took(service, observed_at=at(START + 59))
        assert answer["ingested"]["observed_at"] == answer["robots"]["fetched_at"] == at(START)
        refused = await put(service, observed_at=at(START + 61))
        assert (refused.status_code, slug(refused)) == (422, "bad-observed_at")
        assert "the service's time is 2026-11-21T18:30:00" in refused.json()["detail"]


async def test_a_copy_of_a_profile_is_for_its_crawlers(store_url: str, tmp_path: Path) -> None:
    agents = tmp_path / "agents.toml"
    agents.write_text('[agents.ExampleBot]\nprofile = "own"\n[profiles.own]\nuser_agent = "ExampleBot/1.0"\n')
    async with serve(text(200, NEW)) as origin, running(store_url, agents_file=agents) as service:
        await took(service, origin.url, profile="own")
        assert (await service.allowed(f"{origin.url}/", "ExampleBot"))["version"] == id_of(OLD)
        assert (await service.allowed(f"{origin.url}/", "OtherBot"))["version"] == id_of(NEW)
        refused = await put(service, origin.url, profile="unknown")
        assert (refused.status_code, slug(refused)) == (422, "bad-profile")


async def test_the_file_of_a_redirect_is_that_of_the_origin_asked(store_url: str) -> None:
    async with serve(redirect("/")) as origin, running(store_url) as service:
        answer = await took(service, origin.url, final_url="https://cdn.example.com/r.txt")
        assert answer["robots"]["final_url"] == "https://cdn.example.com/r.txt"
        answer = await took(service, origin.url, final_url=f"{origin.url}/robots.txt")
        assert answer["robots"]["final_url"] is None


async def test_the_mark_is_in_the_log_and_the_metrics(store_url: str, tmp_path: Path) -> None:
    log = tmp_path / "decisions.ndjson"
    async with running(store_url, decision_log=str(log)) as service:
        await took(service)
        await service.allowed(f"{SITE}/old")
        labels = {"verdict": "disallow", "reason": "rule", "dialect": "rfc9309", "source": "ingested"}
        assert await counted(service, "robots_decisions_total", **labels) == 1
    assert '"source":"ingested"' in log.read_text()


@pytest.mark.parametrize(
    ("members", "type_", "said"),
    [
        *(({"status": status}, "bad-status", "final_url") for status in (301, 302, 303, 307, 308)),
        ({"status": 304}, "bad-status", "still current"),
        *(({"status": status}, "bad-request", "status") for status in (100, 199, 600, 0, -1, "200", True, 200.5)),
        ({"observed_at": "yesterday"}, "bad-observed_at", "'yesterday'"),
        ({"observed_at": None}, "bad-request", "observed_at"),
        ({"observed_at": "2999-01-01T00:00:00Z"}, "bad-observed_at", "in the future"),
        ({"observed_at": "1970-01-01T00:00:00+00:01"}, "bad-observed_at", "between 1970 and 9998"),
        ({"observed_at": "0001-01-01T00:00:00+14:00"}, "bad-observed_at", "between 1970 and 9998"),
        ({"robots": None}, "bad-robots", "missing"),
        ({"robots_base64": "AAAA"}, "bad-robots", "not as both"),
        ({"robots": None, "robots_base64": "%"}, "bad-robots_base64", "base64"),
        ({"headers": [["Content-Encoding", "deflate"]]}, "bad-robots", "leave out Content-Encoding"),
        ({"headers": [["Content-Encoding", "compress"]]}, "bad-robots", "content coding compress"),
        (
            {"headers": [["Content-Encoding", "gzip"]], **in_base64(gzip.compress(b"a" * 100)[:-9])},
            "bad-robots",
            "ends",
        ),
        (
            {"headers": [["Content-Encoding", "gzip"]], **in_base64(gzip.compress(b"") * 110_000)},
            "bad-robots",
            "more bytes than a file needs",
        ),
        ({"headers": [["Naïve", "a"]]}, "bad-headers", "ASCII"),
        ({"headers": [["a", "€"]]}, "bad-headers", "ISO 8859-1"),
        ({"headers": [["a"]]}, "bad-request", "headers"),
        ({"headers": {"a": "b"}}, "bad-request", "headers"),
        ({"headers": [["a", "b"]] * 201}, "bad-request", "headers"),
        ({"final_url": "ftp://example.com/"}, "bad-final_url", "http"),
        ({"final_url": "/robots.txt"}, "bad-final_url", "http"),
        ({"unknown": 1}, "bad-request", "unknown"),
    ],
)
async def test_wrong_values_are_refused_by_name(store_url: str, members: dict[str, Any], type_: str, said: str) -> None:
    async with running(store_url) as service:
        response = await put(service, **members)
        assert (response.status_code, slug(response)) == (422, type_), response.text
        assert said in response.json()["detail"]
        assert (await service.client.get("/v1/robots/history", params={"url": SITE})).json()["versions"] == []


async def test_the_scope_ingest_opens_this_route_alone(store_url: str, tmp_path: Path) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text("".join(lines for _, lines in KEYS.values()))
    async with running(store_url, api_keys_file=keys) as service:
        wanted = {Scope.READ: (403, 403), Scope.INGEST: (200, 403), Scope.ADMIN: (200, 204)}
        for scope, (key, _) in KEYS.items():
            service.client.headers["Authorization"] = f"Bearer {key}"
            purge = await service.client.delete("/v1/robots", params={"url": SITE})
            assert ((await put(service)).status_code, purge.status_code) == wanted[scope]
            assert (await service.client.get("/v1/agents")).status_code == 200
    assert set(wanted) == set(Scope)


async def test_without_keys_only_the_operator_may(store_url: str) -> None:
    async with running(store_url) as service:
        del service.client.headers["Authorization"]
        response = await put(service)
        assert (response.status_code, slug(response)) == (401, "no-key")


async def test_a_failure_that_was_sent_is_what_was_known_then(store_url: str) -> None:
    """The service's own failure of today does not stand in for it: in answers, in the history, in bundles."""
    async with serve() as origin:
        url = f"{origin.url}/p"  # nothing listens there from now on
    async with running(store_url) as service:
        sent = {"status": 503, "observed_at": at(START - 2 * DAY), "robots": "", "headers": []}
        response = await service.client.put("/v1/robots", params={"url": url}, json=sent)
        assert response.status_code == 200, response.text
        now = await service.allowed(url)
        assert (now["verdict"], now["robots"]["cause"], now["robots"]["status"]) == ("defer", "connection", None)
        as_of = at(START - DAY)
        then = await service.allowed(url, as_of=as_of)
        assert (then["verdict"], then["robots"]["cause"], then["robots"]["status"]) == ("defer", "server_error", 503)
        assert then["robots"]["failing_since"] == then["robots"]["fetched_at"] == sent["observed_at"]
        summary = then["explanation"]["summary"]
        assert f"the server answered 503 at {sent['observed_at']}; no copy" in summary
        listed = (await service.client.get("/v1/robots/history", params={"url": url})).json()["versions"]
        assert [(it["status"], it["cause"], it["source"]) for it in listed] == [(503, "server_error", "ingested")]
        line = json.dumps({"url": url, "as_of": as_of})
        row = await service.client.post("/v1/bundle", content=line, headers={"Content-Type": "application/x-ndjson"})
        assert row.json()["outcome"] == "503"


async def test_a_copy_divides_nothing_between_fetches_that_agree(store_url: str, tmp_path: Path) -> None:
    async with serve(text(200, NEW)) as origin, running(store_url, archive=tmp_path) as service:
        await get(service, "/v1/robots", url=origin.url)
        for later in (60, 120):
            service.now = START + later
            await service.client.post("/v1/robots/refresh", params={"url": origin.url})
        # One that agrees would make the rest of the past a caller's.
        assert (await took(service, origin.url, robots=NEW))["ingested"]["in_use"]
        service.now += 60
        sent = await took(service, origin.url, robots=OLD, observed_at=at(START + 30))
        assert not sent["ingested"]["in_use"]
        for _ in range(2):
            decided = await service.allowed(f"{origin.url}/old", as_of=at(START + 30))
            assert (decided["verdict"], decided["version"]) == ("allow", id_of(NEW))
            await until(lambda: counted(service, "robots_archive_lag_seconds"), lambda lag: lag == 0)
        [version] = await versions(service, origin.url)
        assert version["id"] == id_of(NEW)


async def test_of_two_copies_of_one_instant_one_is_in_use(store_url: str) -> None:
    async with running(store_url) as service:
        answers = [await took(service, robots=body, observed_at=at(START - 60)) for body in (OLD, NEW, OLD)]
        assert [answer["ingested"]["version"] for answer in answers] == [id_of(OLD), id_of(NEW), id_of(OLD)]
        for answer in answers:
            assert answer["ingested"]["in_use"] == (answer["version"] == answer["ingested"]["version"])


async def test_the_fraction_of_an_instant_counts(store_url: str) -> None:
    second = at(START - 60).removesuffix("Z")
    async with running(store_url) as service:
        assert (await took(service, robots=NEW, observed_at=second + ".5Z"))["ingested"]["in_use"]
        earlier = await took(service, robots=OLD, observed_at=second + ".25Z")
        later = await took(service, robots=OLD, observed_at=second + ".75Z")
        assert (earlier["ingested"]["in_use"], later["ingested"]["in_use"]) == (False, True)
