"""The service as the chart starts it: with the environment, the files and the Valkey of its manifests."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from app.store.embedded import server_binary
from tests.faults.until import until
from tests.helm.render import NAMESPACE, TRIAL, objects
from tests.origins import serve, text

ASK = Path(__file__).parent.parent.parent / "deploy" / "image" / "ask.py"
STORE = f"robots-decisions-valkey.{NAMESPACE}.svc.cluster.local:6379"
FILE = "User-agent: *\nDisallow: /private/\n"


def container(found: dict[tuple[str, str], Any], name: str) -> Any:
    [only] = found["Deployment", name]["spec"]["template"]["spec"]["containers"]
    return only


def environment(found: dict[tuple[str, str], Any]) -> dict[str, str]:
    """The variables of the container."""
    pod = container(found, "robots-decisions")
    variables: dict[str, str] = {}
    for source in pod["envFrom"]:
        variables |= found["ConfigMap", source["configMapRef"]["name"]]["data"]
    return variables | {variable["name"]: variable["value"] for variable in pod["env"]}


def mounted(found: dict[tuple[str, str], Any], root: Path) -> dict[str, str]:
    """The ConfigMaps that are mounted as directories below `root`: by mount path, the directory."""
    spec = found["Deployment", "robots-decisions"]["spec"]["template"]["spec"]
    maps = {volume["name"]: volume["configMap"]["name"] for volume in spec["volumes"] if "configMap" in volume}
    directories = {}
    for mount in container(found, "robots-decisions")["volumeMounts"]:
        if mount["name"] in maps:
            directory = root / mount["name"]
            directory.mkdir()
            for name, content in found["ConfigMap", maps[mount["name"]]]["data"].items():
                (directory / name).write_text(content)
            directories[mount["mountPath"]] = str(directory)
    return directories


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port: int = bound.getsockname()[1]
        return port


@contextmanager
def process(*command: str, env: dict[str, str], log: Path) -> Iterator[None]:
    with log.open("wb") as output:
        started = subprocess.Popen(command, env=env, stdout=output, stderr=output)
        try:
            yield
        finally:
            started.terminate()
            started.wait(30)


def asked(*arguments: str, **variables: str) -> tuple[int, list[tuple[int, dict[str, Any]]]]:
    """The exit code of ask.py, and the statuses and answers that it printed."""
    done = subprocess.run(
        [sys.executable, str(ASK), *arguments], env=variables, capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    parts = [line.partition(" ") for line in done.stdout.splitlines()]
    if not all(status.isdecimal() for status, _, _ in parts):
        return done.returncode, []
    return done.returncode, [(int(status), json.loads(answer)) for status, _, answer in parts]


async def test_pods_of_the_smallest_release_answer(tmp_path: Path) -> None:
    found = objects(*TRIAL)
    variables = environment(found)
    store, port = free_port(), free_port()
    assert variables["REDIS_URL"] == f"redis://{STORE}"
    for path, directory in mounted(found, tmp_path).items():
        variables = {name: value.replace(path, directory) for name, value in variables.items()}
    here = {"REDIS_URL": f"redis://127.0.0.1:{store}", "PORT": str(port)}
    loopback = {"ALLOW_ADDRESSES": "127.0.0.0/8", "ALLOW_PORTS": "*", "PATH": os.environ["PATH"]}
    valkey = container(found, "robots-decisions-valkey")
    server = [
        str(server_binary()),
        *valkey["args"],
        "--port",
        str(store),
        "--bind",
        "127.0.0.1",
        "--dir",
        str(tmp_path),
    ]
    url = f"http://127.0.0.1:{port}"
    async with serve(text(200, FILE)) as origin:
        with (
            process(*server, env={}, log=tmp_path / "valkey.log"),
            process(sys.executable, "-m", "app", env={**variables, **here, **loopback}, log=tmp_path / "service.log"),
        ):
            await until(lambda: answers(url), lambda code: code == 0)
            code, [ready, decision] = await asyncio.to_thread(asked, url, f"{origin.url}/private/page")
            assert (code, ready) == (0, (200, {"status": "ready", "store": "ok"}))
            assert decision[0] == 200
            assert (decision[1]["verdict"], decision[1]["reason"]) == ("disallow", "rule")
            assert asked(PORT=str(port)) == (0, [ready])


async def answers(url: str) -> int:
    return (await asyncio.to_thread(asked, url))[0]


@pytest.mark.parametrize(
    ("status", "key", "code"), [(200, None, 0), (200, "secret", 0), (401, None, 0), (401, "secret", 1), (503, None, 1)]
)
async def test_the_test_fails_unless_the_service_decides(
    status: int, key: str | None, code: int, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("secret\n")
    variables = {} if key is None else {"KEY_FILE": str(tmp_path / "key")}
    async with serve(text(status, "{}")) as service:
        found, lines = await asyncio.to_thread(asked, service.url, "https://www.example.com/?a=b&c", **variables)
        assert (found, [line[0] for line in lines]) == (code, [status, status])
        [ready, question] = service.requests
        assert ready.startswith(b"GET /readyz ")
        assert question.startswith(
            b"GET /v1/allowed?url=https%3A%2F%2Fwww.example.com%2F%3Fa%3Db%26c&agent=ExampleBot&wait=10 "
        )
        assert (b"authorization: bearer secret" in question.lower()) is (key is not None)


def test_the_test_fails_if_nothing_answers() -> None:
    assert asked(f"http://127.0.0.1:{free_port()}") == (1, [])
