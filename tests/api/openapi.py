"""The OpenAPI document: FastAPI's description of the routes, with formats, security, problems and examples added.

`python -m tests.api.openapi` prints it. The service serves it as it is in openapi.json.
"""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastapi.openapi.utils import get_openapi

from app.api.answers.schema import ProblemOut, RefusalOut
from app.api.problem_types import PROBLEMS
from app.api.problems import MEDIA_TYPE, documented
from app.main.service import create
from app.main.settings import Settings

REFERENCE = "#/components/schemas/{model}"
"""Where the document has the schema of a model."""

TAGS = {
    "decisions": "Whether an agent may fetch a URL, why, and how fast.",
    "files": "The robots.txt files themselves.",
    "indexing": "What a page says about its own indexing.",
    "pace": "Slots to fetch in, shared by the whole fleet.",
    "overrides": "What operators decide in place of robots.txt files.",
    "operations": "Health, readiness, metrics and lists for operators.",
}
"""Descriptions of the tags, in their order."""

KEYED = "/v1/"
"""The prefix of the paths that need an API key, if the service has keys."""

SECURITY: Mapping[str, Mapping[str, str]] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "An API key, if the service has any."},
    "key": {
        "type": "apiKey",
        "in": "header",
        "name": "X-API-Key",
        "description": "The same key, in its own header field.",
    },
}

EXAMPLES = Path(__file__).with_name("examples.json")
"""Answers of a running service, by `python -m tests.api.examples`.

`operations` has under `GET /path` the request as `query`, `path` or `body`, and the `answer`. `problems` has an answer
of each type, under its slug.
"""


def openapi() -> dict[str, Any]:
    """The document of the service."""
    app = create(Settings(redis_url="redis://localhost"))
    document = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        routes=app.routes,
        tags=[{"name": tag, "description": text} for tag, text in TAGS.items()],
        servers=[{"url": "/", "description": "The service that serves this document."}],
    )
    schemas: dict[str, Any] = document["components"]["schemas"]
    for problem in (ProblemOut, RefusalOut):
        schemas[problem.__name__] = _problem_schema(problem)
    for batch in ("BatchIn", "PermitsIn", "OutcomesIn"):
        # pydantic repeats the model of items that it does not validate.
        items = schemas[batch]["properties"]["items"]
        items["items"] = {"$ref": REFERENCE.format(model=items["items"]["title"])}
    document["components"]["securitySchemes"] = SECURITY
    # For the whole document: generated functions of an operation of its own security take no client without a key.
    document["security"] = [{}, *({scheme: []} for scheme in SECURITY)]
    examples = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    problems: Mapping[str, Mapping[str, Any]] = examples["problems"]
    document["components"]["examples"] = {
        f"problem-{slug}": {"summary": PROBLEMS[slug].meaning, "value": problem} for slug, problem in problems.items()
    }
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if path.startswith(KEYED):
                operation["responses"] |= {str(status): it for status, it in documented(401, 421, 429).items()}
            else:
                operation["security"] = []
            if "requestBody" in operation:
                operation["responses"] |= {str(status): it for status, it in documented(415).items()}
            operation["summary"] = operation["description"].partition("\n")[0].partition(": ")[0].rstrip(".")
            _add_example(operation, examples["operations"].get(f"{method.upper()} {path}", {}))
            _add_problem_examples(path, operation, schemas, problems)
    return document


def _problem_schema(model: type[ProblemOut]) -> dict[str, Any]:
    schema = model.model_json_schema(ref_template=REFERENCE)
    schema.pop("$defs", None)
    schema["properties"]["type"]["enum"] = [problem.urn for problem in PROBLEMS.values()]
    lines = [f"- `{problem.urn}` ({problem.status}): {problem.meaning}" for problem in PROBLEMS.values()]
    schema["description"] = "\n".join((schema["description"], "", "The types, and what each means:", "", *lines))
    return schema


def _add_example(operation: dict[str, Any], example: Mapping[str, Any]) -> None:
    given = {**example.get("query", {}), **example.get("path", {})}
    for parameter in operation.get("parameters", ()):
        if parameter["name"] in given:
            parameter["example"] = given[parameter["name"]]
    if "body" in example:
        operation["requestBody"]["content"]["application/json"]["example"] = example["body"]
    if "answer" in example:
        for status, response in operation["responses"].items():
            if status.startswith("2"):
                response["content"]["application/json"]["example"] = example["answer"]


def _add_problem_examples(
    path: str, operation: dict[str, Any], schemas: Mapping[str, Any], examples: Mapping[str, Mapping[str, Any]]
) -> None:
    names = _input_names(operation, schemas)
    for status, response in operation["responses"].items():
        media = response.get("content", {}).get(MEDIA_TYPE)
        fitting = [
            slug
            for slug, example in examples.items()
            if str(example["status"]) == status and PROBLEMS[slug].path in (None, path) and _fits(slug, example, names)
        ]
        if media is not None and fitting:
            media["examples"] = {slug: {"$ref": f"#/components/examples/problem-{slug}"} for slug in fitting}


def _input_names(operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> set[str]:
    """The names of the parameters and members that a caller may send."""
    names = {parameter["name"] for parameter in operation.get("parameters", ())}
    for media in operation.get("requestBody", {}).get("content", {}).values():
        reference = media["schema"].get("$ref", "").rpartition("/")[2]
        names |= schemas.get(reference, {}).get("properties", {}).keys()
    return names


def _fits(slug: str, problem: Mapping[str, Any], names: set[str]) -> bool:
    """Whether an operation with these inputs may have such a problem; `bad-request` may be about any of them."""
    parameter = problem.get("parameter")
    return parameter is None or slug == "bad-request" or re.split(r"[.\[]", parameter)[0] in names


if __name__ == "__main__":
    sys.stdout.write(json.dumps(openapi(), indent=2, ensure_ascii=False) + "\n")
