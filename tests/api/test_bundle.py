"""`POST /v1/bundle`: a row for each line, from store and history, and by fetching if that is wanted."""

import asyncio
import base64
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

import robots_core
from app.api.routes.bundle import BUNDLE_WINDOW
from app.decisions.bundle_rows import BundleRow, BundleRows, RowQuestion
from app.fetch.response import REDIRECTS
from robots_core.robots.access import BODY_LIMIT
from robots_core.times import instant
from tests.api.service import START, Service, counted, running, slug
from tests.faults.until import until_so
from tests.origins import Exchange, redirect, serve, text

pytestmark = pytest.mark.usefixtures("store_client")

RULES = "User-agent: *\nDisallow: /private/\n"
PROFILES = '[agents.AcmeBot]\nprofile = "acme"\n[profiles.acme]\nuser_agent = "AcmeBot/2.0"\n'
LINES = {"Content-Type": "application/x-ndjson"}
DAY = 86_400
REFUSED_HOSTS = ("[::1]", "0.0.0.0", "[::ffff:10.0.0.1]", "10.0.0.1", "169.254.169.254")


async def post(service: Service, *lines: object, **headers: str) -> httpx.Response:
    content = b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)
    return await service.client.post("/v1/bundle", content=content, headers={**LINES, **headers})


async def rows(service: Service, *lines: object) -> Sequence[dict[str, Any]]:
    response = await post(service, *lines)
    assert (response.status_code, response.headers["content-type"]) == (200, LINES["Content-Type"])
    return [json.loads(line) for line in response.text.splitlines()]


def problem(row: dict[str, Any]) -> tuple[str, str]:
    return row["problem"]["type"].rpartition(":")[2], row["problem"]["detail"]


async def test_row_has_the_file_and_its_time(store_url: str) -> None:
    async with running(store_url) as service, serve(text(200, RULES)) as origin:
        await service.allowed(f"{origin.url}/")
        service.now += 3600
        [row] = await rows(service, {"url": f"{origin.url}/any?page"})
        assert len(origin.requests) == 1
    assert row.pop("valid_until") > instant(START + DAY / 2)
    assert row == {
        "origin": origin.url,
        "profile": None,
        "valid_from": instant(START),
        "outcome": "200",
        "version": hashlib.sha256(RULES.encode()).hexdigest()[:16],
        "truncated": False,
        "body": base64.b64encode(RULES.encode()).decode(),
    }


@pytest.mark.parametrize(
    ("answer", "outcome", "has_version"),
    [
        (text(404), "404", True),
        (text(403), "403", True),
        (text(503), "503", False),
        (text(429), "429", False),
        (b"nonsense\r\n\r\n", "bad_response", False),
    ],
)
async def test_outcome_without_a_file(store_url: str, answer: bytes, outcome: str, has_version: bool) -> None:
    async with running(store_url) as service, serve(answer) as origin:
        [row] = await rows(service, {"url": origin.url, "fetch": True})
    assert (row["outcome"], row["body"], row["truncated"]) == (outcome, None, False)
    assert (row["version"] is not None) is has_version


