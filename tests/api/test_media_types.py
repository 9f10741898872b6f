"""JSON bodies that are sent as something else are refused with 415, which says what to send (RFC 9110 15.5.16)."""

import pytest

from tests.api.asgi_client import JSON_ROUTES
from tests.api.document import DOCUMENT
from tests.api.service import running, slug

pytestmark = pytest.mark.usefixtures("store_client")

OVERRIDE = b'{"scope": "h.example", "action": "deny", "reason": "why"}'


@pytest.mark.parametrize(("method", "path"), JSON_ROUTES)
async def test_body_of_another_type_is_a_415(store_url: str, method: str, path: str) -> None:
    async with running(store_url) as service:
        for sent in ("application/x-www-form-urlencoded", "text/plain; charset=utf-8", "json"):
            response = await service.client.request(method, path, content=OVERRIDE, headers={"Content-Type": sent})
            assert (response.status_code, slug(response)) == (415, "unsupported-media-type")
            assert response.headers["accept"] == "application/json"
            detail = response.json()["detail"]
            assert detail.endswith("Send JSON with 'Content-Type: application/json'.")
            assert repr(sent.partition(";")[0]) in detail
    template = path.replace("permits/x", "permits/{permit}").replace("overrides/x", "overrides/{id}")
    assert "415" in DOCUMENT["paths"][template][method.lower()]["responses"]


@pytest.mark.parametrize(
    "sent", [{"Content-Type": "application/json; charset=utf-8"}, {"Content-Type": "application/x+JSON"}, {}]
)
async def test_json_is_taken_under_its_names_and_without_one(store_url: str, sent: dict[str, str]) -> None:
    async with running(store_url) as service:
        response = await service.client.put("/v1/overrides/x", content=OVERRIDE, headers=sent)
    assert response.status_code == 201, response.text
