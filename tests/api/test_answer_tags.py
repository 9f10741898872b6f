"""Entity tags of answers: each input that changes an answer changes its tag, and 304 says that nothing has changed."""

import json
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from app.auth.keys import new_key
from tests.api.service import START, Service, counted, running
from tests.faults.until import until
from tests.origins import LoopbackOrigin, serve, text

pytestmark = pytest.mark.usefixtures("store_client")

NEW = "the file with one more line"
RULES = """User-agent: ExampleBot
User-agent: AcmeBot
Disallow: /private/
Request-rate: 1/10s 0900-1845
Visit-time: 0600-2000
Content-Signal: ai-train=no

User-agent: *
Crawl-delay: 2
"""
OVERRIDE = {"action": "deny", "reason": "They asked us to stay away."}
PATHS = ("/v1/allowed", "/v1/robots")
VARYING = ("age", "source", "recheck_at")


class Tagged:
    """A service, and the question that is repeated."""

    def __init__(self, service: Service, origin: LoopbackOrigin) -> None:
        self.service = service
        self.origin = origin
        self.headers: dict[str, str] = {}
        self.query: dict[str, str] = {"url": f"{origin.url}/page", "agent": "ExampleBot"}

    async def ask(self, path: str = PATHS[0], **more: str) -> tuple[str, Any]:
        """The tag of an answer, and what it says besides the members that are not covered."""
        query = self.query if path == PATHS[0] else {"url": self.query["url"]}
        response = await self.service.client.get(path, params={**query, **more}, headers=self.headers)
        assert response.status_code == 200, response.text
        answer = response.json()
        answer["robots"] = {name: value for name, value in answer["robots"].items() if name not in VARYING}
        return response.headers["etag"], answer


Change = Callable[[Tagged], Awaitable[None]]


async def refresh(it: Tagged) -> None:
    it.service.now += 10
    assert (await it.service.client.post("/v1/robots/refresh", params={"url": it.origin.url})).is_success


async def put_override(it: Tagged, **more: object) -> None:
    body = {**OVERRIDE, "scope": it.origin.url, **more}
    assert (await it.service.client.put("/v1/overrides/a", json=body)).is_success


async def delay(it: Tagged) -> None:
    await put_override(it, action="delay", delay=60)


async def shadow(it: Tagged) -> None:
    it.query["explain"] = "true"
    await put_override(it, shadow=True)


async def at_the_rate_window(it: Tagged) -> None:
    it.service.now = START + 15 * 60  # 18:45


async def report_refusal(it: Tagged) -> None:
    body = {"url": it.query["url"], "agent": "ExampleBot", "max_wait": 3600}
    permit = (await it.service.client.post("/v1/permits", json=body)).json()["permit"]
    outcome = await it.service.client.post(f"/v1/permits/{permit}/outcome", json={"status": 403})
    assert outcome.is_success, outcome.text


def with_parameter(name: str, value: str) -> Change:
    async def change(it: Tagged) -> None:
        it.query[name] = value

    return change


