"""The client for Java: its own tests with JUnit, and the crawls of clients/conformance.json."""

import asyncio
import json
import subprocess
from functools import partial
from pathlib import Path

import pytest

from tests.clients.crawling import ROOT
from tests.clients.crawls import Came, Naming, Options, crawl_names, differences
from tests.clients.runners import run_tests


@pytest.mark.timeout(600)  # it has tests of its own, each with its patience
def test_java_client_passes_its_tests(tmp_path: Path) -> None:
    run_tests("sh clients/java/test/install.sh && sh clients/java/test/run.sh", tmp_path / "played")


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The class path of the client and its tests."""
    folder = tmp_path_factory.mktemp("classes")
    subprocess.run(["sh", "clients/java/test/compile.sh", folder], cwd=ROOT, check=True)
    return f"{folder}/classes:{folder}/robots-decisions.jar:/usr/share/java/jackson-core.jar:/usr/share/java/junit4.jar"


async def by_java(classes: str, service: str, options: Options, pages: list[str], _: Path) -> Came:
    plan = {"service": service, "client": dict(options), "urls": pages}
    crawl = await asyncio.create_subprocess_exec(
        *("java", "-XX:TieredStopAtLevel=1", "-cp", classes, "robotsdecisions.Crawl", json.dumps(plan)),
        stdout=asyncio.subprocess.PIPE,
    )
    said, _err = await crawl.communicate()
    assert crawl.returncode == 0
    return Came({url: (kind, text) for url, text, kind in json.loads(said)["failed"]})


@pytest.mark.parametrize("name", crawl_names())
async def test_every_crawl_holds(name: str, classes: str, tmp_path: Path) -> None:
    assert await differences(name, partial(by_java, classes), tmp_path, Naming(), has_queue=False) == []
