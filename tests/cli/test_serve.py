"""`python -m app`: without keys, it refuses to start on a public address, and makes a token for operators."""

import asyncio
from pathlib import Path

import httpx
import pytest

from app.auth.operator_token import FILE_NAME
from app.cli.serve import check_exposure, configuration
from app.main.settings import BadSetting, Settings
from tests.cli.command import run
from tests.faults.process import process


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.7", "robots.example"])
def test_public_host_without_keys_needs_explicit_permission(host: str) -> None:
    with pytest.raises(BadSetting, match=r"API_KEYS_FILE is not set.*ALLOW_UNAUTHENTICATED=1"):
        check_exposure(Settings(host=host))
    check_exposure(Settings(host=host, allow_unauthenticated=True))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_host_needs_no_keys(host: str) -> None:
    check_exposure(Settings(host=host))


async def test_serve_names_the_settings_and_does_not_start() -> None:
    ended = await run("serve", settings={"HOST": "0.0.0.0", "PORT": "0"})
    assert ended.code == 3
    assert ended.err.startswith("cannot start: HOST=0.0.0.0 lets other machines use the service")


async def test_a_token_that_cannot_be_written_stops_the_start(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    ended = await run(
        "serve", settings={"PORT": "0", "REDIS_URL": "redis://127.0.0.1:1", "OPERATOR_TOKEN_FILE": f"{file}/t"}
    )
    assert ended.code == 3
    assert ended.err.startswith(f"cannot start: OPERATOR_TOKEN_FILE={file}/t: it cannot be written")


@pytest.mark.parametrize("workers", [1, 2])
def test_the_start_says_how_to_use_the_token(workers: int, tmp_path: Path) -> None:
    settings = {"REDIS_URL": "redis://127.0.0.1:1", "WORKERS": str(workers), "DATA_DIR": str(tmp_path)}
    with process(**settings, OPERATOR_TOKEN_FILE="") as service:
        url = service.wait_ready(workers)
        token = (tmp_path / FILE_NAME).read_text().strip()
        assert f'curl -H "Authorization: Bearer $(cat {tmp_path / FILE_NAME})"' in service.output
        assert token not in service.output
        for _ in range(2 * workers):  # whichever process answers
            refused = httpx.put(f"{url}/v1/overrides/one", json={})
            accepted = httpx.put(f"{url}/v1/overrides/one", json={}, headers={"Authorization": f"Bearer {token}"})
            assert (refused.status_code, accepted.status_code) == (401, 422)


USUAL_IDLE_SECONDS = {"httpx": 5, "aiohttp": 15, "urllib3 and Node.js": 5, "nginx": 60, "AWS ALB": 60, "envoy.yaml": 60}
"""How long clients and proxies keep an idle connection, by default or by the configuration of this repository."""


def test_idle_connections_are_kept_for_longer_than_clients_keep_them() -> None:
    assert configuration(Settings()).timeout_keep_alive > max(USUAL_IDLE_SECONDS.values())


async def test_an_idle_connection_is_closed_after_the_time_that_is_set() -> None:
    with process(REDIS_URL="redis://127.0.0.1:1", KEEP_ALIVE_SECONDS="1") as service:
        url = httpx.URL(service.wait_ready())
        reader, writer = await asyncio.open_connection(url.host, url.port)
        for _ in range(2):  # it is used again, and then idle
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await reader.readuntil(b"}")
        assert await asyncio.wait_for(reader.read(), 60.0) == b""
        writer.close()
