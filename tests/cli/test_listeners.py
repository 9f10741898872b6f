"""`HOST=::` listens on both families, with one process and with several."""

import errno
import socket

import httpx
import pytest

from app.cli import listeners
from app.cli.serve import configuration
from app.main.settings import BadSetting, Settings
from tests.faults.process import process


@pytest.mark.parametrize("workers", [1, 2])
def test_every_address_of_both_families_is_served(store_url: str, workers: int) -> None:
    with process(HOST="::", ALLOW_UNAUTHENTICATED="1", WORKERS=str(workers), REDIS_URL=store_url) as service:
        port = service.wait_ready(workers).rpartition(":")[2]
        for host in ("127.0.0.1", "[::1]"):
            assert httpx.get(f"http://{host}:{port}/healthz", timeout=60).json() == {"status": "ok"}
        service.send_signal()
        assert service.ended() == 0


def test_ipv4_clients_keep_their_addresses() -> None:
    found = listeners.listeners(configuration(Settings(host="::", port=0)))
    assert found is not None
    ipv4, ipv6 = found
    with ipv4, ipv6:
        assert ipv4.getsockname()[1] == ipv6.getsockname()[1]
        assert ipv6.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY) == 1


def test_a_name_is_left_to_the_server() -> None:
    assert listeners.listeners(configuration(Settings(host="localhost", port=0))) is None


@pytest.mark.parametrize(("host", "named"), [("::", "0.0.0.0"), ("127.0.0.1", "127.0.0.1"), ("::1", "::1")])
def test_a_taken_port_is_named(host: str, named: str) -> None:
    with socket.create_server((named, 0), family=socket.AF_INET6 if ":" in named else socket.AF_INET) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BadSetting, match=f"PORT={port} is in use on {named}: set another, as in PORT={port + 1}"):
            listeners.listeners(configuration(Settings(host=host, port=port)))


def test_without_ipv6_only_ipv4_is_listened_on(monkeypatch: pytest.MonkeyPatch) -> None:
    create = socket.create_server

    def without_ipv6(address: tuple[str, int], *, family: socket.AddressFamily, backlog: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        return create(address, family=family, backlog=backlog)

    monkeypatch.setattr(socket, "create_server", without_ipv6)
    found = listeners.listeners(configuration(Settings(host="::", port=0)))
    assert found is not None
    [only] = found
    with only:
        assert only.family == socket.AF_INET
