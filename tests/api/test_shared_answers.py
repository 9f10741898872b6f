"""Answers with `fields` that depend on the page by nothing but the rule that decides are made once for each rule."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from redis.asyncio import Redis

from app.api.answers.encoding import BY_RULE, AnswerEncoder
from app.api.answers.schema import AnswerOut
from app.cache.visits import key
from app.decisions.evaluate import Decision
from app.decisions.shared_answers import ANSWERS
from robots_core.origin import Origin
from tests.api import overriding
from tests.api.service import START, Service, counted, running
from tests.origins import Exchange, serve, text
from tests.robots.cases import rows

pytestmark = pytest.mark.usefixtures("store_client")

RULES = "User-agent: *\nDisallow: /private/\nAllow: /private/open/\n"
FIELDS = "verdict,allowed,reason,partial,rule,group,rate,notes,version"
SUBSETS = [",".join(BY_RULE), FIELDS, "verdict,rule,rate", "rate", "verdict,url", "verdict,usage,explanation"]
AT_A_TIME = 500


async def ask(service: Service, items: Sequence[Any], fields: str | None = FIELDS) -> list[dict[str, Any]]:
    response = await service.client.post(
        "/v1/allowed", params={"fields": fields} if fields else {}, json={"items": items}
    )
    assert response.status_code == 200, response.text
    answers: list[dict[str, Any]] = response.json()["answers"]
    return answers


class Encodings:
    """Counts the answers that are encoded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        encode = AnswerEncoder.encode

        def counting(encoder: AnswerEncoder, decision: Decision, *args: Any, **named: Any) -> bytes:
            self.count += 1
            return encode(encoder, decision, *args, **named)

        monkeypatch.setattr(AnswerEncoder, "encode", counting)


async def test_the_cases_have_the_members_of_full_answers(store_url: str) -> None:
    bodies = list(dict.fromkeys(case["robots"] for case in (*rows("verdict-cases.jsonl"), *rows("rate-cases.jsonl"))))
    hosts = {body: f"h{number}.example" for number, body in enumerate(bodies)}
    by_host = {host: body for body, host in hosts.items()}

    async def answer(exchange: Exchange) -> None:
        found = re.search(rb"(?im)^host: ([^:\r]+)", exchange.head)
        assert found is not None
        await exchange.send(text(200, by_host[found[1].decode()]))

    async with serve(answer) as site, running(store_url, {host: ["127.0.0.1"] for host in by_host}) as service:

        def item(case: dict[str, Any], path: str) -> dict[str, str]:
            url = f"http://{hosts[case['robots']]}:{site.port}{path}"
            return {"url": url, "agent": case["agent"], "dialect": case["dialect"]}

        items = []
        for case in rows("verdict-cases.jsonl"):
            parts = urlsplit(case["url"])
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            items += [item(case, path), item(case, "/"), item(case, "/robots.txt"), item(case, "/a?b")]
        items += [item(case, path) for case in rows("rate-cases.jsonl") for path in ("/", "/a")]
        shared: Counter[str] = Counter()
        for first in range(0, len(items), AT_A_TIME):
            asked = items[first : first + AT_A_TIME]
            await ask(service, asked, None)
            expected = await ask(service, asked, None)
            for fields in SUBSETS:
                names = set(fields.split(","))
                kept = [{name: value for name, value in it.items() if name in names} for it in expected]
                for _ in range(2):
                    found = await ask(service, asked, fields)
                    assert found == kept, fields
                    assert [list(it) for it in found] == [[n for n in AnswerOut.model_fields if n in it] for it in kept]
            shared.update(answer["verdict"] for answer in expected)
        assert min(shared["allow"], shared["disallow"]) > AT_A_TIME / 2


