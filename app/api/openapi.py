"""The OpenAPI document: what FastAPI derives from the routes, and the problem object that every error is."""

import json
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from app.api.shapes import ProblemOut


def install(app: FastAPI) -> None:
    """Let `app` serve, and `python -m app openapi` print, the whole document."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
            problem = ProblemOut.model_json_schema(ref_template="#/components/schemas/{model}")
            schema["components"]["schemas"]["Problem"] = problem
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def as_text(app: FastAPI) -> str:
    """The document as it is kept in openapi.json."""
    return json.dumps(app.openapi(), indent=2, ensure_ascii=False) + "\n"
