"""An operator's own crawlers: in the directory, in decisions, categories and permits, and after SIGHUP."""

import logging
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.api.service import Service, running
from tests.faults.until import until
from tests.origins import serve, text

pytestmark = pytest.mark.usefixtures("store_client")

RULES = """\
User-agent: Googlebot
Disallow: /google/

User-agent: ExampleBot-News
Disallow: /news/
Crawl-delay: 3

User-agent: *
Disallow: /
"""
FILE = """
[agents.ExampleBot]
category = "ai-search"
operator = "Example"
chain = ["ExampleBot-News", "Googlebot"]
floor = 8

[agents.FarBot]
chain = ["Googlebot"]
star = false
dialect = "google"
recheck = "seznam"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "agents.toml"
    path.write_text(FILE)
    return path


async def known(service: Service, query: str = "") -> dict[str, dict[str, Any]]:
    response = await service.client.get(f"/v1/agents{query}")
    assert response.status_code == 200, response.text
    return {row["token"]: row for row in response.json()["agents"]}


async def test_own_rows_are_listed_beside_the_known_crawlers(store_url: str, file: Path) -> None:
    async with running(store_url, agents_file=file) as service:
        rows = await known(service)
        assert rows["ExampleBot"] == {
            "token": "ExampleBot",
            "operator": "Example",
            "category": "ai-search",
            "documentation": None,
            "crawl_delay": None,
            "dialect": "rfc9309",
            "recheck": "rfc9309",
            "profile": None,
            "chain": ["examplebot", "examplebot-news", "googlebot"],
            "star": True,
            "star_delay": False,
            "policy": False,
            "exempt": False,
            "own": True,
            "source": None,
            "source_date": None,
        }
        assert {token for token, row in rows.items() if row["own"]} == {"ExampleBot", "FarBot"}
        assert "ExampleBot" in await known(service, "?category=ai-search")
        test = {"robots": RULES, "urls": ["https://h.example/news/"], "agents": ["@ai-search"]}
        answer = (await service.client.post("/v1/test", json=test)).json()
        assert {row["agent"]: row["verdict"] for row in answer["rows"]}["ExampleBot"] == "disallow"


async def test_own_rows_decide_wherever_an_agent_is_named(store_url: str, file: Path) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url, agents_file=file) as service:
        for agent, path, verdict in (
            ("ExampleBot", "/google/", "allow"),
            ("examplebot/2.0 (+https://www.example.com/)", "/news/", "disallow"),
            ("FarBot", "/google/", "disallow"),
            ("FarBot", "/news/", "allow"),
            ("OtherBot", "/news/", "disallow"),
        ):
            answer = await service.allowed(f"{origin.url}{path}", agent)
            assert answer["verdict"] == verdict, (agent, path)
        answer = await service.allowed(f"{origin.url}/", "FarBot")
        assert answer["dialect"] == "google"
        items = [{"url": f"{origin.url}/news/", "agent": agent} for agent in ("ExampleBot", "FarBot")]
        batch = (await service.client.post("/v1/allowed", json={"items": items})).json()["answers"]
        assert [answer["verdict"] for answer in batch] == ["disallow", "allow"]
        lines = "".join(f'{{"url":"{item["url"]}","agent":"{item["agent"]}"}}\n' for item in items)
        stream = await service.client.post(
            "/v1/allowed", content=lines, headers={"Content-Type": "application/x-ndjson"}
        )
        assert [line.count('"verdict":"disallow"') for line in stream.text.splitlines()] == [1, 0]


async def test_an_own_pace_bounds_permits_on_every_site(store_url: str, file: Path, tmp_path: Path) -> None:
    table = tmp_path / "recheck.toml"
    table.write_text('"a.test" = {floor = 2, cap = 4}\n"b.test" = {floor = 20}\n')
    async with serve(text(200, RULES)) as origin:
        names = {name: [str(origin.address)] for name in ("a.test", "b.test", "c.test")}
        async with running(store_url, names, agents_file=file, recheck_file=table) as service:
            for name, agent, interval in (
                ("a.test", "ExampleBot", 8),
                ("b.test", "ExampleBot", 20),
                ("c.test", "ExampleBot", 8),
                ("c.test", "ExampleBot-News", 3),
                ("a.test", "ExampleBot-News", 3),
            ):
                body = {"url": f"http://{name}:{origin.port}/x", "agent": agent, "max_wait": 3600}
                answer = (await service.client.post("/v1/permits", json=body)).json()
                assert answer["interval"] == interval, (name, agent)


async def test_the_file_is_reread_on_sighup_and_refused_whole(
    store_url: str, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url, agents_file=file) as service:
        assert (await service.allowed(f"{origin.url}/google/", "NewBot"))["verdict"] == "disallow"
        write(file, '[agents.NewBot]\nchain = ["ExampleBot-News"]\n')
        os.kill(os.getpid(), signal.SIGHUP)
        await until(lambda: known(service), lambda rows: "NewBot" in rows and "ExampleBot" not in rows)
        assert (await service.allowed(f"{origin.url}/google/", "NewBot"))["verdict"] == "allow"
        write(file, '[agents.LastBot]\n[agents.NewBot]\nchain = ["a b"]\n')
        with caplog.at_level(logging.ERROR):
            os.kill(os.getpid(), signal.SIGHUP)
            logged = "the agent 'NewBot' has chain.0 = 'a b'"
            await until(lambda: said(caplog), lambda text: logged in text)
        rows = await known(service)
        assert "LastBot" not in rows
        assert rows["NewBot"]["chain"] == ["newbot", "examplebot-news"]


def write(file: Path, text: str) -> None:
    file.write_text(text)


async def said(caplog: pytest.LogCaptureFixture) -> str:
    return caplog.text
