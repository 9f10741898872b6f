"""Set and list overrides of a running service."""

from typing import Any

from tests.api.service import Service

RULES = "User-agent: *\nDisallow: /private/\nCrawl-delay: 2\n\nSitemap: https://h.example/s.xml\n"
LATER = "2026-11-21T19:00:00Z"


async def put(service: Service, id_: str = "one", status: int = 201, **members: Any) -> dict[str, Any]:
    body = {"scope": "127.0.0.1", "action": "deny", "reason": "They asked us to.", **members}
    response = await service.client.put(f"/v1/overrides/{id_}", json=body)
    assert response.status_code == status, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def listed(service: Service, **query: object) -> list[str]:
    response = await service.client.get("/v1/overrides", params={name: str(value) for name, value in query.items()})
    assert response.status_code == 200, response.text
    return [one["id"] for one in response.json()["overrides"]]