CHANGES: Mapping[str, Change] = {
    NEW: refresh,
    "the same file, fetched again": refresh,
    "an override": put_override,
    "an override that delays": delay,
    "a shadow override": shadow,
    "the end of a window": at_the_rate_window,
    "a refused page": report_refusal,
    "dialect": with_parameter("dialect", "google"),
    "at": with_parameter("at", "2026-11-22T03:00:00Z"),
    "purpose": with_parameter("purpose", "ai-train"),
    "explain": with_parameter("explain", "true"),
    "agent": with_parameter("agent", "OtherBot"),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_tag_changes_with_the_answer(store_url: str, name: str) -> None:
    change, second = CHANGES[name], RULES + ("Sitemap: https://h.example/s.xml\n" if name == NEW else "")
    async with serve(text(200, RULES), text(200, second)) as origin, running(store_url) as service:
        it = Tagged(service, origin)
        before, answer = await it.ask()
        service.now += 3
        assert await it.ask() == (before, answer)  # nothing has changed but the age
        await change(it)
        after, changed = await it.ask()
        assert changed != answer
        assert after != before
        service.now += 3
        assert await it.ask() == (after, changed)


@pytest.mark.parametrize("second", [RULES, RULES + "Allow: /private/a\n"])
async def test_tag_of_a_file_changes_with_it(store_url: str, second: str) -> None:
    async with serve(text(200, RULES), text(200, second)) as origin, running(store_url) as service:
        it = Tagged(service, origin)
        before, answer = await it.ask(PATHS[1])
        assert await it.ask(PATHS[1]) == (before, answer)
        await refresh(it)
        after, changed = await it.ask(PATHS[1])
        assert (after != before, changed != answer) == (True, True)


async def test_removed_override_brings_the_tag_back(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        it = Tagged(service, origin)
        before = await it.ask()
        await put_override(it, expires_at="2026-11-21T18:40:00Z")
        assert await it.ask() != before
        assert (await service.client.delete("/v1/overrides/a")).is_success
        assert await it.ask() == before
        await put_override(it, scope="shop.example")
        assert await it.ask() == before
        await put_override(it, expires_at="2026-11-21T18:40:00Z")
        service.now = START + 600
        assert (await it.ask()) == before


async def test_tag_of_an_answer_by_an_operators_file_changes_with_its_rate(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        it = Tagged(service, origin)
        await it.ask()
        await put_override(it, action="robots", robots="User-agent: *\nRequest-rate: 1/5 0900-1831\n")
        response = await service.client.get(PATHS[0], params=it.query)
        assert response.headers["cache-control"] == "private, max-age=60"
        named = {"If-None-Match": response.headers["etag"]}
        service.now += 30
        response = await service.client.get(PATHS[0], params=it.query, headers=named)
        assert (response.status_code, response.headers["cache-control"]) == (304, "private, max-age=30")
        service.now += 30
        response = await service.client.get(PATHS[0], params=it.query, headers=named)
        assert (response.status_code, response.json()["rate"]) == (200, None)


async def test_visits_leave_the_tag_as_it_is(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        it = Tagged(service, origin)
        it.query["agent"] = "SeznamBot"  # its recheck model counts visits
        before = await it.ask()
        headers = {"If-None-Match": before[0]}
        for _ in range(3):
            service.now += 1
            assert await it.ask() == before
            assert (await service.client.get(PATHS[0], params=it.query, headers=headers)).status_code == 304


async def test_tag_changes_when_a_copy_becomes_stale(store_url: str) -> None:
    async with serve(text(200, RULES), text(503)) as origin, running(store_url) as service:
        it = Tagged(service, origin)
        it.query["at"] = "2026-11-21T18:30:00Z"
        before, answer = await it.ask()
        service.now += 3 * 86_400
        after, changed = await it.ask()
        assert (answer["robots"]["stale"], changed["robots"]["stale"]) == (False, True)
        assert after != before


async def test_all_processes_have_one_tag(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as one, running(store_url) as other:
        found = [await Tagged(service, origin).ask() for service in (one, other)]
        assert found[0] == found[1]
        for path in PATHS:
            assert await Tagged(one, origin).ask(path) == await Tagged(other, origin).ask(path)


@pytest.mark.parametrize(
    ("status", "more"), [(200, {"purposes": ("ai-train",)}), (403, {"on_forbidden": "deny"})], ids=["purposes", "403"]
)
async def test_tag_changes_with_the_settings(store_url: str, status: int, more: dict[str, Any]) -> None:
    async with serve(text(status, RULES)) as origin:
        async with running(store_url) as service:
            before, answer = await Tagged(service, origin).ask()
        async with running(store_url, **more) as service:
            after, changed = await Tagged(service, origin).ask()
        assert (after != before, changed != answer) == (True, True)


async def test_tag_changes_with_the_key_and_its_purposes(store_url: str, tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    keys = {name: new_key(name) for name in ("plain", "train", "enforcing")}
    more = {"plain": "", "train": 'purposes = ["ai-train"]\n'}
    more["enforcing"] = more["train"] + "enforce = true\n"
    file.write_text("".join(lines + more[name] for name, (_, lines) in keys.items()))
    async with serve(text(200, RULES)) as origin, running(store_url, api_keys_file=file) as service:
        it = Tagged(service, origin)
        found = []
        for secret, _ in keys.values():
            it.headers = {"Authorization": f"Bearer {secret}"}
            found.append(await it.ask())
            named = {**it.headers, "If-None-Match": found[-1][0]}
            response = await service.client.get(PATHS[0], params=it.query, headers=named)
            assert response.status_code == 304
        assert len({tag for tag, _ in found}) == 3
        # The tags of one key's answers are not those of another's.
        response = await service.client.get(
            PATHS[0], params=it.query, headers={**it.headers, "If-None-Match": found[0][0]}
        )
        assert (response.status_code, response.json()["verdict"]) == (200, "disallow")


async def test_tag_changes_with_the_agents_file(store_url: str, tmp_path: Path) -> None:
    file = tmp_path / "agents.toml"
    file.write_text("[agents.OtherBot]\n")
    async with serve(text(200, RULES)) as origin, running(store_url, agents_file=file) as service:
        it = Tagged(service, origin)
        it.query |= {"agent": "OtherBot", "url": f"{origin.url}/private/"}
        before, answer = await it.ask()
        named = {"If-None-Match": before}
        assert (await service.client.get(PATHS[0], params=it.query, headers=named)).status_code == 304
        file.write_text('[agents.OtherBot]\nchain = ["ExampleBot"]\n')
        os.kill(os.getpid(), signal.SIGHUP)
        await until(it.ask, lambda found: found[1] != answer)
        assert (await it.ask())[0] != before
        response = await service.client.get(PATHS[0], params=it.query, headers=named)
        assert (response.status_code, response.json()["verdict"]) == (200, "disallow")


@pytest.mark.parametrize(
    "lines",
    [
        "Request-rate: 1/10s 0900-1700\nRequest-rate: 1/5 1630-0200",
        "Request-rate: 1/10s 0000-2359\nVisit-time: 2200-0100",
        "Visit-time: 0600-0845\nVisit-time: 0700-1200\nCrawl-delay: 3",
        "Request-rate: 1/7\nCrawl-delay: 3",
        "\n".join(f"Request-rate: 1/{number} 0900-1700" for number in range(1, 1100)),
    ],
    ids=["rates", "midnight", "visits", "none", "too many"],
)
async def test_one_tag_stands_for_one_answer_all_day(store_url: str, lines: str) -> None:
    async with serve(text(200, f"User-agent: *\n{lines}\nDisallow: /a\n")) as origin, running(store_url) as service:
        it = Tagged(service, origin)
        answers: dict[str, set[str]] = {}
        for minutes in range(0, 20 * 60, 5):
            service.now = START + minutes * 60
            for seconds in (-1, 0):
                service.now = START + minutes * 60 + seconds
                tag, answer = await it.ask()
                answers.setdefault(tag, set()).add(json.dumps(answer))
        assert {len(different) for different in answers.values()} == {1}
        if len(lines) < 100:
            assert len(answers) <= 1 + 2 * lines.count("0-")  # one for each end of a window


@pytest.mark.parametrize(
    ("written", "status"),
    [
        ("{tag}", 304),
        ("{strong}", 304),
        ('"a", {tag}', 304),
        ('W/"a" ,{tag},"b"', 304),
        ("*", 304),
        (" * ", 304),
        ('"' + 50_000 * "a" + '", {tag}', 304),
        ('"a"', 200),
        ("", 200),
        ("{bare}", 200),
        ("{half}", 200),
        ('"*"', 200),
        (50_000 * '"', 200),
        (25_000 * '",', 200),
        ("W/" * 25_000, 200),
        ('"\xff"', 200),
    ],
)
async def test_rfc9110_if_none_match(store_url: str, written: str, status: int) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        it = Tagged(service, origin)
        for path in PATHS:
            tag, _ = await it.ask(path)
            strong = tag.removeprefix("W/")
            names = {"tag": tag, "strong": strong, "bare": strong.strip('"'), "half": strong[:20] + '"'}
            query = it.query if path == PATHS[0] else {"url": it.query["url"]}
            value = written
            for name, replacement in names.items():
                value = value.replace(f"{{{name}}}", replacement)
            headers = [(b"If-None-Match", value.encode("latin-1"))]
            response = await service.client.get(path, params=query, headers=headers)
            assert response.status_code == status
            two_lines = [(b"If-None-Match", b'"a"'), *headers]
            response = await service.client.get(path, params=query, headers=two_lines)
            assert response.status_code == (200 if "*" in written else status)


@pytest.mark.parametrize("path", PATHS)
async def test_304_has_the_fields_of_the_answer(store_url: str, path: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        it = Tagged(service, origin)
        query = it.query if path == PATHS[0] else {"url": it.query["url"]}
        await it.ask(path)
        for seconds in (0, 14 * 60 + 30, 10):
            service.now += seconds
            answer = await service.client.get(path, params=query)
            headers = {"If-None-Match": answer.headers["etag"]}
            for method in ("GET", "HEAD"):
                response = await service.client.request(method, path, params=query, headers=headers)
                assert (response.status_code, response.content) == (304, b"")
                ours = {name: value for name, value in response.headers.items() if name != "x-request-id"}
                assert ours == {name: answer.headers[name] for name in ("cache-control", "etag")}


async def test_304_counts_as_a_request_and_as_a_decision(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        it = Tagged(service, origin)
        tag, _ = await it.ask()
        headers = {"If-None-Match": tag}
        for _ in range(3):
            assert (await service.client.get(PATHS[0], params=it.query, headers=headers)).status_code == 304
        allowed = {"verdict": "allow", "reason": "no_match", "dialect": "rfc9309"}
        assert await counted(service, "robots_decisions_total", **allowed, source="fetched") == 1
        assert await counted(service, "robots_decisions_total", **allowed, source="memory") == 3
        assert await counted(service, "robots_requests_total", route=PATHS[0], method="GET", status="3xx") == 3


@pytest.mark.parametrize("status", [503, 429])
async def test_answer_without_a_file_has_no_tag(store_url: str, status: int) -> None:
    async with serve(text(status)) as origin, running(store_url) as service:
        query = {"url": f"{origin.url}/", "agent": "ExampleBot"}
        for path, asked in ((PATHS[0], query), (PATHS[1], {"url": query["url"]})):
            response = await service.client.get(path, params=asked, headers={"If-None-Match": "*"})
            assert (response.status_code, response.headers["cache-control"]) == (200, "no-store")
            assert "etag" not in response.headers


@pytest.mark.parametrize("seconds", [1, 60, 86_400])
async def test_answers_live_at_most_answer_seconds(store_url: str, seconds: int) -> None:
    reply = text(200, RULES.replace("0900-1845", "").replace("Visit-time", "Host"), {"Cache-Control": "max-age=3600"})
    async with serve(reply) as origin, running(store_url, answer_seconds=seconds) as service:
        it = Tagged(service, origin)
        for path in (*PATHS, "/v1/check"):
            query = it.query if path != PATHS[1] else {"url": it.query["url"]}
            response = await service.client.get(path, params=query)
            kept = int(response.headers["cache-control"].removeprefix("private, max-age="))
            assert kept == seconds if seconds < 3000 else 3000 < kept < 4000
            limited = await service.client.get(path, params={**query, "max_age": "0.5"})
            assert limited.headers["cache-control"] == "no-store"
