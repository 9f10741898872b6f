"""`python -m app`: it refuses to start without keys on a public address."""

import pytest

from app.cli.serve import check_exposure
from app.settings import BadSetting, Settings
from tests.cli.command import run


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
