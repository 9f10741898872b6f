"""OVERRIDES_FILE in a running service: beside the overrides of the API, reread, refused, and without the store."""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.overriding import LATER, RULES, listed, put
from tests.api.service import Service, counted, running
from tests.faults.until import until
from tests.forked import ForkedService
from tests.operator_token import TOKEN_HEADER
from tests.origins import serve, text

pytestmark = pytest.mark.usefixtures("store_client")

CLOSED = {"id": "closed", "scope": "127.0.0.1", "action": "deny", "reason": "In git."}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "overrides.jsonl", CLOSED)


def write(file: Path, *rows: Mapping[str, object] | str) -> Path:
    """Replace the file, as the kubelet does."""
    new = file.with_suffix(".new")
    new.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return new.rename(file)


def remove(file: Path) -> None:
    file.unlink()


async def test_the_answer_and_the_list_say_which_of_the_two_it_is(store_url: str, file: Path) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url, overrides_file=file) as service:
        await put(service, "b", action="delay", delay=9)
        answer = await service.allowed(f"{origin.url}/")
        assert (answer["reason"], answer["override"]["id"], answer["override"]["source"]) == (
            "overridden",
            "closed",
            "file",
        )
        listing = (await service.client.get("/v1/overrides")).json()["overrides"]
        assert [(one["id"], one["source"], one["updated_by"], one["updated_at"]) for one in listing] == [
            ("b", "api", "operator", "2026-11-21T18:30:00Z"),
            ("closed", "file", None, None),
        ]
        assert (await service.client.get("/v1/overrides/closed")).json() == listing[1]
        assert await counted(service, "robots_overrides", source="api") == 1
        assert await counted(service, "robots_overrides", source="file") == 1
        assert (await service.client.get("/v1/overrides/audit")).json()["changes"][0]["id"] == "b"


async def decided(service: Service, url: str) -> tuple[str, str]:
    """Which override decides, and where it comes from."""
    found = (await service.allowed(url))["override"]
    return found["id"], found["source"]


async def test_both_hold_in_one_order_of_precedence(store_url: str, file: Path) -> None:
    settings: dict[str, Any] = {"overrides_file": file, "watch_seconds": 0.1}
    async with serve(text(200, RULES)) as origin, running(store_url, **settings) as service:
        url = f"{origin.url}/"
        await put(service, "another", action="allow")
        assert await decided(service, url) == ("closed", "file")  # deny before allow, in the same scope
        await put(service, "exact", scope=origin.url, action="allow")
        assert await decided(service, url) == ("exact", "api")  # an origin before a suffix
        write(file, {**CLOSED, "scope": origin.url, "agents": ["ExampleBot"]})
        await until(lambda: decided(service, url), ("closed", "file").__eq__)  # the named crawler before all


async def test_an_id_of_the_file_is_changed_there_only(store_url: str, file: Path) -> None:
    async with running(store_url, overrides_file=file) as service:
        for response in (
            await service.client.put("/v1/overrides/closed", json={k: v for k, v in CLOSED.items() if k != "id"}),
            await service.client.delete("/v1/overrides/closed"),
        ):
            assert (response.status_code, response.json()["detail"]) == (
                409,
                "The override 'closed' is in OVERRIDES_FILE: change it there.",
            )
            assert response.json()["type"].endswith(":override-of-file")
        assert await listed(service) == ["closed"]


async def test_an_id_that_the_store_has_too_is_the_files(store_url: str, file: Path) -> None:
    async with running(store_url) as service:
        await put(service, "closed", action="allow", expires_at=LATER)
    async with serve(text(200, RULES)) as origin, running(store_url, overrides_file=file) as service:
        assert await decided(service, f"{origin.url}/") == ("closed", "file")
        assert await counted(service, "robots_overrides", source="api") == 0
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        assert await decided(service, f"{origin.url}/") == ("closed", "api")


async def verdict(client: httpx.AsyncClient, url: str) -> str:
    answer = (await client.get("/v1/allowed", params={"url": url, "agent": "ExampleBot"})).json()
    return f"{answer['verdict']} {(answer['override'] or {}).get('id')}"


async def metric(client: httpx.AsyncClient, name: str) -> float:
    lines = (await client.get("/metrics")).text.splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith(f"{name} "))


async def test_a_process_rereads_the_file_and_keeps_it_while_it_is_broken(store_url: str, file: Path) -> None:
    process = ForkedService(store_url, OVERRIDES_FILE=str(file), WATCH_SECONDS="0.1")
    try:
        async with serve(text(200, RULES)) as origin, httpx.AsyncClient(base_url=process.listen()) as client:
            assert await verdict(client, f"{origin.url}/") == "disallow closed"
            assert await metric(client, "robots_files_refused") == 0
            write(file, {**CLOSED, "id": "open", "action": "allow"})
            await until(lambda: verdict(client, f"{origin.url}/"), "allow open".__eq__)
            write(file, CLOSED, '{"id": "b", "scope": "b/c"')
            await until(lambda: metric(client, "robots_files_refused"), lambda refused: refused == 1)
            assert await verdict(client, f"{origin.url}/") == "allow open"
            said = f"cannot reload OVERRIDES_FILE={file}, so the previous content stays in force: line 2: "
            assert said in process.log
            remove(file)
            await until(lambda: logged(process), lambda log: "it cannot be opened" in log)
            assert await verdict(client, f"{origin.url}/") == "allow open"
            write(file)
            await until(lambda: verdict(client, f"{origin.url}/"), "allow None".__eq__)
            assert await metric(client, "robots_files_refused") == 0
    finally:
        process.kill()


async def logged(process: ForkedService) -> str:
    return process.log


async def test_the_file_holds_after_a_kill_and_without_the_store(tmp_path: Path, file: Path) -> None:
    process = ForkedService(f"unix://{tmp_path}/none", OVERRIDES_FILE=str(file))
    async with serve(text(200, RULES)) as origin:
        for _ in range(2):
            async with httpx.AsyncClient(base_url=process.listen(), headers=TOKEN_HEADER) as client:
                assert await verdict(client, f"{origin.url}/") == "disallow closed"
                page = (await client.get("/v1/overrides")).json()
                assert ([one["id"] for one in page["overrides"]], page["degraded"]) == (["closed"], True)
            process.kill()
            process = ForkedService(f"unix://{tmp_path}/none", OVERRIDES_FILE=str(file))
    process.kill()


async def test_a_change_of_the_file_is_logged(store_url: str, file: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        async with running(store_url, overrides_file=file, watch_seconds=0.1) as service:
            write(file, CLOSED, {**CLOSED, "id": "second"})
            await until(lambda: listed(service), ["closed", "second"].__eq__)
    assert f"reloaded OVERRIDES_FILE={file}" in caplog.text
