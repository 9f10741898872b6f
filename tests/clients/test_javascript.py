"""The client for JavaScript: its types, its own tests with Node.js, and the crawls of clients/conformance.json."""

import asyncio
import json
import subprocess
from functools import partial
from pathlib import Path

import pytest

from tests.browser.tester import binary
from tests.clients.crawling import ROOT
from tests.clients.crawls import Came, Naming, Options, crawl_names, differences
from tests.clients.runners import run_tests

TESTS = ROOT / "clients" / "javascript" / "test"


@pytest.mark.timeout(600)  # it has tests of its own, each with its patience
def test_javascript_client_passes_its_tests(tmp_path: Path) -> None:
    run_tests(
        "make --silent clients/javascript/node_modules/.package-lock.json"
        " && cd clients/javascript && npm run --silent types && npm test --silent",
        tmp_path / "played",
        CHROMIUM=binary(),
    )


@pytest.fixture(scope="module")
def modules() -> None:
    """What the crawlers import."""
    subprocess.run(["make", "--silent", "clients/javascript/node_modules/.package-lock.json"], cwd=ROOT, check=True)


async def by_script(script: str, service: str, options: Options, pages: list[str], folder: Path) -> Came:
    plan = {"service": service, "client": dict(options), "urls": pages, "storage": str(folder)}
    crawl = await asyncio.create_subprocess_exec(
        "node", str(TESTS / script), json.dumps(plan), stdout=asyncio.subprocess.PIPE
    )
    said, _ = await crawl.communicate()
    assert crawl.returncode == 0
    came = json.loads(said.splitlines()[-1])
    return Came({url: (kind, text) for url, text, kind in came["failed"]}, came["misconfigured"] or "")


@pytest.mark.usefixtures("modules")
@pytest.mark.parametrize("name", crawl_names())
@pytest.mark.parametrize("script", ["fetched.js", "queued.js"])
async def test_every_crawl_holds(script: str, name: str, tmp_path: Path) -> None:
    crawler = partial(by_script, script)
    assert await differences(name, crawler, tmp_path, Naming(), has_queue=script == "queued.js") == []
