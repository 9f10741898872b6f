"""The list of commands is what the code sends: no more, and a command that is added has to be in it."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from app.auth.keys import Scope, new_key
from app.store.commands import ALL_COMMANDS, FOR_CLUSTERS, OPTIONAL, PROBED
from tests.api.service import Service, running
from tests.engines import PASSWORD, QUOTED, Fleet, Node, alone, cluster_url, clustered
from tests.faults.until import until
from tests.origins import serve, text
from tests.service_process import ROOT

OLD = "User-agent: *\nDisallow: /old\n"
NEW = "User-agent: *\nDisallow: /new\nCrawl-delay: 1\n"
PAGE = ROOT / "docs" / "how-to" / "redis.md"
_CALL = re.compile(r"redis\.p?call\(\s*['\"](\w+)['\"](?:\s*,\s*['\"](stream)['\"])?", re.IGNORECASE)


def sources() -> Iterator[str]:
    for path in sorted(Path(ROOT, "app").rglob("*")):
        if path.suffix in {".py", ".lua"}:
            yield path.read_text()


def in_scripts() -> set[str]:
    """The commands that scripts call."""
    calls = [found for source in sources() for found in re.finditer(r"redis\.p?call\(", source)]
    named = [found for source in sources() for found in _CALL.finditer(source)]
    assert len(named) == len(calls), "name each command in its call"
    names = {f"{command}|{sub}" if sub else command for found in named for command, sub in [found.groups("")]}
    return {name.lower() for name in names}


def test_the_scripts_call_what_is_listed() -> None:
    assert in_scripts() <= {*PROBED.values()}


async def test_every_example_has_all_its_arguments(store_client: Redis) -> None:
    for example, name in PROBED.items():
        [found] = (await store_client.execute_command("COMMAND", "INFO", name)).values()  # type: ignore[no-untyped-call]
        count, arity = len(example.split()), found["arity"]
        assert count == arity or count >= -arity > 0, example


@contextmanager
def confined(fleet: Fleet) -> Iterator[None]:
    """Servers with the user `service`, as the documentation has it; afterwards, they have refused nothing."""
    [line] = re.findall(r"^ACL SETUSER robots (.+)$", PAGE.read_text(), re.MULTILINE)
    rights = line.replace(">PASSWORD", f">{PASSWORD}").split()
    for one in fleet.masters:
        one.ask("ACL", "SETUSER", "service", "reset", *rights)
        one.ask("ACL", "LOG", "RESET")
    yield
    assert [one.ask("ACL", "LOG") for one in fleet.masters] == [[] for _ in fleet.masters]


def used(node: Node) -> set[str]:
    """The commands that a server was sent."""
    return {name.removeprefix("cmdstat_") for name in node.ask("INFO", "commandstats")}


def test_the_documentation_grants_what_is_listed() -> None:
    [line] = re.findall(r"^ACL SETUSER robots (.+)$", PAGE.read_text(), re.MULTILINE)
    assert line.split() == ["on", ">PASSWORD", "~robots:*", "&robots:*", *(f"+{name}" for name in sorted(ALL_COMMANDS))]


async def ask(service: Service, asked: set[str], operation: str, **request: Any) -> Any:
    """Ask for an operation of the API, whose path may have members of `path`; return the answer."""
    method, path = operation.split()
    asked.add(operation)
    path = path.format_map(request.pop("path", {}))
    response = await service.client.request(method, path, **request)
    assert response.is_success, (operation, response.text)
    return response.json() if "json" in response.headers.get("content-type", "") and response.content else response


def operations() -> set[str]:
    document = json.loads((ROOT / "openapi.json").read_text())
    return {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}


async def use_everything(one: Service, other: Service, site: str) -> None:
    """Every operation, and what happens to files, permits and overrides besides."""
    asked: set[str] = set()
    page = {"url": f"{site}/page", "agent": "ExampleBot"}
    for service in (one, other):
        await ask(service, asked, "GET /v1/allowed", params=page)
        service.now += 30 * 3600
        await ask(service, asked, "GET /v1/allowed", params={**page, "wait": 30})
        await ask(service, asked, "GET /v1/allowed", params={**page, "agent": "SeznamBot"})  # whose visits are counted
    await ask(one, asked, "POST /v1/allowed", json={"items": [page, page]})
    await ask(one, asked, "GET /v1/check", params=page)
    lines = {"content": json.dumps({"url": site}) + "\n", "headers": {"Content-Type": "application/x-ndjson"}}
    await ask(one, asked, "POST /v1/bundle", **lines)
    await ask(one, asked, "POST /v1/test", json={"robots": OLD, "urls": [page["url"]], "agents": ["a"]})
    await ask(one, asked, "GET /v1/agents")
    await ask(one, asked, "GET /v1/robots", params={"url": site})
    await ask(one, asked, "POST /v1/robots/refresh", params={"url": site})
    await ask(one, asked, "POST /v1/robots/sitemaps", params={"url": site})
    observation = {"status": 200, "observed_at": "2026-01-01T00:00:00Z", "robots": OLD}
    await ask(one, asked, "PUT /v1/robots", params={"url": site}, json=observation)
    await until(lambda: ask(one, asked, "GET /v1/changes"), lambda answer: isinstance(answer, dict))
    await ask(one, asked, "GET /v1/robots/history", params={"url": site})
    await ask(one, asked, "GET /v1/robots/diff", params={"url": site})
    await ask(one, asked, "POST /v1/indexing", json={"agents": ["a"], "headers": ["noindex"]})
    reports: tuple[dict[str, object], ...] = (
        {"status": 200},
        {"released": True},
        {"status": 403},
        {"status": 429, "retry_after": 60},
    )
    for number, report in enumerate(reports):
        for service in (one, other):
            body = {**page, "agent": f"Bot{number}", "max_wait": 60}
            permit = await ask(service, asked, "POST /v1/permits", json=body)
            await ask(service, asked, "POST /v1/permits/batch", json={"items": [body]})
            path = {"permit": permit["permit"]}
            await ask(service, asked, "POST /v1/permits/{permit}/outcome", path=path, json=report)
            outcomes = {"items": [{**path, **report}]}
            await ask(service, asked, "POST /v1/permits/outcomes", json=outcomes)
    row = {"scope": "shop.example", "action": "deny", "reason": "moved"}
    await ask(one, asked, "PUT /v1/overrides/{id}", path={"id": "shop"}, json=row)
    await ask(other, asked, "GET /v1/overrides")
    await ask(other, asked, "GET /v1/overrides/{id}", path={"id": "shop"})
    await ask(other, asked, "GET /v1/overrides/audit")
    await ask(other, asked, "DELETE /v1/overrides/{id}", path={"id": "shop"})
    for order in ("failing", "slow", "stale", "backoff", "asked", "refused"):
        await ask(one, asked, "GET /v1/origins", params={"order": order})
    await ask(one, asked, "DELETE /v1/robots", params={"url": site})
    for operation in ("GET /healthz", "GET /metrics"):
        await ask(one, asked, operation)
    for service in (one, other):
        assert await ask(service, asked, "GET /readyz") == {"status": "ready", "store": "ok"}
    assert asked == operations()


async def test_the_whole_service_sends_what_is_listed(tmp_path: Path) -> None:
    key, lines = new_key("operator", Scope.ADMIN)
    keys = tmp_path / "keys.toml"
    keys.write_text(f"{lines}limit = {{requests = 100000, seconds = 60}}\n")
    keys.chmod(0o600)
    others: dict[str, Any] = {"api_keys_file": keys, "decision_log": "redis"}
    with alone() as fleet, confined(fleet):
        url = f"redis://service:{QUOTED}@{fleet.hosts}/1"
        async with (
            serve(text(200, OLD), text(200, NEW)) as origin,
            running(url, **others) as one,
            running(url, **others) as other,
        ):
            for service in (one, other):
                service.client.headers["X-API-Key"] = key
            await use_everything(one, other, origin.url)
        sent = used(fleet.masters[0])
        assert {*PROBED.values(), *OPTIONAL} - in_scripts() - sent == set()


async def test_a_cluster_needs_what_is_listed() -> None:
    with clustered(0) as fleet, confined(fleet):
        async with (
            serve(text(200, OLD), text(200, NEW)) as origin,
            running(cluster_url(fleet).replace("default", "service")) as one,
            running(cluster_url(fleet).replace("default", "service")) as other,
        ):
            await use_everything(one, other, origin.url)
        assert "cluster|slots" in used(fleet.masters[0])
        assert {"asking", "cluster|slots"} == FOR_CLUSTERS
