"""openapi.json is what the routes are."""

import json
from pathlib import Path

from app.api.openapi import as_text
from app.main import create
from app.settings import Settings

KEPT = Path(__file__).parents[2] / "openapi.json"


def test_openapi_json_is_current() -> None:
    current = as_text(create(Settings(redis_url="redis://localhost")))
    assert KEPT.read_text(encoding="utf-8") == current, "run `make openapi`"


def test_every_error_is_a_problem() -> None:
    document = json.loads(KEPT.read_text(encoding="utf-8"))
    for operations in document["paths"].values():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                if not status.startswith("2"):
                    assert list(response["content"]) == ["application/problem+json"]