@pytest.mark.parametrize(
    ("answers", "outcome", "verdict"),
    [
        *(([text(status)], "bad_response", "defer") for status in (206, 300, 304, 305, 306, 399, 600, 999)),
        *(([text(status)], "bad_response", "defer") for status in REDIRECTS),  # without a Location
        *(([redirect("ftp://a.example/", status)], "refused_redirect", "allow") for status in REDIRECTS),
        *(([redirect("/robots.txt", status)], "redirect_loop", "allow") for status in REDIRECTS),
        *(([redirect(f"http://{host}/robots.txt")], "unreachable_redirect", "defer") for host in REFUSED_HOSTS),
        ([text(403, "<p>", {"Content-Type": "text/html"})], "403", "allow"),
        ([text(503, "<p>", {"Content-Type": "text/html"})], "503", "defer"),
        ([text(404, "", {"cf-mitigated": "challenge"})], "challenge", "defer"),
        ([text(202, "<title>Human?</title>", {"Content-Type": "text/html"})], "challenge", "defer"),
        ([b""], "connection", "defer"),
    ],
)
async def test_outcome_decides_as_the_service(
    store_url: str, answers: Sequence[bytes], outcome: str, verdict: str
) -> None:
    async with running(store_url) as service, serve(*answers) as origin:
        [row] = await rows(service, {"url": origin.url, "fetch": True})
        found = [await service.allowed(f"{origin.url}{path}") for path in ("/", "/robots.txt")]
    assert (row["outcome"], row["body"], found[0]["verdict"]) == (outcome, None, verdict)
    file = robots_core.outcome(row["outcome"])
    assert file.version == row["version"] == found[0]["version"]
    for path, answer in zip(("/", "/robots.txt"), found, strict=True):
        decision = file.decide(path, "ExampleBot")
        assert (decision.verdict, decision.reason) == (answer["verdict"], answer["reason"])


async def test_fetches_only_what_is_wanted_and_missing(store_url: str) -> None:
    async with running(store_url) as service, serve(text(200, RULES)) as origin:
        [missing] = await rows(service, {"url": origin.url})
        assert problem(missing) == (
            "no-file",
            f"{origin.url}/robots.txt is not stored; ask with fetch to have it fetched.",
        )
        assert origin.requests == []
        fetched, known = await rows(service, {"url": origin.url, "fetch": True}, {"url": origin.url})
        assert fetched == known
        assert len(origin.requests) == 1
        service.now += 3600
        again, refreshed = await rows(
            service, {"url": origin.url, "fetch": True}, {"url": origin.url, "fetch": True, "max_age": 60}
        )
        assert again == known
        assert refreshed["valid_until"] > known["valid_until"]
        assert len(origin.requests) == 2


async def test_a_fetch_that_lasts_is_named(store_url: str) -> None:
    async def stall(exchange: Exchange) -> None:
        await exchange.stall()

    async with running(store_url) as service, serve(stall) as origin:
        [row] = await rows(service, {"url": origin.url, "fetch": True, "wait": 0.1})
    assert problem(row) == ("no-file", f"{origin.url}/robots.txt is still being fetched; ask again.")


async def test_past_rows_are_of_the_version_in_use_then(store_url: str) -> None:
    answers = [text(200, RULES), text(404)]

    async def each(exchange: Exchange) -> None:
        await exchange.send(answers[len(origin.requests) > 1])

    async with running(store_url) as service, serve(each) as origin:
        await service.allowed(f"{origin.url}/")
        service.now += 2 * DAY
        await service.allowed(f"{origin.url}/")
        first, between, last, before = await rows(
            service,
            *(
                {"url": origin.url, "as_of": instant(START + seconds), "fetch": True}
                for seconds in (10, DAY, 2 * DAY, -1)
            ),
        )
        assert len(origin.requests) == 2
    assert (first["outcome"], first["valid_from"], first["valid_until"]) == (
        "200",
        instant(START),
        instant(START + 10),
    )
    assert (between["outcome"], between["valid_until"]) == ("200", instant(START + DAY))
    assert (last["outcome"], last["valid_from"]) == ("404", instant(START + 2 * DAY))
    assert problem(before)[0] == "no-version"
    assert base64.b64decode(first["body"]) == RULES.encode()


