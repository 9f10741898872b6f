"""`POST /v1/permits/{permit}/outcome`: who can make the fleet back off, and for how long."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

from app.api.routes.batch import ITEMS
from app.auth.keys import Scope, new_key
from app.pacing import permit as permits
from app.pacing.fleet_secret import STORED_AT
from app.pacing.permit import SlotRef
from app.pacing.slots import PaceKey
from tests.api.service import Service, running
from tests.origins import serve, text

pytestmark = pytest.mark.usefixtures("store_client")

DAY = 86_400
FROM_AFAR = ("192.0.2.7", 50_000)


class Keyed:
    """A service with the keys of two readers and an operator; both readers may fetch the page `url`."""

    def __init__(self, service: Service, url: str, keys: dict[str, str]) -> None:
        self.service = service
        self.url = url
        self.keys = keys

    async def post(self, key: str, path: str, body: object) -> Any:
        response = await self.service.client.post(path, json=body, headers={"X-API-Key": self.keys[key]})
        assert response.status_code == 200, response.text
        return response.json()

    async def permit(self, key: str) -> Any:
        return await self.post(key, "/v1/permits", {"url": self.url, "agent": "ExampleBot", "max_wait": 60})

    async def overloaded(self, key: str, permit: str, retry_after: int) -> float:
        """Seconds of backoff after this key has reported a 429."""
        outcome = {"status": 429, "retry_after": retry_after}
        seconds: float = (await self.post(key, f"/v1/permits/{permit}/outcome", outcome))["backoff"]
        return seconds


@asynccontextmanager
async def keyed(store_url: str, tmp_path: Path) -> AsyncIterator[Keyed]:
    made = {"one": new_key("one"), "other": new_key("other"), "operator": new_key("operator", Scope.ADMIN)}
    file = tmp_path / "keys.toml"
    file.touch(mode=0o600)
    file.write_text("".join(lines for _, lines in made.values()))
    async with serve(text(404)) as origin, running(store_url, api_keys_file=file) as service:
        yield Keyed(service, f"{origin.url}/a", {name: key for name, (key, _) in made.items()})


async def test_one_key_makes_the_fleet_back_off_for_minutes_only(store_url: str, tmp_path: Path) -> None:
    async with keyed(store_url, tmp_path) as it:
        permit = (await it.permit("one"))["permit"]
        for _ in range(3):
            assert await it.overloaded("one", permit, DAY) == pytest.approx(600, abs=20)
        assert (await it.permit("other"))["retry_after"] < 600


async def test_a_second_key_confirms_a_longer_back_off(store_url: str, tmp_path: Path) -> None:
    async with keyed(store_url, tmp_path) as it:
        first, second = [(await it.permit(key))["permit"] for key in ("one", "other")]
        await it.overloaded("one", first, DAY)
        assert await it.overloaded("other", second, 7200) == pytest.approx(7200, abs=20)


async def test_an_operators_key_needs_no_second_one(store_url: str, tmp_path: Path) -> None:
    async with keyed(store_url, tmp_path) as it:
        assert await it.overloaded("operator", (await it.permit("one"))["permit"], DAY) == pytest.approx(DAY, abs=20)


async def test_a_permit_that_the_fleet_did_not_sign_is_refused(store_url: str, tmp_path: Path) -> None:
    async with keyed(store_url, tmp_path) as it:
        origin = it.url.removesuffix("/a")
        slot = SlotRef(origin, PaceKey("127.0.0.1", "examplebot"), "1:0123456789abcdef:one")
        forged = permits.sign(slot, b"a guess" * 5)
        response = await it.service.client.post(
            f"/v1/permits/{forged}/outcome",
            json={"status": 429, "retry_after": DAY},
            headers={"X-API-Key": it.keys["one"]},
        )
        assert response.status_code == 422
        assert response.json()["type"] == "urn:robots-decisions:problem:bad-permit"
        assert (await it.permit("other"))["wait"] < 10


async def test_processes_of_a_fleet_accept_each_others_permits(store_url: str, store_client: Redis) -> None:
    async with serve(text(404)) as origin, running(store_url) as one, running(store_url) as other:
        body = {"url": f"{origin.url}/a", "agent": "ExampleBot"}
        permit = (await one.client.post("/v1/permits", json=body)).json()["permit"]
        assert (await other.client.post(f"/v1/permits/{permit}/outcome", json={"released": True})).json()["released"]
        # Also if the secret is a setting, and the store has none.
        await store_client.delete(STORED_AT)
        given = "a secret that the fleet shares!!"
        async with (
            running(store_url, permit_secret=given) as third,
            running(store_url, permit_secret=given) as fourth,
        ):
            permit = (await third.client.post("/v1/permits", json=body)).json()["permit"]
            path = f"/v1/permits/{permit}/outcome"
            assert (await fourth.client.post(path, json={"released": True})).json()["released"]
            assert (await one.client.post(path, json={"released": True})).status_code == 422


async def test_without_keys_the_token_makes_the_operator(store_url: str) -> None:
    async with serve(text(404)) as origin, running(store_url) as service:
        body = {"url": f"{origin.url}/a", "agent": "ExampleBot"}
        permit = (await service.client.post("/v1/permits", json=body)).json()["permit"]
        transport = httpx.ASGITransport(app=service.app)
        report = {"status": 503, "retry_after": DAY}
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            result = (await client.post(f"/v1/permits/{permit}/outcome", json=report)).json()
        assert result["backoff"] == pytest.approx(600, abs=20)
        result = (await service.client.post(f"/v1/permits/{permit}/outcome", json=report)).json()
        assert result["backoff"] == pytest.approx(DAY, abs=20)


async def test_outcomes_are_reported_together_and_a_bad_one_fails_alone(store_url: str, tmp_path: Path) -> None:
    async with keyed(store_url, tmp_path) as it:
        first, second, third = [(await it.permit("one"))["permit"] for _ in range(3)]
        items: list[Any] = [
            {"permit": first, "status": 200, "elapsed": 0.1},
            {"permit": "forged", "status": 429},
            {"permit": second, "released": True},
            {"status": 200},
            "nonsense",
            {"permit": third, "status": 503, "retry_after": "30"},
        ]
        found = (await it.post("one", "/v1/permits/outcomes", {"items": items}))["outcomes"]
        assert found[0] == {"released": False, "backoff": None, "degraded": False}
        assert found[2] == {"released": True, "backoff": None, "degraded": False}
        assert found[5]["backoff"] == pytest.approx(30, abs=5)
        types = [answer["problem"]["type"].rpartition(":")[2] for answer in found if "problem" in answer]
        assert types == ["bad-permit", "bad-request", "bad-item"]
        assert found[4]["problem"]["detail"] == "An item must be an object with the member permit."
        many = {"items": [items[0]] * (ITEMS + 1)}
        response = await it.service.client.post(
            "/v1/permits/outcomes", json=many, headers={"X-API-Key": it.keys["one"]}
        )
        assert response.json()["type"] == "urn:robots-decisions:problem:too-many-items"
