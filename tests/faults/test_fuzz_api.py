"""`make fuzz NAME=api` detects too much memory, a 500 and a hang, and is reproducible by its seed."""

import random
from itertools import islice
from typing import cast

import pytest
from starlette.types import Receive, Scope, Send

from tests.api.raw_client import serve_app
from tests.faults.fuzz_api import LEFT, Broken, Fuzzer, Watch, fuzz
from tests.faults.hostile_requests import Hostile, requests
from tests.faults.process import Process

ORIGINS = ["http://127.0.0.1:1"]


class At:
    """The part of a process that the fuzzer uses: its address."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"


async def broken(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 500, "headers": [(b"connection", b"close")]})
    await send({"type": "http.response.body", "body": b""})


def some(seed: int) -> list[Hostile]:
    return list(islice(requests(random.Random(seed), ORIGINS), 60))


def test_a_seed_makes_the_same_requests_again() -> None:
    assert some(1) == some(1)
    assert some(1) != some(2)
    assert len({one.kind for one in some(1)}) > 10


async def test_a_500_ends_the_run_and_its_request_is_stored(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("run"))
    async with serve_app(broken) as ((_, port), _):
        service = cast("Process", At(port))
        fuzzer = Fuzzer(service, Watch(service, 1), 1, ORIGINS)
        with pytest.raises(Broken, match="answered with 500"):
            await fuzzer.run(60)
    assert list(LEFT.glob("*"))


async def test_too_much_memory_ends_the_run() -> None:
    with pytest.raises(Broken, match=r"holds [0-9]+ MiB; 1 are its bound"):
        await fuzz(5, seed=1, most=1)
