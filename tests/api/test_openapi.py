"""openapi.json matches the routes, and its examples are their answers."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from app.api.middleware.auth import OPEN
from app.api.problem_types import PROBLEMS
from tests.api.document import DOCUMENT
from tests.api.examples import ASKED, examples
from tests.api.openapi import EXAMPLES, openapi
from tests.api.service import running

ROOT = Path(__file__).parents[2]


def operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def against(schema: dict[str, Any]) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for({**schema, "components": DOCUMENT["components"]})


def test_openapi_json_is_current() -> None:
    assert openapi() == DOCUMENT, "run `make generate`"


def test_every_operation_is_described_and_named_once() -> None:
    named = [operation["operationId"] for _, operation in operations()]
    assert sorted(set(named)) == sorted(named)
    for label, operation in operations():
        assert operation["description"], label
        assert operation["tags"], label


def test_every_error_is_a_problem_with_examples() -> None:
    for label, operation in operations():
        for status, response in operation["responses"].items():
            if status[0] in "45":
                [(media, content)] = response["content"].items()
                assert media == "application/problem+json", label
                assert content["examples"], (label, status)


def test_every_problem_of_the_service_has_a_type() -> None:
    calls = [
        (call.func.id, [str(it.value) for it in call.args if isinstance(it, ast.Constant)], len(call.args))
        for file in (ROOT / "app").rglob("*.py")
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    ]
    named = {constants[0] for name, constants, _ in calls if name == "Problem" and constants}
    # A problem of a value is named after the parameter, unless the call names it.
    values = [constants for name, constants, count in calls if name == "bad_value" and count < 4]
    named |= {f"bad-{constants[0]}" for constants in values if constants}
    assert "bad-fetch" in named
    assert named <= PROBLEMS.keys()


@pytest.mark.parametrize("slug", PROBLEMS)
def test_every_problem_example_fits_its_type(slug: str) -> None:
    example = DOCUMENT["components"]["examples"][f"problem-{slug}"]["value"]
    against({"$ref": "#/components/schemas/RefusalOut"}).validate(example)
    assert (example["type"], example["status"]) == (PROBLEMS[slug].urn, PROBLEMS[slug].status)


@pytest.mark.usefixtures("store_client")
async def test_examples_are_real_answers(store_url: str) -> None:
    kept = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    assert kept == await examples(store_url), "run `python -m tests.api.examples`"


@pytest.mark.parametrize("label", ASKED)
def test_every_example_fits_its_schema(label: str) -> None:
    operation = dict(operations())[label]
    media = operation["responses"]["200"]["content"]["application/json"]
    against(media["schema"]).validate(media["example"])
    if "requestBody" in operation:
        body = operation["requestBody"]["content"]["application/json"]
        against(body["schema"]).validate(body["example"])
    for parameter in operation.get("parameters", ()):
        if "example" in parameter:
            against(parameter["schema"]).validate(parameter["example"])


@pytest.mark.usefixtures("store_client")
async def test_405_lists_the_methods_of_the_path(store_url: str) -> None:
    async with running(store_url) as service:
        for path, methods in DOCUMENT["paths"].items():
            response = await service.client.request("PATCH", path.replace("{id}", "a"))
            assert response.status_code == 405
            known = {method.upper() for method in methods}
            assert set(response.headers["allow"].split(", ")) == known | ({"HEAD"} if "GET" in known else set())


@pytest.mark.usefixtures("store_client")
async def test_every_response_has_cache_control(store_url: str) -> None:
    async with running(store_url) as service:
        for label, _ in operations():
            method, path = label.split()
            request = ASKED.get(label, {})
            good = await service.client.request(
                method,
                path.format_map(request.get("path", {"id": "a", "permit": "a", "name": "a"})),
                params=request.get("query"),
                json=request.get("body"),
            )
            bad = await service.client.request("PATCH", path)
            for response in (good, bad):
                kept = response.headers.get_list("cache-control")
                assert kept in (["no-store"], *([f"private, max-age={seconds}"] for seconds in range(1, 61))), (
                    label,
                    kept,
                )


def test_openapi_security_matches_the_routes_with_keys() -> None:
    assert DOCUMENT["security"] == [{}, {"bearer": []}, {"key": []}]
    for label, operation in operations():
        guarded = label.split()[1] not in OPEN
        assert operation.get("security", DOCUMENT["security"]) == (DOCUMENT["security"] if guarded else []), label
        assert ({"401", "429"} <= operation["responses"].keys()) == guarded, label


@pytest.mark.usefixtures("store_client")
async def test_the_service_serves_the_document(store_url: str) -> None:
    async with running(store_url) as service:
        answer = await service.client.get("/openapi.json")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
        assert answer.json() == DOCUMENT
