"""`POST /v1/permits`: the decision and the slot in one answer, and the outcomes that callers report."""

import asyncio
import base64
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from app.api.routes.batch import ITEMS
from app.api.routes.permits import retry_after
from app.auth.keys import new_key
from app.pacing.redis_pacer import keys_of
from app.pacing.slots import PaceKey
from tests.api.service import START, Service, running
from tests.exposition import value
from tests.faults.proxy import proxy
from tests.faults.until import until
from tests.origins import head, serve, text

pytestmark = pytest.mark.usefixtures("store_client")

RULES = "User-agent: *\nDisallow: /private/\nRequest-rate: 1/5s\n"
SLOT_MEMBERS = {"pool", "bound", "permit", "go_at", "wait", "interval", "retry_after", "degraded"}


async def permit(service: Service, url: str, agent: object = "ExampleBot", **members: object) -> dict[str, Any]:
    response = await service.client.post("/v1/permits", json={"url": url, "agent": agent, **members})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def permits(service: Service, items: list[Any]) -> list[dict[str, Any]]:
    response = await service.client.post("/v1/permits/batch", json={"items": items})
    assert response.status_code == 200, response.text
    answers: list[dict[str, Any]] = response.json()["permits"]
    return answers


async def outcome(service: Service, text: str, **members: object) -> dict[str, Any]:
    response = await service.client.post(f"/v1/permits/{text}/outcome", json=members)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def seconds_until(slot: dict[str, Any], service: Service) -> float:
    """Seconds from the service's clock, which stands still, to `go_at`."""
    return datetime.fromisoformat(slot["go_at"]).timestamp() - service.now


