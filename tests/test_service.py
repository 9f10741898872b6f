"""The service as users start it, as a process."""

import signal

import httpx
import pytest

from tests.origins import serve, text
from tests.service_process import started


async def test_a_killed_service_leaves_no_server_behind() -> None:
    async with serve(text(200, "User-agent: *\nDisallow: /private/\n")) as origin:
        with started() as service:
            async with httpx.AsyncClient(base_url=service.url) as client:
                query = {"url": f"{origin.url}/private/page", "agent": "ExampleBot"}
                answer = (await client.get("/v1/allowed", params=query)).json()
                assert (answer["verdict"], answer["rule"]["line"]) == ("disallow", 2)
                assert (await client.get("/readyz")).json() == {"status": "ready", "store": "ok"}
                assert (await client.get("/healthz")).json() == {"status": "ok"}
                assert "swagger" in (await client.get("/docs")).text
            [server] = service.servers
            service.signal(signal.SIGKILL)
            assert not server.is_running()


async def test_a_service_ends_cleanly_on_sigterm() -> None:
    with started() as service:
        [server] = service.servers
        assert "Finished server process" in service.signal(signal.SIGTERM)
        assert not server.is_running()


async def test_workers_share_one_embedded_server() -> None:
    with started(WORKERS="2") as service:
        async with httpx.AsyncClient(base_url=service.url) as client:
            assert (await client.get("/readyz")).json()["store"] == "ok"
        [server] = service.servers
        service.signal(signal.SIGKILL)
        assert not server.is_running()


@pytest.mark.parametrize(
    ("name", "value"), [("FETCH_TIMEOUT", "soon"), ("REDIS_URL", "mysql://h"), ("ALLOW_ADDRESSES", "all")]
)
def test_invalid_setting_stops_the_start(name: str, value: str) -> None:
    with started(**{name: value}) as service:
        service.process.communicate()
        assert service.process.returncode != 0
        assert name in service.output
        assert "Traceback" not in service.output
