"""Refused pages that callers report by permits: facts that every process answers beside the verdict."""

from pathlib import Path
from typing import Any

import pytest

from app.auth.keys import new_key
from app.store.shared_connection import SharedConnection
from tests.api.service import START, Service, running
from tests.faults.until import until
from tests.origins import serve, text

pytestmark = pytest.mark.usefixtures("store_client")

FILE = "User-agent: *\nDisallow: /private/\nContent-Signal: search=yes\n"
AGENT = "ExampleBot"


async def permit(service: Service, url: str, agent: str = AGENT) -> str:
    body = {"url": url, "agent": agent, "max_wait": 3600}
    response = await service.client.post("/v1/permits", json=body)
    assert response.status_code == 200, response.text
    return str(response.json()["permit"])


async def report(service: Service, permit: str, **outcome: object) -> dict[str, Any]:
    response = await service.client.post(f"/v1/permits/{permit}/outcome", json=outcome)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def tell(service: Service, url: str, *statuses: int, agent: str = AGENT) -> None:
    for status in statuses:
        await report(service, await permit(service, url, agent), status=status)


async def edge(service: Service, url: str, agent: str = AGENT, **parameters: object) -> Any:
    return (await service.allowed(url, agent, **parameters)).get("edge")


async def listed(service: Service) -> list[dict[str, Any]]:
    response = await service.client.get("/v1/origins", params={"order": "refused"})
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["origins"]
    return found


async def test_a_refusal_is_answered_by_every_process_within_seconds(store_url: str) -> None:
    async with serve(text(200, FILE)) as origin, running(store_url) as one, running(store_url) as other:
        url = f"{origin.url}/page"
        before = await one.allowed(url)
        await tell(one, url, 403, 401)
        fact = {
            "state": "refused",
            "status": 401,
            "since": "2026-11-21T18:30:00Z",
            "reported_at": "2026-11-21T18:30:00Z",
            "count": 2,
            "price": None,
        }
        assert await edge(one, url) == fact
        await until(lambda: edge(other, url), lambda found: found is not None)
        answer = await other.allowed(url)
        assert answer.pop("edge") == fact
        assert answer == (await other.allowed(url, "OtherBot")) | {"agent": AGENT, "robots": answer["robots"]}
        assert "edge" not in before
        assert (answer["verdict"], answer["reason"]) == (before["verdict"], before["reason"])


async def test_a_price_is_repeated_with_its_time_and_page(store_url: str) -> None:
    async with serve(text(200, FILE)) as origin, running(store_url) as service, running(store_url) as other:
        url = f"{origin.url}/page"
        await report(service, await permit(service, url), status=402, price="USD 0.01", url=url)
        priced = {"text": "USD 0.01", "reported_at": "2026-11-21T18:30:00Z", "url": url}
        assert (await edge(service, url))["price"] == priced
        found = await until(lambda: edge(other, url), lambda found: found is not None)
        assert found["price"] == priced
        await tell(service, url, 402, 403)
        assert (await edge(service, url))["price"] == priced
        long = f"{origin.url}/{'x' * 500}"
        await report(service, await permit(service, url), status=402, price="~" * 100, url=long)
        assert (await edge(service, url))["price"] == {**priced, "text": "~" * 100, "url": None}
        await report(service, await permit(service, url), status=402, price="EUR 1")
        assert (await edge(service, url))["price"] == {**priced, "text": "EUR 1", "url": None}
        await tell(service, url, 200)
        assert await edge(service, url) is None


@pytest.mark.parametrize(
    ("outcome", "parameter"),
    [
        ({"status": 200, "price": "USD 1"}, "price"),
        ({"price": "USD 1"}, "price"),
        ({"status": 402, "price": "x" * 101}, "price"),
        ({"status": 402, "price": ""}, "price"),
        ({"status": 402, "price": "a\nb"}, "price"),
        ({"status": 402, "price": "\u20ac 1"}, "price"),
        ({"status": 402, "price": 1}, "price"),
        ({"status": 402, "price": "USD 1", "url": "https://other.example/"}, "url"),
        ({"status": 402, "price": "USD 1", "url": "page"}, "url"),
    ],
)
async def test_a_bad_price_is_named(store_url: str, outcome: dict[str, Any], parameter: str) -> None:
    async with serve(text(200, FILE)) as origin, running(store_url) as service:
        url = f"{origin.url}/page"
        place = f"/v1/permits/{await permit(service, url)}/outcome"
        response = await service.client.post(place, json=outcome)
        assert (response.status_code, response.json()["parameter"]) == (422, parameter)
        assert await edge(service, url) is None


async def test_every_answer_about_the_agent_has_the_fact(store_url: str) -> None:
    async with serve(text(200, FILE)) as origin, running(store_url) as service:
        url = f"{origin.url}/page"
        await tell(service, url, 402)
        fact = await edge(service, url)
        assert fact["state"] == "priced"
        explained = await service.allowed(url, explain="true")
        judged = await service.allowed(url, purpose="search")
        refused = await service.allowed(f"{origin.url}/private/page")
        slot = (await service.client.post("/v1/permits", json={"url": url, "agent": "examplebot/2.0"})).json()
        items = {"items": [{"url": url, "agent": AGENT}, {"url": url, "agent": "OtherBot"}]}
        first, second = (await service.client.post("/v1/allowed", json=items)).json()["answers"]
        for answer in (explained, judged, refused, slot, first):
            assert answer["edge"] == fact
        assert "edge" not in second
        assert refused["verdict"] == "disallow"
        assert slot["permit"]
        assert slot["verdict"] == "allow"