async def test_a_permit_is_the_answer_of_allowed_and_a_slot(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        await service.allowed(f"{origin.url}/a")
        allowed = await service.allowed(f"{origin.url}/a")
        first = await permit(service, f"{origin.url}/a")
        assert {name: value for name, value in first.items() if name not in SLOT_MEMBERS} == allowed
        second = await permit(service, f"{origin.url}/b")
        assert (first["interval"], first["retry_after"], first["degraded"]) == (5.0, None, False)
        goes = [datetime.fromisoformat(it["go_at"]) for it in (first, second)]
        assert 4.998 <= (goes[1] - goes[0]).total_seconds() <= 5.002
        assert len(first["go_at"]) == len("2026-11-21T18:30:00.000Z")


async def test_the_robots_txt_fetch_counts_as_a_document(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        service.now = time.time()  # the store has its own clock
        slot = await permit(service, f"{origin.url}/a")
        assert slot["wait"] <= 5
        assert seconds_until(slot, service) == pytest.approx(5, abs=0.002)


async def test_only_allow_has_a_slot(store_url: str) -> None:
    nothing = dict.fromkeys(SLOT_MEMBERS) | {"degraded": False}
    async with serve(text(200, RULES)) as origin, serve(text(503)) as down, running(store_url) as service:
        closed, unknown = [await permit(service, f"{one.url}/private/a") for one in (origin, down)]
        assert (closed["verdict"], unknown["verdict"]) == ("disallow", "defer")
        assert unknown["retry_at"] is not None
        for answer in (closed, unknown):
            assert {name: answer[name] for name in SLOT_MEMBERS} == nothing


async def test_an_origin_without_a_file_is_paced_by_the_floor(store_url: str) -> None:
    async with serve(text(404)) as origin, running(store_url, pace_floor=2.5) as service:
        assert (await permit(service, f"{origin.url}/a"))["interval"] == 2.5


async def test_a_slot_too_far_away_is_not_reserved(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        await permit(service, f"{origin.url}/a", cost=10)
        late = [await permit(service, f"{origin.url}/a", max_wait=20) for _ in range(2)]
        for answer in late:
            assert answer["allowed"] is True
            assert (answer["permit"], answer["go_at"]) == (None, None)
            assert 45 < answer["wait"] <= 55
        # Each has a turn of its own, when a slot for it is within its max_wait.
        turns = [answer["retry_after"] for answer in late]
        assert turns[0] == pytest.approx(late[0]["wait"] - 20, abs=1e-5)
        assert turns[1] == pytest.approx(late[1]["wait"] - 20 + 5, abs=1e-5)


async def test_agents_are_paced_apart_and_compared_without_case(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        service.now = time.time()
        slots = [
            await permit(service, f"{origin.url}/a", agent, max_wait=60)
            for agent in ("ExampleBot", "examplebot/2.0 (+http://example.com/)", ["NewBot", "ExampleBot"])
        ]
        assert [seconds_until(slot, service) for slot in slots] == pytest.approx([5, 10, 5], abs=0.002)


async def test_a_delay_override_sets_the_interval(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        body = {"scope": origin.url, "action": "delay", "delay": 30, "reason": "it asked for it"}
        response = await service.client.put("/v1/overrides/slow", json=body)
        assert response.status_code < 300, response.text
        answer = await permit(service, f"{origin.url}/a", max_wait=60)
        assert answer["rate"]["interval"] == answer["interval"] == 30


async def test_floor_and_cap_of_the_domain_table_bound_the_pace(store_url: str, tmp_path: Path) -> None:
    table = tmp_path / "table.toml"
    table.write_text('"127.0.0.1" = {floor = 7}\n"a.test" = {cap = 2, floor = 0.5}\n')
    async with serve(text(200, RULES)) as origin:
        names = {"a.test": [str(origin.address)]}
        async with running(store_url, names, recheck_file=table) as service:
            assert (await permit(service, f"{origin.url}/a"))["interval"] == 7
            assert (await permit(service, f"http://a.test:{origin.port}/a"))["interval"] == 2


async def test_a_batch_answers_in_order_and_a_bad_item_fails_alone(store_url: str) -> None:
    names = {"other.example": ["127.0.0.1"]}
    async with serve(text(200, RULES)) as one, serve(text(404)) as other, running(store_url, names) as service:
        good = {"url": f"{one.url}/a", "agent": "ExampleBot", "max_wait": 60}
        items: list[Any] = [
            good,
            {"url": "nonsense", "agent": "A"},
            {"url": f"http://other.example:{other.port}/a", "agent": "ExampleBot"},
            {**good, "max_wait": 3601},
            {**good, "cost": 0},
            {**good, "caller": "a b"},
            {**good, "at": "2026-11-21T18:30:00Z"},
            None,
            {**good, "url": f"{one.url}/private/"},
            good,
        ]
        answers = await permits(service, items)
        problems = [answer["problem"]["parameter"] for answer in answers if "problem" in answer]
        assert problems == ["url", "max_wait", "cost", "caller", "at", "item"]
        assert [answer.get("verdict") for answer in answers[::2]] == ["allow", "allow", None, None, "disallow"]
        assert answers[9]["wait"] - answers[0]["wait"] == pytest.approx(5, abs=0.5)
        assert answers[2]["interval"] == 1


async def test_one_batch_is_fair_between_its_callers(store_url: str) -> None:
    async with serve(text(404)) as origin, running(store_url) as service:
        item = {"url": f"{origin.url}/a", "agent": "ExampleBot", "max_wait": 3600}
        answers = await permits(service, [{**item, "caller": "many"}] * 100 + [{**item, "caller": "single"}])
        assert answers[-1]["wait"] < 4
        assert answers[98]["wait"] > 90


async def test_one_request_is_not_behind_a_hundred_of_another_caller(store_url: str) -> None:
    async with serve(text(404)) as origin, running(store_url) as service:
        item = {"url": f"{origin.url}/a", "agent": "ExampleBot", "max_wait": 3600}
        await permits(service, [{**item, "caller": "many"}] * 100)
        waits = [(await permit(service, item["url"], max_wait=3600, caller="single"))["wait"] for _ in range(3)]  # type: ignore[arg-type]
        # What is booked ahead is one round of the others.
        assert max(waits) < 105


async def test_too_many_items_and_invalid_bodies_are_refused(store_url: str) -> None:
    async with running(store_url) as service:
        for body, slug in (
            (json.dumps({"items": [{}] * (ITEMS + 1)}), "too-many-items"),
            ("", "bad-request"),
            ("[]", "bad-item"),
            ('{"items": 5}', "bad-request"),
            ('{"items": [], "url": "http://a/"}', "bad-request"),
            ('{"url": "http://a/", "agent": "a", "max_wait": NaN}', "bad-request"),
            ('{"url": "http://a/", "agent": "a", "max_wait": "10"}', "bad-request"),
            ('{"url": "http://a/", "agent": []}', "bad-request"),
            ('{"url": "http://a/", "agent": "()"}', "bad-agent"),
            ('{"url": "a", "agent": "a"}', "bad-url"),
            ('{"url": "http://a/", "agent": "a", "dialect": "latin"}', "bad-dialect"),
        ):
            path = "/v1/permits/batch" if "items" in body else "/v1/permits"
            response = await service.client.post(path, content=body)
            assert (response.status_code, response.json()["type"].rpartition(":")[2]) == (422, slug), body
        assert (await service.client.post("/v1/permits/batch", json={"items": []})).json() == {"permits": []}


async def test_a_caller_is_its_key_else_its_address(store_url: str, store_client: Redis, tmp_path: Path) -> None:
    key, line = new_key("spider-7")
    (tmp_path / "keys.toml").write_text(line)
    async with serve(text(404)) as origin:
        url = f"{origin.url}/a"
        async with running(store_url) as service:
            await permit(service, url)
            del service.client.headers["Authorization"]
            await permit(service, url)
            await permit(service, url, caller="spider-8@example.com")
        async with running(store_url, api_keys_file=tmp_path / "keys.toml") as service:
            assert (await service.client.post("/v1/permits", json={"url": url, "agent": "A"})).status_code == 401
            service.client.headers["X-API-Key"] = key
            await permit(service, url)
            await permit(service, url, caller="worker.1")
    pace_key = PaceKey("127.0.0.1", "examplebot")
    callers = await store_client.zrange(keys_of(pace_key)[5], 0, -1)
    assert {*callers} - {b""} == {b"operator", b"127.0.0.1", b"spider-8@example.com"}
    callers_of_key = await store_client.zrange(keys_of(pace_key, "spider-7")[5], 0, -1)
    assert {*callers_of_key} - {b""} == {b"spider-7/spider-7", b"spider-7/worker.1"}


async def test_a_key_is_served_soon_behind_invented_callers_of_another(store_url: str, tmp_path: Path) -> None:
    keys, lines = zip(*(new_key(name) for name in ("crowd", "reader")), strict=True)
    (tmp_path / "keys.toml").write_text("".join(lines))
    async with (
        serve(text(404)) as origin,
        running(store_url, api_keys_file=tmp_path / "keys.toml") as service,
    ):
        item = {"url": f"{origin.url}/a", "agent": "ExampleBot", "max_wait": 3600}
        service.client.headers["X-API-Key"] = keys[0]
        crowd = await permits(service, [{**item, "caller": f"c{number}"} for number in range(100)])
        service.client.headers["X-API-Key"] = keys[1]
        assert crowd[-1]["wait"] > 90
        # It waits for what the other booked while it was alone, and is served then.
        waiting = await permit(service, item["url"], max_wait=3600, caller="c0")  # type: ignore[arg-type]
        assert waiting["permit"] or waiting["retry_after"] <= 100 - 8 + 1


@pytest.mark.parametrize("status", [429, 503])
async def test_a_429_or_503_makes_the_fleet_back_off(store_url: str, status: int) -> None:
    async with serve(text(404)) as origin, running(store_url) as service, running(store_url) as other:
        first = await permit(service, f"{origin.url}/a")
        result = await outcome(service, first["permit"], status=status, retry_after="120", elapsed=0.2)
        assert result == {"released": False, "backoff": pytest.approx(120, abs=1), "degraded": False}
        for agent in ("ExampleBot", "OtherBot"):
            assert 100 < (await permit(other, f"{origin.url}/b", agent, max_wait=60))["wait"] <= 120


async def test_no_other_status_begins_a_backoff(store_url: str) -> None:
    async with serve(text(404)) as origin, running(store_url) as service:
        first = await permit(service, f"{origin.url}/a")
        for status in (200, 304, 404, 500):
            result = await outcome(service, first["permit"], status=status, retry_after=60)
            assert result == {"released": False, "backoff": None, "degraded": False}


async def test_a_released_slot_is_given_to_the_next(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        first, second = [await permit(service, f"{origin.url}/a", max_wait=60) for _ in range(2)]
        assert (await outcome(service, second["permit"], released=True)) == {
            "released": True,
            "backoff": None,
            "degraded": False,
        }
        assert not (await outcome(service, second["permit"], released=True))["released"]
        assert (await permit(service, f"{origin.url}/a", max_wait=60))["go_at"] == second["go_at"]
        assert not (await outcome(service, first["permit"], status=200))["released"]


async def test_an_invalid_permit_is_a_problem(store_url: str) -> None:
    forged = base64.urlsafe_b64encode(b'[["http://a.test","a","1:0000000000000000:a"]]').rstrip(b"=").decode()
    async with running(store_url) as service:
        for permit in ("x", "a" * 5000, "%00", "é", forged, f"{forged}.", f"{forged}.{'A' * 22}"):
            response = await service.client.post(f"/v1/permits/{permit}/outcome", json={"released": True})
            assert response.status_code == 422
            assert response.json()["type"] == "urn:robots-decisions:problem:bad-permit"
        for body in ({"status": 99}, {"status": "200"}, {"elapsed": -1}, {"released": "yes"}, {"state": 200}):
            response = await service.client.post("/v1/permits/x/outcome", json=body)
            assert response.json()["type"] == "urn:robots-decisions:problem:bad-request"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, 0),
        (30, 30),
        ("30", 30),
        (" 30 ", 30),
        (1.5, 1.5),
        ("1.5", 0),
        (-5, 0),
        ("soon", 0),
        ("nan", 0),
        ("inf", 0),
        ("9" * 400, 1e9),
        (1e300, 1e9),
        ("Sat, 21 Nov 2026 18:31:00 GMT", 60),
        ("Sat, 21 Nov 2026 18:29:00 GMT", 0),
        ("Sat, 99 Nov 2026 18:29:00 GMT", 0),
        ("Sat, 21 Nov 99999 18:31:00 GMT", 0),
        ("", 0),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: float | str | None, seconds: float) -> None:
    assert retry_after(value, datetime.fromtimestamp(START, UTC)) == seconds


async def test_without_the_store_permits_are_local_and_degraded(
    store_url: str, store_client: Redis, tmp_path: Path
) -> None:
    async with (
        serve(text(404)) as origin,
        proxy(store_url, tmp_path) as between,
        running(between.url, pace_floor=0.2, pace_instances=3) as service,
    ):
        url = f"{origin.url}/a"
        first = await permit(service, url)
        assert first["degraded"] is False
        between.refusing = True
        between.cut()
        waiting = await permit(service, url)
        assert (waiting["permit"], waiting["degraded"], waiting["allowed"]) == (None, True, True)
        assert waiting["retry_after"] == pytest.approx(1.1, abs=0.05)

        async def asked() -> dict[str, Any]:
            return await permit(service, url, max_wait=60)

        answers = [await until(asked, lambda answer: answer["permit"] is not None)]
        answers += [await permit(service, url) for _ in range(2)]
        assert [answer["degraded"] for answer in answers] == [True] * 3
        assert [answer["allowed"] for answer in answers] == [True] * 3
        assert answers[0]["interval"] == pytest.approx(0.6)
        goes = [datetime.fromisoformat(answer["go_at"]) for answer in answers[:2]]
        # Every third slot, except those that passed without a request.
        slots = (goes[1] - goes[0]).total_seconds() / 0.6
        assert slots >= 1 - 0.02
        assert slots == pytest.approx(round(slots), abs=0.02)
        assert await outcome(service, answers[0]["permit"], released=True) == {
            "released": False,
            "backoff": None,
            "degraded": True,
        }
        result = await outcome(service, first["permit"], status=429)
        assert result["degraded"] is True
        assert result["backoff"] == pytest.approx(10, abs=0.5)
        assert (await service.client.get("/readyz")).json()["store"] == "degraded"
        before = value((await service.client.get("/metrics")).text, "robots_permits_degraded_total")
        assert (await permit(service, f"{origin.url}/robots.txt", max_wait=0))["permit"] is None
        after = value((await service.client.get("/metrics")).text, "robots_permits_degraded_total")
        assert after == before + 1
        between.refusing = False

        back = await until(asked, lambda answer: not answer["degraded"])
        assert back["wait"] > 2


async def test_permits_and_outcomes_are_counted(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        first = await permit(service, f"{origin.url}/a")
        await permit(service, f"{origin.url}/a", max_wait=0)
        await permit(service, f"{origin.url}/private/a")
        await outcome(service, first["permit"], status=429, elapsed=0.3)
        await outcome(service, first["permit"], released=True)
        counted = (await service.client.get("/metrics")).text
        for line in (
            'robots_permits_total{outcome="granted"} 1.0',
            'robots_permits_total{outcome="wait_too_long"} 1.0',
            'robots_permits_total{outcome="disallow"} 1.0',
            "robots_permit_wait_seconds_count 1.0",
            'robots_outcomes_total{outcome="4xx"} 1.0',
            'robots_outcomes_total{outcome="released"} 1.0',
            "robots_backoffs_total 1.0",
            "robots_page_seconds_count 1.0",
            'robots_requests_total{method="POST",route="/v1/permits/{permit}/outcome",status="2xx"} 2.0',
        ):
            assert line in counted, line


async def test_a_batch_reserves_a_thousand_slots(store_url: str) -> None:
    async with serve(head(404)) as origin:
        names = {f"h{number}.test": [str(origin.address)] for number in range(40)}
        async with running(store_url, names) as service:
            items = [
                {
                    "url": f"http://h{number % 40}.test:{origin.port}/{number}",
                    "agent": "ExampleBot",
                    "caller": f"c{number % 7}",
                    "max_wait": 3600,
                }
                for number in range(ITEMS)
            ]
            async with asyncio.timeout(60):
                answers = await permits(service, items)
        assert [answer["url"] for answer in answers] == [item["url"] for item in items]
        names_of = [answer["permit"] for answer in answers]
        assert None not in names_of
        assert len(set(names_of)) == ITEMS


async def test_with_no_wait_a_cold_origin_is_pending(store_url: str) -> None:
    async with running(store_url) as service:
        answer = await permit(service, "http://a.test/", wait=0)
        assert (answer["verdict"], answer["reason"], answer["permit"]) == ("defer", "pending", None)
