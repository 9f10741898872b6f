"""The client as crawlers get it: from its wheel, without a compiler, and without the service."""

import ast
import asyncio
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.clients.crawling import CRAWLERS, ROOT, Installation, crawl
from tests.clients.permitting import Relay
from tests.clients.site import HTML, TICK, Site, new_address
from tests.installing import new_environment, run, uv
from tests.origins import serve, text

VERSION = tomllib.loads((ROOT / "clients" / "python" / "pyproject.toml").read_text())["project"]["version"]
NO_COMPILER = {**os.environ, "CC": "/bin/false", "CXX": "/bin/false"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "--quiet")
    run(*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, "clients/python", env=NO_COMPILER)
    (found,) = folder.iterdir()
    return found


@pytest.fixture(scope="module")
def installation(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The wheel, installed beside the libraries of crawlers."""
    run("make", "--silent", "build/clients/.installed")
    packages = tmp_path_factory.mktemp("packages")
    uv("install", CRAWLERS, "--no-deps", "--target", packages, wheel)
    return Installation(str(CRAWLERS), packages, tmp_path_factory.mktemp("empty"))


def test_wheel_is_pure_typed_and_has_one_package(wheel: Path) -> None:
    assert wheel.name == f"robots_decisions-{VERSION}-py3-none-any.whl"
    names = ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"robots_decisions", f"robots_decisions-{VERSION}.dist-info"}
    assert "robots_decisions/py.typed" in names
    sources = {str(path.relative_to(ROOT / "clients/python/src")) for path in ROOT.glob("clients/python/src/**/*.py")}
    assert sources <= set(names)


def test_wheel_needs_nothing_in_a_fresh_environment(wheel: Path, tmp_path: Path) -> None:
    python = new_environment(tmp_path / "venv")
    uv("install", python, wheel)
    installed = uv("list", python, "--format=freeze").split()
    assert [line.split("==")[0] for line in installed] == ["robots-decisions"]
    code = "import robots_decisions as r; print(r.__file__); r.Client('http://127.0.0.1:9')"
    ended = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    assert ended.stdout.startswith(str(tmp_path))
    assert "install robots-decisions with the extra 'httpx', 'httpx2' or 'requests'" in ended.stderr


def test_environment_of_crawlers_has_nothing_of_the_service(installation: Installation) -> None:
    ended = subprocess.run(
        [installation.python, "-c", "import app"],
        cwd=installation.directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "No module named 'app'" in ended.stderr


def test_wheel_replaces_an_older_one(wheel: Path, tmp_path: Path) -> None:
    python = new_environment(tmp_path / "venv")
    older = tmp_path / "robots_decisions-0.1.0-py3-none-any.whl"
    with ZipFile(wheel) as new, ZipFile(older, "w") as old:
        for name in new.namelist():
            old.writestr(name.replace(VERSION, "0.1.0"), new.read(name).replace(VERSION.encode(), b"0.1.0"))
    for each in (older, wheel):
        uv("install", python, each)
    assert uv("list", python, "--format=freeze").split() == [f"robots-decisions=={VERSION}"]


async def test_installed_command_writes_parquet(installation: Installation, service_url: str, tmp_path: Path) -> None:
    listed, output, state = tmp_path / "list", tmp_path / "out", tmp_path / "state"
    script = installation.packages / "bin" / "robots-decisions"
    code = "import sys, pyarrow.parquet as p; print(p.read_table(sys.argv[1] + '/part-000000.parquet').to_pylist())"
    async with serve(Site("User-agent: *\nDisallow: /private/\n"), host=new_address()) as origin:
        listed.write_text("".join(f"{origin.url}/{name}\n" for name in ("private/1", "2", "3")))
        arguments: list[str | Path] = [
            "check",
            listed,
            "--agent",
            "ExampleBot",
            "--server",
            service_url,
            "--format",
            "parquet",
        ]
        environment = {**NO_COMPILER, "PYTHONPATH": str(installation.packages)}
        resumed = (installation.python, script, *arguments, "--output", output, "--state", state)
        for stranger in (".DS_Store", "_SUCCESS"):  # what others put there is left alone, and shifts no part
            ended = await asyncio.create_subprocess_exec(*resumed, env=environment)
            assert await ended.wait() == 1
            (output / stranger).touch()
        refused = await asyncio.create_subprocess_exec(
            installation.python, script, *arguments, "--output", output, env=environment
        )
        assert await refused.wait() == 3
        part = output / "part-000000.parquet"
        assert sorted(output.iterdir()) == [output / ".DS_Store", output / "_SUCCESS", part]
        part.rename(tmp_path / part.name)
        without = await asyncio.create_subprocess_exec(*resumed, env=environment, stderr=asyncio.subprocess.PIPE)
        _, error = await without.communicate()
        assert (without.returncode, f"{output} has no {part.name}" in error.decode()) == (3, True)
        (tmp_path / part.name).rename(part)
    rows = ast.literal_eval(run(installation.python, "-c", code, output, env=environment))
    assert {row["line"]: (row["verdict"], row["rule_line"], row["retry_at"]) for row in rows} == {
        1: ("disallow", 2, None), 2: ("allow", None, None), 3: ("allow", None, None),
    }  # fmt: skip


EACH = [
    "httpx",
    "httpx-threads",
    "httpx2",
    "httpx2-threads",
    "aiohttp",
    "requests",
    "crawlee",
    "client",
    "client-threads",
]


@pytest.mark.parametrize("integration", EACH)
async def test_installed_integration_keeps_to_the_file(
    integration: str, installation: Installation, service_url: str
) -> None:
    interval = 0.2
    site = Site(f"User-agent: *\nDisallow: /private/\nCrawl-delay: {interval}\n")
    relay = Relay(service_url, defers="/late")
    async with serve(site, host=new_address()) as origin, serve(relay) as between:
        pages = [f"{origin.url}/{name}" for name in ("1", "2", "3", "4", "late")]
        plan = {"integration": integration, "service": between.url, "urls": [*pages, f"{origin.url}/private/page"]}
        came = await crawl(plan, "integrations", installation)
    assert {url: came[url] for url in pages} == dict.fromkeys(pages, 200)
    assert came[f"{origin.url}/private/page"] == "Disallowed"
    assert sorted(site.paths) == sorted(["/robots.txt", "/1", "/2", "/3", "/4", "/late"])
    assert relay.deferred == [f"{origin.url}/late"]
    assert site.ahead_of_turns(origin.url, relay.turns) == []
    assert relay.shortest >= interval - TICK


async def test_installed_scrapy_middleware_keeps_to_the_file(installation: Installation, service_url: str) -> None:
    interval = 0.2
    busy = [text(503, "busy", {**HTML, "Retry-After": "1"}), text(200, "at last", HTML)]
    site = Site(f"User-agent: *\nDisallow: /private/\nCrawl-delay: {interval}\n", {"/busy": busy})
    relay = Relay(service_url, defers="/late")
    async with serve(site, host=new_address()) as origin, serve(relay) as between:
        pages = [f"{origin.url}/{name}" for name in ("1", "2", "3", "late", "busy")]
        settings = {"ROBOTS_DECISIONS_URL": between.url, "RETRY_TIMES": 1}
        plan = {"urls": [*pages, f"{origin.url}/private/page"], "settings": settings}
        came = await crawl(plan, installation=installation)
    assert sorted(came["fetched"]) == sorted(pages)
    assert came["failed"] == {f"{origin.url}/private/page": "Disallowed"}
    assert relay.deferred == [f"{origin.url}/late"]
    assert site.ahead_of_turns(origin.url, relay.turns) == []
    assert relay.shortest >= interval - TICK
