"""The routes that are called before FastAPI's router, and that the router has all routes one by one."""

import inspect
import re

import pytest
from fastapi import Request
from starlette.routing import Route

from app.api.routes.bundle import BUNDLE_PATH
from app.api.routing import DirectRoute
from app.main.service import create
from app.main.settings import Settings
from tests.api.service import running

ROUTES = create(Settings(redis_url="redis://unused")).routes

DIRECT = [
    (method, route.path, route) for route in ROUTES if isinstance(route, DirectRoute) for method in route.methods or ()
]


def test_no_router_is_included_in_another() -> None:
    """FastAPI would ask each of them for every request, and look at each route twice."""
    assert [route for route in ROUTES if not isinstance(route, Route)] == []


def test_hot_routes_are_direct() -> None:
    assert {(method, path) for method, path, _ in DIRECT} == {
        ("GET", "/v1/allowed"),
        ("GET", "/v1/check"),
        ("POST", "/v1/allowed"),
        ("POST", BUNDLE_PATH),
        ("POST", "/v1/permits"),
        ("POST", "/v1/permits/batch"),
        ("POST", "/v1/permits/{permit}/outcome"),
        ("POST", "/v1/permits/outcomes"),
    }


@pytest.mark.usefixtures("store_client")
@pytest.mark.parametrize(("method", "path", "route"), DIRECT)
async def test_a_direct_route_reads_the_request_itself(
    store_url: str, monkeypatch: pytest.MonkeyPatch, method: str, path: str, route: DirectRoute
) -> None:
    """FastAPI parses nothing for it, and is not asked; its answers, problems too, say how they may be cached."""

    def refuse(_self: object, _scope: object) -> None:
        raise AssertionError("the router was asked")

    names = {name for name, it in inspect.signature(route.endpoint).parameters.items() if it.annotation is not Request}
    assert names == route.param_convertors.keys()
    async with running(store_url) as service:
        monkeypatch.setattr("starlette.routing.Router.app", refuse)
        monkeypatch.setattr("fastapi.routing.APIRouter.app", refuse)
        target = re.sub(r"\{.*?\}", "x", path)
        body: dict[str, str] | None = {} if method == "POST" else None
        response = await service.client.request(method, f"{target}?", json=body)
        assert response.status_code == (415 if path == BUNDLE_PATH else 422)  # a bundle is asked for by lines alone
        assert response.headers["Cache-Control"] == "no-store"
        refused = await service.client.request(method, f"{target}?zzz=1", json=body)
        assert refused.json()["parameter"] == "zzz"
        if method == "GET":
            assert (await service.client.head(target)).status_code == 422
