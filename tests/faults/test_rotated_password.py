"""The password of the store is rotated while the service answers: in its file first, then at the server."""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from tests.api.service import Service, running
from tests.cli.command import run
from tests.engines import Node, node
from tests.faults.process import process
from tests.faults.until import until
from tests.origins import LoopbackOrigin, serve, text

OLD, NEW = "old password", "new password"
CALLERS = 4
NAMES = {f"{caller}.example": ["127.0.0.1"] for caller in range(CALLERS)}


@contextmanager
def store(password: str) -> Iterator[tuple[Node, str]]:
    """A server with the user `robots`, and its URL without the password."""
    with node() as server:
        server.ask("ACL", "SETUSER", "robots", "on", f">{password}", "~robots:*", "&robots:*", "+@all")
        yield server, f"redis://robots@127.0.0.1:{server.port}"


@asynccontextmanager
async def asking(service: Service, origin: LoopbackOrigin) -> AsyncIterator[list[str]]:
    """Callers that ask continuously, and need the store; the list gets what /readyz says of it."""
    said: list[str] = []

    async def ask(caller: int) -> None:
        number = 0
        while True:
            number += 1
            answer = await service.allowed(f"http://{caller}.example:{origin.port}/private/{number}")
            assert answer["verdict"] == "disallow", answer
            service.now += 10  # so that copies in memory are compared with the store
            said.append((await service.client.get("/readyz")).json()["store"])

    callers = [asyncio.create_task(ask(caller)) for caller in range(CALLERS)]
    try:
        yield said
    finally:
        for one in callers:
            assert not one.done() or one.exception() is None
            one.cancel()
        await asyncio.gather(*callers, return_exceptions=True)


async def more(said: list[str], count: int = 20) -> None:
    """Wait until so many more questions are answered."""
    goal = len(said) + count

    async def answers() -> int:
        return len(said)

    await until(answers, lambda number: number >= goal)


def numbers(server: Node) -> set[int]:
    """The connections of the service."""
    return {int(one["id"]) for one in server.ask("CLIENT LIST") if one["user"] == "robots"}


async def test_requests_go_on_while_the_password_is_rotated(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "app.files.reloaded_file")
    password = tmp_path / "password"
    password.write_text(OLD)
    password.chmod(0o600)
    with store(OLD) as (server, url):
        async with (
            serve(text(200, "User-agent: *\nDisallow: /private/\n")) as origin,
            running(url, NAMES, redis_password_file=password, watch_seconds=0.1) as service,
            asking(service, origin) as said,
        ):
            await more(said)
            server.ask("ACL", "SETUSER", "robots", f">{NEW}")
            await more(said)
            password.write_text(f"{NEW}\n")
            await until(
                lambda: asyncio.sleep(0, caplog.text), lambda log: f"reloaded REDIS_PASSWORD_FILE={password}" in log
            )
            await more(said)
            server.ask("ACL", "SETUSER", "robots", f"<{OLD}")
            await more(said)
            assert set(said) == {"ok"}
            before = numbers(server)
            server.ask("CLIENT", "KILL", "USER", "robots")
            # Calls under way fail, as they do whenever connections are lost.
            await until(lambda: asyncio.sleep(0, numbers(server)), lambda now: bool(now - before))
            await until(lambda: more(said, 1), lambda _: said[-1] == "ok")
            said.clear()
            await more(said)
            assert set(said) == {"ok"}
            assert [entry for entry in server.ask("ACL LOG") if entry["reason"] == "auth"] == []
    assert OLD not in caplog.text
    assert NEW not in caplog.text


async def test_a_wrong_password_degrades_the_store_until_the_file_changes(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text(OLD)
    password.chmod(0o600)
    with store(NEW) as (_server, url):
        async with (
            serve(text(200, "User-agent: *\nDisallow: /private/\n")) as origin,
            running(url, NAMES, redis_password_file=password) as service,
            asking(service, origin) as said,
        ):
            await more(said)
            assert set(said) == {"degraded"}
            detail = (await service.client.get("/readyz")).json()["detail"]
            assert "the store refused the user or the password: " in detail
            assert OLD not in detail
            password.write_text(NEW)
            await until(lambda: more(said, 1), lambda _: said[-1] == "ok")


async def test_workers_use_the_new_password_after_sighup(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text(OLD)
    password.chmod(0o600)
    with (
        store(OLD) as (server, url),
        process(WORKERS="2", REDIS_URL=url, REDIS_PASSWORD_FILE=str(password)) as service,
    ):
        service.wait_ready(workers=2)
        server.ask("ACL", "SETUSER", "robots", f">{NEW}")
        password.write_text(NEW)
        service.send_signal(signal.SIGHUP)
        service.wait_for("All workers were replaced.")
        server.ask("ACL", "SETUSER", "robots", f"<{OLD}")
        before = numbers(server)
        server.ask("CLIENT", "KILL", "USER", "robots")

        async def workers() -> int:
            """How many connections are new; each worker has two at least, one of which is a subscriber's."""
            return len(numbers(server) - before)

        await until(workers, lambda number: number >= 4)
        assert [entry for entry in server.ask("ACL LOG") if entry["reason"] == "auth"] == []


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "set REDIS_URL, too"),
        ({"REDIS_URL": "redis://:other-secret@127.0.0.1:1"}, "REDIS_URL has a password, and REDIS_PASSWORD_FILE="),
        (
            {"REDIS_URL": "redis://127.0.0.1:1", "REDIS_PASSWORD_FILE": "{}/none"},
            "/none is invalid: it cannot be opened",
        ),
        ({"REDIS_URL": "redis://127.0.0.1:1", "REDIS_PASSWORD_FILE": "{}/empty"}, "/empty is invalid: it is empty"),
    ],
)
async def test_a_password_file_that_cannot_be_used_stops_the_start(
    settings: dict[str, str], reason: str, tmp_path: Path
) -> None:
    (tmp_path / "password").write_text("the-secret")
    (tmp_path / "empty").touch()
    chosen = {"PORT": "0", "REDIS_PASSWORD_FILE": "{}/password", **settings}
    ended = await run(settings={name: value.format(tmp_path) for name, value in chosen.items()})
    assert ended.code != 0
    output = ended.out + ended.err
    assert reason in output
    assert "Traceback" not in output
    assert "secret" not in output
