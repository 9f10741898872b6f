"""Cases from public bug reports and real files, by HTTP: verdicts, sentences, warnings, replacements and notes.

`robots` (or `robots_b64`) is tested as it is, or with a `status` served by an origin with these `headers`; `indexing`
is a body of `POST /v1/indexing`. Of what is expected, `warn` are lines that have a warning, `instead` is what a
replacement has, `no_instead` an expression that no warning matches, and `says` one that the sentence matches.
"""

import re
from base64 import b64decode, b64encode
from typing import Any

import pytest

from tests.api.service import Service, running
from tests.origins import head, serve
from tests.robots.cases import rows

pytestmark = pytest.mark.usefixtures("store_client")

CASES = rows("report-cases.jsonl")


def body_of(case: dict[str, Any]) -> bytes:
    return b64decode(case["robots_b64"]) if "robots_b64" in case else str(case["robots"]).encode()


async def pasted(service: Service, case: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The row and the warnings of `POST /v1/test`."""
    body = {
        "robots_base64": b64encode(body_of(case)).decode(),
        "urls": [case["url"]],
        "agents": [case["agent"]],
        "dialects": [case["dialect"]] if case["dialect"] else [],
    }
    answer = (await service.client.post("/v1/test", json=body)).json()
    return answer["rows"][0], answer["warnings"]


async def fetched(service: Service, case: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The answer about an origin that serves the file, and the warnings about it."""
    body = body_of(case)
    fields = {"Content-Type": "text/plain", "Content-Length": str(len(body)), **case["headers"]}
    async with serve(head(case["status"], fields) + body) as origin:
        answer = await service.allowed(origin.url + case["url"], case["agent"])
        file = (await service.client.get("/v1/robots", params={"url": origin.url})).json()
    return answer, file.get("warnings", [])


@pytest.mark.parametrize("case", [case for case in CASES if "indexing" not in case], ids=lambda case: case["id"])
async def test_a_reported_file_is_decided_and_explained(store_url: str, case: dict[str, Any]) -> None:
    expect = case["expect"]
    async with running(store_url) as service:
        answer, warnings = await (pasted if case["status"] is None else fetched)(service, case)
    said = [text for it in warnings for text in (it["message"], it["instead"] or "")]
    assert answer["verdict"] == expect.get("verdict", answer["verdict"]), answer
    assert (answer["rule"] or {}).get("line") == expect.get("line", (answer["rule"] or {}).get("line")), answer
    assert re.search(expect.get("says", ""), answer["explanation"]["summary"]), answer["explanation"]
    assert {it["line"] for it in warnings} >= set(expect.get("warn", ())), warnings
    assert any(expect.get("instead", "") in (it["instead"] or "") for it in warnings) or "instead" not in expect, (
        warnings
    )
    assert "no_instead" not in expect or not any(re.search(expect["no_instead"], text) for text in said), warnings


@pytest.mark.parametrize("case", [case for case in CASES if "indexing" in case], ids=lambda case: case["id"])
async def test_a_reported_page_is_read_and_noted(store_url: str, case: dict[str, Any]) -> None:
    expect = case["expect"]
    async with running(store_url) as service:
        answer = (await service.client.post("/v1/indexing", json=case["indexing"])).json()
    for name in "index", "follow":
        assert answer[name] == expect.get(name, answer[name]), answer
    assert bool(answer["notes"]) or not expect.get("note"), answer
