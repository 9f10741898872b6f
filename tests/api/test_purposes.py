"""Spec I10 by the API: purposes of requests, keys and settings, answered, counted and, where that is set, enforced."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.auth.keys import new_key
from tests.api.service import Service, counted, running, slug
from tests.origins import serve, text

pytestmark = pytest.mark.usefixtures("store_client")

ROBOTS = """User-agent: *
Content-Signal: search=yes, ai-train=no
Content-Usage: /open/ train-ai=y
Disallow: /closed
License: https://h.example/licence.xml
"""
YES, NO = ("yes", "content-signal", 2), ("no", "content-signal", 2)
UNSTATED = ("unstated", None, None)
CLOSED = ("no", "disallow", 4)


def states(answer: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    return {name: (it["state"], it["directive"], it["line"]) for name, it in answer["purposes"].items()}


async def get(service: Service, url: str, query: str, **headers: str) -> httpx.Response:
    return await service.client.get(f"/v1/allowed?agent=ExampleBot&url={url}{query}", headers=headers)


async def judged(service: Service, purpose: str, state: str, *, enforced: bool = False) -> float:
    labels = {"purpose": purpose, "state": state, "enforced": str(enforced).lower()}
    return await counted(service, "robots_purposes_judged_total", **labels)


async def test_purposes_are_answered_and_leave_the_verdict_alone(store_url: str) -> None:
    async with serve(text(200, ROBOTS)) as origin, running(store_url) as service:
        answer = (await get(service, f"{origin.url}/p", "&purpose=ai-train&purpose=search&purpose=ai-input")).json()
        assert states(answer) == {"search": YES, "ai-input": UNSTATED, "ai-train": NO}
        assert (answer["verdict"], answer["reason"]) == ("allow", "no_match")
        plain = (await get(service, f"{origin.url}/p", "")).json()
        assert "purposes" not in plain
        said = "the site permits search (line 2), says nothing of ai-input and refuses ai-train (line 2)"
        summary = {"summary": f"No rule in the group for * matches this URL, so it is allowed; {said}."}
        apart = {"purposes": answer["purposes"], "robots": answer["robots"], "explanation": summary}
        assert {**plain, **apart} == answer
        answer = (await get(service, f"{origin.url}/closed", "&purpose=search&explain=true")).json()
        assert (states(answer), answer["reason"]) == ({"search": CLOSED}, "rule")
        assert answer["licenses"] == ["https://h.example/licence.xml"]
        assert await judged(service, "ai-train", "no") == 1
        assert await judged(service, "search", "no") == 1
        assert await judged(service, "search", "yes") == 1
        assert await counted(
            service,
            "robots_decisions_total",
            verdict="disallow",
            reason="usage",
            source="memory",
            dialect="rfc9309",
        ) == 0  # fmt: skip


async def test_unknown_purpose_is_refused_with_the_known_ones(store_url: str) -> None:
    url = "http://10.0.0.1/"
    async with running(store_url) as service:
        body = {"url": url, "agent": "a", "purpose": ["training"]}
        test = {"robots": "", "urls": [url], "agents": ["a"], "purpose": ["training"]}
        responses = [
            await get(service, url, "&purpose=search&purpose=training"),
            await service.client.post("/v1/permits", json=body),
            await service.client.post("/v1/test", json=test),
        ]
        problems = [response.json() for response in responses]
        assert [response.status_code for response in responses] == [422] * 3
        batch = await service.client.post("/v1/allowed", json={"items": [body]})
        problems.append(batch.json()["answers"][0]["problem"])
        for problem in problems:
            assert problem["value"] == "training"
            assert all(purpose in problem["detail"] for purpose in ("search", "ai-input", "ai-train"))
            assert problem["parameter"].startswith("purpose")
        for query in ("&purpose=", "&purpose=search&purpose=search&purpose=search&purpose=search"):
            assert (await get(service, url, query)).status_code == 422


async def test_every_way_to_ask_judges_purposes(store_url: str) -> None:
    async with serve(text(200, ROBOTS)) as origin, running(store_url) as service:
        items: list[dict[str, Any]] = [
            {"url": f"{origin.url}/p", "agent": "ExampleBot", "purpose": ["ai-train"]},
            {"url": f"{origin.url}/open/p", "agent": "ExampleBot", "purpose": "search"},
            {"url": f"{origin.url}/p", "agent": "ExampleBot"},
        ]
        expected = [{"ai-train": NO}, {"search": YES}, None]
        batch = (await service.client.post("/v1/allowed", json={"items": items})).json()["answers"]
        lines = "\n".join(map(json.dumps, items))
        stream = await service.client.post(
            "/v1/allowed", content=lines, headers={"Content-Type": "application/x-ndjson"}
        )
        permits = (await service.client.post("/v1/permits/batch", json={"items": items})).json()["permits"]
        for answers in (batch, list(map(json.loads, stream.text.splitlines())), permits):
            assert [states(it) if "purposes" in it else None for it in answers] == expected
        assert await judged(service, "ai-train", "no") == 3


async def test_a_question_may_enforce_its_purpose(store_url: str) -> None:
    """Only ever stricter: false leaves what the settings enforce."""
    async with serve(text(200, ROBOTS)) as origin, running(store_url) as service:
        url = f"{origin.url}/p"
        item = {"url": url, "agent": "ExampleBot", "purpose": "ai-train"}
        items: list[dict[str, Any]] = [
            item | {"enforce": True},
            item | {"enforce": True, "purpose": "search"},
            item | {"enforce": False},
            item,
        ]
        batch = (await service.client.post("/v1/allowed", json={"items": items})).json()["answers"]
        permits = (await service.client.post("/v1/permits/batch", json={"items": items})).json()["permits"]
        queries = ("ai-train&enforce=true", "search&enforce=true", "ai-train&enforce=false", "ai-train")
        got = [(await get(service, url, f"&purpose={query}")).json() for query in queries]
        pages: list[dict[str, Any]] = [
            {"agents": [it["agent"]], **{name: it[name] for name in it if name != "agent"}} for it in items
        ]
        indexing = [(await service.client.post("/v1/indexing", json=it)).json() for it in pages]
        for answers in (batch, permits, got, indexing):
            assert [it["reason"] for it in answers] == ["usage", "no_match", "no_match", "no_match"]
        checks = [await service.client.get(f"/v1/check?agent=a&url={url}&purpose={query}") for query in queries]
        assert [it.status_code for it in checks] == [403, 204, 204, 204]
        assert (await get(service, url, "&enforce=true")).json()["reason"] == "no_match"
    async with serve(text(200, ROBOTS)) as origin, running(store_url, enforce_purposes=True) as service:
        answer = (await get(service, f"{origin.url}/p", "&purpose=ai-train&enforce=false")).json()
        assert answer["reason"] == "usage"
    async with serve(text(200, ROBOTS)) as origin, running(store_url, purposes=("ai-train",)) as service:
        assert (await get(service, f"{origin.url}/p", "")).json()["reason"] == "no_match"
        assert (await get(service, f"{origin.url}/p", "&enforce=true")).json()["reason"] == "usage"


async def test_an_allow_ends_with_what_the_site_says_of_the_purpose(store_url: str) -> None:
    """Encoded anew for each purpose, also where the file states nothing."""
    async with serve(text(200, ROBOTS)) as origin, serve(text(200, "")) as silent, running(store_url) as service:
        ends = {
            f"{origin.url}/p&purpose=ai-train": "; the site refuses ai-train (line 2).",
            f"{origin.url}/p&purpose=search": "; the site permits search (line 2).",
            f"{origin.url}/p&purpose=ai-input": "; the site says nothing of ai-input.",
            f"{origin.url}/p": "so it is allowed.",
            f"{origin.url}/closed&purpose=ai-train": "disallows this URL.",
            f"{silent.url}/p&purpose=ai-train": "; the site says nothing of ai-train.",
            f"{silent.url}/p": "so this URL is allowed.",
        }
        for url, end in 2 * list(ends.items()):
            answer = (await get(service, url, "")).json()
            assert answer["explanation"]["summary"].endswith(end), (url, answer["explanation"])


async def test_key_enforces_and_another_observes(store_url: str, tmp_path: Path) -> None:
    trainer, trainer_lines = new_key("trainer")
    observer, observer_lines = new_key("observer")
    plain, plain_lines = new_key("plain")
    keys = tmp_path / "keys.toml"
    purposes = 'purposes = ["ai-train"]\n'
    keys.write_text(f"{trainer_lines}{purposes}enforce = true\n{observer_lines}{purposes}{plain_lines}")
    async with serve(text(200, ROBOTS)) as origin, running(store_url, api_keys_file=keys) as service:
        url = f"{origin.url}/p"

        async def asked(key: str, query: str = "") -> dict[str, Any]:
            answer: dict[str, Any] = (await get(service, url, query, **{"X-API-Key": key})).json()
            return answer

        answer = await asked(trainer)
        assert (answer["verdict"], answer["allowed"], answer["reason"]) == ("disallow", False, "usage")
        assert (answer["rule"], states(answer)) == (None, {"ai-train": NO})
        assert answer["explanation"]["summary"] == (
            "The site refuses ai-train by line 2 (content-signal), and the caller's policy enforces that."
        )
        assert answer["usage"]["content_signal"] == {"search": "yes", "ai-train": "no"}
        answer = await asked(observer)
        assert (answer["verdict"], states(answer)) == ("allow", {"ai-train": NO})
        assert "purposes" not in await asked(plain)
        # A purpose that is named replaces those of the key, but not whether they are enforced.
        answer = await asked(trainer, "&purpose=search")
        assert (answer["verdict"], states(answer)) == ("allow", {"search": YES})
        assert (await asked(plain, "&purpose=ai-train"))["verdict"] == "allow"
        item = {"url": url, "agent": "ExampleBot"}
        headers = {"X-API-Key": trainer}
        permit = (await service.client.post("/v1/permits", json=item, headers=headers)).json()
        assert (permit["verdict"], permit["reason"], permit["permit"]) == ("disallow", "usage", None)
        batch = (await service.client.post("/v1/allowed", json={"items": [item]}, headers=headers)).json()
        assert batch["answers"][0]["reason"] == "usage"
        assert await judged(service, "ai-train", "no", enforced=True) == 3
        assert await judged(service, "ai-train", "no") == 2
        labels = {"verdict": "disallow", "reason": "usage", "source": "memory", "dialect": "rfc9309"}
        assert await counted(service, "robots_decisions_total", **labels) == 2


async def test_settings_are_the_policy_of_callers_without_one(store_url: str) -> None:
    settings: dict[str, Any] = {"purposes": ("ai-train",), "enforce_purposes": True}
    async with serve(text(200, ROBOTS)) as origin, running(store_url, **settings) as service:
        assert (await service.allowed(f"{origin.url}/p"))["reason"] == "usage"
        assert (await service.allowed(f"{origin.url}/open/p"))["reason"] == "usage"
        assert (await service.allowed(f"{origin.url}/p", purpose="search"))["verdict"] == "allow"
        assert (await service.allowed(f"{origin.url}/robots.txt"))["reason"] == "implicit"
        closed = await service.allowed(f"{origin.url}/closed")
        assert (closed["reason"], closed["rule"]["line"]) == ("rule", 4)


async def test_statements_of_an_override_count_in_place_of_the_file(store_url: str) -> None:
    settings: dict[str, Any] = {"purposes": ("ai-train",), "enforce_purposes": True}
    async with serve(text(200, ROBOTS)) as origin, running(store_url, **settings) as service:
        own = "User-agent: *\nContent-Signal: ai-train=yes\n"
        override = {"scope": "127.0.0.1", "action": "robots", "robots": own, "reason": "licensed"}
        response = await service.client.put("/v1/overrides/licensed", json=override)
        assert response.status_code in (200, 201), response.text
        answer = await service.allowed(f"{origin.url}/p")
        assert (answer["verdict"], answer["reason"]) == ("allow", "overridden")
        assert states(answer) == {"ai-train": ("yes", "content-signal", 2)}


async def test_a_file_that_cannot_be_fetched_states_nothing(store_url: str) -> None:
    settings: dict[str, Any] = {"purposes": ("ai-train",), "enforce_purposes": True}
    async with serve(text(503, "")) as origin, running(store_url, **settings) as service:
        answer = await service.allowed(f"{origin.url}/p")
        assert (answer["verdict"], states(answer)) == ("defer", {"ai-train": UNSTATED})


async def test_pasted_file_is_tested_for_purposes(store_url: str) -> None:
    body: dict[str, Any] = {
        "robots": ROBOTS,
        "urls": ["https://h.example/p", "https://h.example/closed"],
        "agents": ["ExampleBot"],
        "purpose": ["search", "ai-train"],
    }
    async with running(store_url) as service:
        answer = (await service.client.post("/v1/test", json=body)).json()
        assert [states(row) for row in answer["rows"]] == [
            {"search": YES, "ai-train": NO},
            {"search": CLOSED, "ai-train": CLOSED},
        ]
        assert [row["reason"] for row in answer["rows"]] == ["no_match", "rule"]
        assert answer["licenses"] == ["https://h.example/licence.xml"]
        assert [it["line"] for it in answer["rows"][0]["purposes"].values()] == [2, 2]
        enforced = (await service.client.post("/v1/test", json={**body, "enforce": True})).json()
        assert [(row["verdict"], row["reason"]) for row in enforced["rows"]] == [
            ("disallow", "usage"),
            ("disallow", "rule"),
        ]
        simulated = {**body, "enforce": True, "outcome": {"status": 503, "for": "1h"}}
        row = (await service.client.post("/v1/test", json=simulated)).json()["rows"][0]
        assert (row["reason"], {entry["reason"] for entry in row["timeline"][:1]}) == ("usage", {"usage"})
        plain = (await service.client.post("/v1/test", json={**body, "purpose": None})).json()
        assert all("purposes" not in row for row in plain["rows"])
        assert await judged(service, "ai-train", "no") == 0


async def test_lines_of_statements_are_answered_for_each_path(store_url: str) -> None:
    async with serve(text(200, ROBOTS)) as origin, running(store_url) as service:
        for _ in range(2):  # the second answers come from fragments that are kept
            usage = (await service.allowed(f"{origin.url}/p"))["usage"]
            assert usage["lines"] == {"content_usage": {}, "content_signal": {"search": 2, "ai-train": 2}}
            usage = (await service.allowed(f"{origin.url}/open/p"))["usage"]
            assert (usage["content_usage"], usage["lines"]["content_usage"]) == ({"train-ai": "y"}, {"train-ai": 3})
            assert (await service.allowed(f"{origin.url}/closed"))["usage"]["content_usage"] == {}


async def test_problem_of_a_purpose_has_the_slug_of_bad_requests(store_url: str) -> None:
    async with running(store_url) as service:
        response = await get(service, "http://10.0.0.1/", "&purpose=x")
        assert (slug(response), response.json()["parameter"]) == ("bad-request", "purpose[0]")