async def test_profiles_have_files_of_their_own(store_url: str, tmp_path: Path) -> None:
    async def by_agent(exchange: Exchange) -> None:
        await exchange.send(text(200, RULES) if b"AcmeBot" in exchange.head else text(404))

    file = tmp_path / "agents.toml"
    file.write_text(PROFILES)
    async with running(store_url, agents_file=file) as service, serve(by_agent) as origin:
        asked = {"url": origin.url, "fetch": True}
        plain, acme, wrong = await rows(service, asked, {**asked, "profile": "acme"}, {**asked, "profile": "other"})
    assert [(row["origin"], row["profile"], row["outcome"]) for row in (plain, acme)] == [
        (origin.url, None, "404"),
        (origin.url, "acme", "200"),
    ]
    assert problem(wrong)[0] == "bad-profile"


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff\xfe\x00# not UTF-8\nDisallow: /\xe9\n", b"User-agent: *\nDisallow: /x" + b"a" * BODY_LIMIT],
    ids=["empty", "not UTF-8", "truncated"],
)
async def test_body_is_what_the_service_reads(store_url: str, body: bytes) -> None:
    reply = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    async with running(store_url) as service, serve(reply) as origin:
        [row] = await rows(service, {"url": origin.url, "fetch": True})
    assert base64.b64decode(row["body"]) == body[:BODY_LIMIT]
    assert row["truncated"] is (len(body) > BODY_LIMIT)


async def test_bad_lines_fail_alone(store_url: str) -> None:
    async with running(store_url) as service, serve(text(404)) as origin:
        good = {"url": origin.url, "fetch": True}
        bad = [
            ({"url": "nonsense"}, "bad-url", "'nonsense' is not an absolute URL"),
            ({"url": origin.url, "as_of": "noon"}, "bad-as_of", "'noon' is not an RFC 3339 instant"),
            ({"url": origin.url, "as_of": instant(START + 60)}, "bad-as_of", "is in the future"),
            ({**good, "fetch": 1}, "bad-request", "valid boolean"),
            ({**good, "wait": 61}, "bad-request", "less than or equal to 60"),
            ({"url": origin.url, "agent": "ExampleBot"}, "bad-request", "agent"),
            ({}, "bad-request", "url"),
            ("x", "bad-item", "An item must be an object with the member url."),
            (b"{\n", "bad-request", "The line is not valid JSON"),
        ]
        found = await rows(service, good, *(line for line, _, _ in bad), good)
    assert [row.get("outcome") for row in (found[0], found[-1])] == ["404", "404"]
    for row, (line, kind, detail) in zip(found[1:-1], bad, strict=True):
        assert problem(row)[0] == kind, line
        assert detail in problem(row)[1], line
    assert found[1]["problem"]["line"] == 2


async def test_only_lines_of_json_are_read(store_url: str) -> None:
    async with running(store_url) as service:
        response = await post(service, {"url": "http://h/"}, **{"Content-Type": "application/json"})
        unknown = await service.client.post("/v1/bundle?fetch=1", content=b"", headers=LINES)
    assert (response.status_code, slug(response)) == (415, "unsupported-media-type")
    assert response.headers["accept"] == LINES["Content-Type"]
    assert (unknown.status_code, slug(unknown)) == (422, "bad-request")


async def test_rows_are_no_decisions_and_keep_memory_as_it_was(store_url: str) -> None:
    async with running(store_url) as one, running(store_url) as other, serve(text(200, RULES)) as origin:
        await one.allowed(f"{origin.url}/")
        [row] = await rows(other, {"url": origin.url})
        assert row["outcome"] == "200"
        decided = await counted(
            other, "robots_decisions_total", verdict="allow", reason="no_match", source="store", dialect="rfc9309"
        )
        assert decided == 0
        assert other.app.state["services"].decider.files.usage == (0, 0)


async def test_few_lines_are_read_ahead_of_their_rows(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[RowQuestion] = []
    gate = asyncio.Event()
    now = BundleRows.now

    async def wait(self: BundleRows, question: RowQuestion) -> BundleRow:
        asked.append(question)
        await gate.wait()
        return await now(self, question)

    monkeypatch.setattr(BundleRows, "now", wait)
    async with running(store_url) as service:
        lines = [{"url": f"https://h{number}.example"} for number in range(3 * BUNDLE_WINDOW)]
        sending = asyncio.create_task(rows(service, *lines))
        await until_so(lambda: len(asked) >= BUNDLE_WINDOW)
        for _ in range(100):
            await asyncio.sleep(0)
        assert len(asked) == BUNDLE_WINDOW
        gate.set()
        assert len(await sending) == len(lines)