async def test_a_deferred_answer_has_the_fact_and_stays_deferred(store_url: str) -> None:
    async with serve(text(200, FILE), text(503)) as origin, running(store_url) as service:
        url = f"{origin.url}/page"
        await tell(service, url, 451)
        service.now = START + 40 * 86_400
        assert await edge(service, url) is None  # the fact has expired
        service.now = START
        answer = await service.allowed(url, as_of="2026-11-21T18:30:00Z")
        assert "edge" not in answer  # facts are those of now
    async with serve(text(503)) as origin, running(store_url) as service:
        url = f"{origin.url}/page"
        place = origin.url
        await service.app.state.services.edge.report(place, AGENT.lower(), 403)
        answer = await service.allowed(url)
        assert answer["verdict"] == "defer"
        assert answer["edge"]["state"] == "refused"


async def test_a_success_of_the_agent_ends_the_fact(store_url: str) -> None:
    async with serve(text(200, FILE)) as origin, running(store_url) as service:
        url = f"{origin.url}/page"
        await tell(service, url, 403)
        await tell(service, url, 200, agent="OtherBot")
        assert await edge(service, url)
        await tell(service, url, 404, 500, 301)
        assert await edge(service, url)
        await tell(service, url, 204)
        assert await edge(service, url) is None
        assert await listed(service) == []


async def test_operators_see_refused_origins_with_their_agents(store_url: str) -> None:
    async with (
        serve(text(200, FILE)) as refused,
        serve(text(200, FILE)) as priced,
        serve(text(200, FILE)) as sound,
        running(store_url) as service,
    ):
        await tell(service, f"{sound.url}/", 200)
        await tell(service, f"{refused.url}/", 403)
        await tell(service, f"{priced.url}/", 402, agent="OtherBot")
        service.now += 60
        await tell(service, f"{priced.url}/", 402)
        first, second = await listed(service)
        assert (first["origin"], second["origin"]) == (priced.url, refused.url)
        assert {agent: fact["state"] for agent, fact in first["edge"].items()} == {
            "otherbot": "priced",
            AGENT.lower(): "priced",
        }
        assert second["edge"][AGENT.lower()]["count"] == 1
        assert (first["outcome"], first["status"]) == ("successful", 200)
        asked = (await service.client.get("/v1/origins", params={"order": "asked"})).json()["origins"]
        assert {row["edge"] for row in asked} == {None}
        anyone = {"Authorization": ""}
        response = await service.client.get("/v1/origins", params={"order": "refused"}, headers=anyone)
        assert response.status_code == 401


async def test_one_permit_counts_once_however_often_it_is_reported(store_url: str) -> None:
    async with serve(text(200, FILE)) as origin, running(store_url) as service:
        url = f"{origin.url}/page"
        held = await permit(service, url)
        for _ in range(5):
            await report(service, held, status=403)
        assert (await edge(service, url))["count"] == 1


async def test_a_slot_that_was_not_used_says_nothing(store_url: str) -> None:
    async with serve(text(200, FILE)) as origin, running(store_url) as service:
        url = f"{origin.url}/page"
        await report(service, await permit(service, url), status=403, released=True)
        assert await edge(service, url) is None


async def test_without_a_permit_of_the_fleet_nothing_is_recorded(store_url: str, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    held, line = new_key("crawler")
    file.write_text(line + "\n")
    file.chmod(0o600)
    headers = {"Authorization": f"Bearer {held}"}
    async with serve(text(200, FILE)) as origin, running(store_url, api_keys_file=str(file)) as service:
        url = f"{origin.url}/page"
        body = {"url": url, "agent": AGENT}
        good = (await service.client.post("/v1/permits", json=body, headers=headers)).json()["permit"]
        payload, _, tag = good.partition(".")
        for bad in (payload, f"{payload}x.{tag}", f"{payload}.{tag[::-1]}", "W10.x"):
            response = await service.client.post(f"/v1/permits/{bad}/outcome", json={"status": 403}, headers=headers)
            assert response.status_code == 422
        assert not service.app.state.services.edge.table
        response = await service.client.post(f"/v1/permits/{good}/outcome", json={"status": 403}, headers=headers)
        assert response.status_code == 200
        assert service.app.state.services.edge.table


async def test_a_report_while_the_store_is_down_is_degraded(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve(text(200, FILE)) as origin, running(store_url) as service:
        url = f"{origin.url}/page"
        held = await permit(service, url)

        async def refuse(*_arguments: object) -> object:
            raise ConnectionError("refused")

        monkeypatch.setattr(SharedConnection, "call", refuse)
        answer = await report(service, held, status=403)
        assert answer == {"released": False, "backoff": None, "degraded": True}
        assert await edge(service, url) is None
