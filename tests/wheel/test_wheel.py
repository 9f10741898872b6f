"""The server as a wheel: built, installed where no compiler is, beside a crawler's own `app`, and asked."""

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from app import __version__
from app.observability.revision import REVISION
from tests.installing import ROOT, new_environment, run, uv
from tests.origins import serve, text

LISTENING = re.compile(r"Uvicorn running on (http://[0-9.:]+)")
STARTED = "Application startup complete"
SETTINGS = {"PORT": "0", "ALLOW_ADDRESSES": "127.0.0.0/8", "ALLOW_PORTS": "*"}
SECONDS = 600


def built(folder: Path) -> tuple[Path, Path]:
    """The wheels of this checkout: the server, and the core that it depends on."""
    quick = {**os.environ, "CFLAGS": "-g0"}  # what debuggers read is stripped from released wheels
    pip = (sys.executable, "-m", "pip", "--quiet", "wheel", "--no-deps", "--no-build-isolation")
    run(*pip, "-w", folder, ROOT)
    [server] = folder.glob("*.whl")
    run("sh", ROOT / "core" / "build.sh", sys.executable, folder, env=quick)
    [core] = folder.glob("robots_core-*.whl")
    return server, core


def installed(wheels: tuple[Path, Path], folder: Path) -> Path:
    """The programs of a new environment with the wheels and their locked dependencies, without a compiler."""
    run("make", "--silent", "build/wheels/.fetched")
    python = new_environment(folder)
    locks = [f"--requirement={ROOT}/locks/{name}.txt" for name in ("service", "embedded")]
    there = ("--find-links", ROOT / "build" / "wheels", "--only-binary", ":all:")
    uv("install", python, "--require-hashes", *there, *locks)
    uv("install", python, "--no-deps", *wheels)
    uv("check", python)
    return python.parent


@contextmanager
def serving(command: Sequence[str | Path], folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """The URL of a service that a command starts in a folder."""
    process = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        url, output = "", ""
        for line in process.stderr:
            output += line
            found = LISTENING.search(line)
            url = found[1] if found else url
            if url and STARTED in output:
                break
        else:
            raise AssertionError(f"the service has ended:\n{output}")
        yield url
    finally:
        process.terminate()
        process.communicate()
    assert process.returncode == 0


@pytest.mark.timeout(2 * SECONDS)
async def test_wheel_serves_beside_a_crawler_without_a_compiler(tmp_path: Path) -> None:
    wheels = built(tmp_path / "dist")
    wheel, _ = wheels
    assert wheel.name.endswith("-py3-none-any.whl")
    files = zipfile.ZipFile(wheel).namelist()
    listed = run("git", "ls-files", "app", "openapi.json").splitlines()
    assert {f"robots_decisions_server/_import_path/{name}" for name in listed} - set(files) == set()
    names = {name.partition("/")[0] for name in files}
    assert names == {"robots_decisions_server", f"robots_decisions_server-{__version__}.dist-info"}

    revision = zipfile.ZipFile(wheel).read("robots_decisions_server/_import_path/app/REVISION").decode()
    assert revision == f"{REVISION}\n"

    programs = installed(wheels, tmp_path / "venv")
    crawler = tmp_path / "crawler"
    (crawler / "app").mkdir(parents=True)
    (crawler / "app" / "__init__.py").write_text("OWN = 'the crawler'\n")
    inherited = {name: value for name, value in os.environ.items() if name not in {"REDIS_URL", "PYTHONPATH"}}
    environment = {**inherited, **SETTINGS, "PYTHONPATH": str(crawler), "CC": "/bin/false"}
    command = programs / "robots-decisions-server"
    assert run(command, "--version", env=environment) == f"robots-decisions-server {__version__}\n"
    own = run(programs / "python", "-c", "import app; print(app.OWN)", cwd=crawler, env=environment)
    assert own == "the crawler\n"

    module = (programs / "python", "-m", "robots_decisions_server", "serve")
    # A worker says that it has started before it listens.
    patient = httpx.AsyncHTTPTransport(retries=8)
    async with (
        serve(text(200, "User-agent: *\nDisallow: /private/\n")) as origin,
        httpx.AsyncClient(transport=patient) as client,
    ):
        # One process, and two workers, which are processes that import the service on their own.
        for started, workers in ((command, "serve"), "1"), (module, "2"):
            with serving(started, crawler, {**environment, "WORKERS": workers}) as url:
                asked = {"url": f"{origin.url}/private/", "agent": "ExampleBot"}
                answer = (await client.get(f"{url}/v1/allowed", params=asked, timeout=60)).json()
                assert (answer["verdict"], answer["rule"]["line"]) == ("disallow", 2)
                assert (await client.get(f"{url}/web/page.js")).status_code == 200