async def test_one_answer_is_made_for_each_rule(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Encodings(monkeypatch)
    async with serve(text(200, RULES)) as site, running(store_url) as service:
        pages = ["/", "/a", "/private/a", "/private/open/a", "/private/b", "/b?c"]
        items = [{"url": f"{site.url}{page}", "agent": "ExampleBot"} for page in pages]
        await ask(service, items[:1])
        made.count = 0
        answers = await ask(service, items)
        assert [answer["verdict"] for answer in answers] == ["allow", "allow", "disallow", "allow", "disallow", "allow"]
        assert made.count == 3  # no rule, and two
        assert await ask(service, items) == answers
        assert made.count == 3
        await ask(service, items, "verdict")
        assert made.count == 6
        await ask(service, items, "verdict,url")
        assert made.count == 12
        labels = {"source": "memory", "dialect": "rfc9309"}
        name = "robots_decisions_total"
        assert await counted(service, name, verdict="disallow", reason="rule", **labels) == 8
        assert await counted(service, name, verdict="allow", reason="no_match", **labels) == 12


async def test_agents_and_dialects_share_none(store_url: str) -> None:
    rules = "User-agent: One\nDisallow: /a\n\nUser-agent: *\nAllow: /a\n\nUser-agent: two\nDisallow: /\n"
    async with serve(text(200, rules)) as site, running(store_url) as service:
        items = [
            {"url": f"{site.url}/a", "agent": agent, **more}
            for agent in ("One", "Two", "Three", ["Three", "Two"])
            for more in ({}, {"dialect": "draft1996"}, {"dialect": "google"}, {"purpose": "search"})
        ]
        await ask(service, items, None)
        expected = [{name: answer[name] for name in ("verdict", "rule")} for answer in await ask(service, items, None)]
        for _ in range(2):
            assert await ask(service, items, "verdict,rule") == expected
        assert len({json.dumps(it) for it in expected}) > 2


async def test_an_enforced_purpose_is_judged_by_page(store_url: str) -> None:
    rules = "User-agent: *\nAllow: /\nContent-Usage: train-ai=n\nContent-Usage: /open/ train-ai=y\n"
    async with serve(text(200, rules)) as site, running(store_url) as service:
        asked = {"agent": "ExampleBot", "purpose": "ai-train", "enforce": True}
        items = [{"url": f"{site.url}{path}", **asked} for path in ("/", "/open/", "/a")]
        plain = [{"url": f"{site.url}/a", "agent": "ExampleBot"}]
        for _ in range(3):
            answers = await ask(service, plain + items + plain, "verdict")
            assert [it["verdict"] for it in answers] == ["allow", "disallow", "allow", "disallow", "allow"]


async def test_an_override_counts_at_once(store_url: str) -> None:
    async with serve(text(200, RULES)) as site, running(store_url) as service:
        items = [{"url": f"{site.url}/{page}", "agent": "ExampleBot"} for page in range(3)]
        for _ in range(2):
            assert [it["verdict"] for it in await ask(service, items)] == ["allow"] * 3
        await overriding.put(service)
        assert [it["verdict"] for it in await ask(service, items)] == ["disallow"] * 3
        response = await service.client.delete("/v1/overrides/one")
        assert response.status_code == 204
        assert [it["verdict"] for it in await ask(service, items)] == ["allow"] * 3


async def test_a_rate_of_some_hours_changes_with_them(store_url: str) -> None:
    rules = "User-agent: *\nRequest-rate: 1/10 1800-1900\nRequest-rate: 1/20 1900-2000\nDisallow: /a\n"
    async with serve(text(200, rules)) as site, running(store_url) as service:
        items = [
            {"url": f"{site.url}/{page}", "agent": "SeznamBot", "dialect": "seznam", "max_age": 10**6}
            for page in range(3)
        ]
        await ask(service, items, "rate")
        found = []
        for _ in range(2):
            found.append(await ask(service, items, "rate"))
            service.now += 3600
        assert [it[2]["rate"]["declared_interval"] for it in found] == [10, 20]


async def test_every_decision_is_logged(store_url: str, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    async with serve(text(200, RULES)) as site, running(store_url, decision_log=str(log)) as service:
        items = [{"url": f"{site.url}/{page}", "agent": "ExampleBot"} for page in range(5)]
        await ask(service, items)
        await ask(service, items)
    logged = [json.loads(line) for line in log.read_text().splitlines()]
    assert sum("url" in line for line in logged) == 10


async def test_what_is_kept_is_bounded_and_stays(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Encodings(monkeypatch)
    rules = "User-agent: *\n" + "".join(f"Disallow: /{number}/\n" for number in range(2 * ANSWERS))
    async with serve(text(200, rules)) as site, running(store_url) as service:
        urls = [f"{site.url}/{number}/{page}" for page in range(2) for number in range(2 * ANSWERS)]
        items = [{"url": url, "agent": "ExampleBot"} for url in urls]
        await ask(service, items[:1])
        made.count = 0
        lines = [it["rule"]["line"] for it in await ask(service, items)]
        assert lines == 2 * [2 + number for number in range(2 * ANSWERS)]
        assert made.count == 3 * ANSWERS  # the first ones once, the others for each page
        await ask(service, items, "verdict")
        assert made.count == 6 * ANSWERS  # those of another form have taken their place
        await ask(service, items[:1])
        assert made.count == 6 * ANSWERS + 1


async def test_a_urls_text_ends_where_its_path_begins(store_url: str) -> None:
    rules = "User-agent: *\nDisallow: /a\nDisallow: /?b=/c\n"
    async with serve(text(200, rules)) as site, running(store_url) as service:
        rests = ["/b", "/a", "/a#b", "?b=/c", "?b=/a", "?b=/b", "#b/a", "", "/robots.txt", "/robots.txt?a", "//a"]
        items = [{"url": site.url + rest, "agent": "ExampleBot"} for rest in rests]
        await ask(service, items[:1])
        answers = await ask(service, 3 * items, "verdict,rule")
        lines = [it["rule"] and it["rule"]["line"] for it in answers]
        assert lines == 3 * [None, 2, 2, 3, None, None, None, None, None, None, None]


async def test_each_visit_counts_for_a_crawler_that_rechecks_by_visits(store_url: str, store_client: Redis) -> None:
    async with serve(text(200, RULES)) as site:
        async with running(store_url) as service:
            items = [{"url": f"{site.url}/{page}", "agent": "SeznamBot"} for page in range(20)]
            for _ in range(2):
                await ask(service, items, "verdict")
        tally = await store_client.get(key(Origin("http", "127.0.0.1", site.port)))
        assert tally == b"V1 40 %d %d" % (START, START)


async def test_every_item_counts_as_asked(store_url: str) -> None:
    async with serve(text(200, RULES)) as site, running(store_url) as service:
        items = [{"url": f"{site.url}/{page}", "agent": agent} for page in range(9) for agent in ("One", "Two")]
        for _ in range(3):
            await ask(service, items, "verdict")
        response = await service.client.get("/v1/origins", params={"order": "asked"})
        assert [row["asked"] for row in response.json()["origins"]] == [3 * len(items)]


async def test_what_cannot_be_read_fails_alone_as_without_fields(store_url: str) -> None:
    async with serve(text(200, RULES)) as site, running(store_url) as service:
        good = {"url": f"{site.url}/a", "agent": "ExampleBot"}
        bad = [
            {"url": "/a", "agent": "ExampleBot"},
            {"url": f"{site.url}/a", "agent": "(nobody)"},
            {"url": "/a", "agent": "(nobody)"},
            {"url": f"{site.url}/a"},
            {"url": "http://a\\@b/", "agent": "ExampleBot"},
        ]
        items = [good, *(item for it in bad for item in (it, good))]
        expected = (await ask(service, items, None))[1::2]
        assert all(list(it) == ["problem"] for it in expected)
        for _ in range(2):
            answers = await ask(service, items, "verdict")
            assert answers[1::2] == expected
            assert answers[::2] == [{"verdict": "allow"}] * (len(bad) + 1)
