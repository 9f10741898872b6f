"""The examples of problems say what the service says: each is what a request gets, or a text of the code."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from app.api.problem_types import PROBLEMS
from tests.api.service import running

ROOT = Path(__file__).parents[2]

PAGE = {"url": "https://www.example.com/", "agent": "ExampleBot"}
TEST = {"urls": ["https://www.example.com/"], "agents": ["ExampleBot"], "robots": ""}
COPY = {"status": 200, "observed_at": "2026-11-21T18:30:00Z", "robots": ""}
TAKEN = "/v1/robots?url=https://www.example.com/"
OVERRIDE = {"scope": "https://www.example.com", "action": "allow", "reason": "a test"}

ASKED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bad-request": ("GET", "/v1/allowed", {**PAGE, "wait": "61"}),
    "bad-url": ("GET", "/v1/allowed", {**PAGE, "url": "example.com"}),
    "bad-urls": ("POST", "/v1/test", {**TEST, "urls": ["example.com"]}),
    "bad-agent": ("GET", "/v1/allowed", {**PAGE, "agent": "()"}),
    "bad-agents": ("POST", "/v1/test", {**TEST, "agents": ["()"]}),
    "bad-dialect": ("GET", "/v1/allowed", {**PAGE, "dialect": "latin"}),
    "bad-dialects": ("POST", "/v1/test", {**TEST, "dialects": ["latin"]}),
    "bad-category": ("GET", "/v1/agents", {"category": "spiders"}),
    "bad-profile": ("GET", "/v1/robots", {"url": PAGE["url"], "profile": "acme"}),
    "bad-at": ("GET", "/v1/allowed", {**PAGE, "at": "noon"}),
    "bad-as_of": ("GET", "/v1/allowed", {**PAGE, "as_of": "noon"}),
    "bad-from": ("GET", "/v1/robots/diff", {"url": PAGE["url"], "from": "noon"}),
    "bad-to": ("GET", "/v1/robots/diff", {"url": PAGE["url"], "from": "00000000", "to": "noon"}),
    "bad-after": ("GET", "/v1/changes", {"after": "noon"}),
    "bad-version": ("GET", "/v1/robots/history", {"url": PAGE["url"], "as": "text", "version": "noon"}),
    "bad-robots": ("POST", "/v1/test", {**TEST, "robots_base64": ""}),
    "bad-robots_base64": ("POST", "/v1/test", {"urls": TEST["urls"], "agents": TEST["agents"], "robots_base64": "?"}),
    "bad-status": ("PUT", TAKEN, {**COPY, "status": 301}),
    "bad-observed_at": ("PUT", TAKEN, {**COPY, "observed_at": "noon"}),
    "bad-headers": ("PUT", TAKEN, {**COPY, "headers": [["Content-Type", "€"]]}),
    "bad-final_url": ("PUT", TAKEN, {**COPY, "final_url": "example.com"}),
    "bad-outcome": ("POST", "/v1/test", {**TEST, "robots": None, "outcome": {"status": 503, "for": "3 moons"}}),
    "bad-permit": ("POST", "/v1/permits/x/outcome", {"status": 200}),
    "bad-override": ("PUT", "/v1/overrides/a", {**OVERRIDE, "scope": "the web"}),
    "bad-expires_at": ("PUT", "/v1/overrides/a", {**OVERRIDE, "expires_at": "noon"}),
    "not-found": ("GET", "/v1/nothing", {}),
    "method-not-allowed": ("PATCH", "/v1/allowed", {}),
    "too-many-items": ("POST", "/v1/allowed", {"items": [PAGE] * 1001}),
}
"""The request that gets each example: method, path, and query or body."""


@pytest.mark.usefixtures("store_client")
async def test_examples_are_what_requests_get(store_url: str) -> None:
    examples, got = {slug: PROBLEMS[slug].example() for slug in ASKED}, {}
    async with running(store_url) as service:
        for slug, (method, path, sent) in ASKED.items():
            asked: Any = {"params": sent} if method == "GET" else {"json": sent}
            problem = (await service.client.request(method, path, **asked)).json()
            got[slug] = {name: problem.get(name) for name in examples[slug]}
    assert got == examples


@cache
def texts() -> list[re.Pattern[str]]:
    """The texts of the code, with anything in place of their values."""
    found = set()
    for file in (path for folder in ("app", "core") for path in (ROOT / folder).rglob("*.py")):
        if file.name == "problem_types.py":
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(re.escape(node.value))
            elif isinstance(node, ast.JoinedStr):
                parts = (re.escape(str(it.value)) if isinstance(it, ast.Constant) else ".*" for it in node.values)
                found.add("".join(parts))
    # A text of values alone would fit everything.
    return [re.compile(text) for text in found if len(re.findall("[a-z]", text)) > 8]


COMPOSED = {"disallowed", "deferred", "quota-exceeded"}
"""What is put together from several texts."""


@pytest.mark.parametrize("slug", sorted(PROBLEMS.keys() - ASKED.keys() - COMPOSED))
def test_other_examples_are_texts_of_the_code(slug: str) -> None:
    detail = PROBLEMS[slug].detail
    assert any(text.fullmatch(detail) for text in texts()), detail
