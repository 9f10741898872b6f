"""`python -m app`: whom it lets ask, and what it says where that is not clear."""

import pytest

from app.cli.serve import check_exposure
from app.settings import BadSetting, Settings
from tests.cli.command import run


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.7", "robots.example"])
def test_other_machines_may_not_ask_without_keys_unless_that_is_said(host: str) -> None:
    with pytest.raises(BadSetting, match=r"API_KEYS_FILE is not set.*ALLOW_UNAUTHENTICATED=1"):
        check_exposure(Settings(host=host))
    check_exposure(Settings(host=host, allow_unauthenticated=True))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_this_machine_may_ask_without_keys(host: str) -> None:
    check_exposure(Settings(host=host))


async def test_serve_says_what_to_set_and_does_not_start() -> None:
    ended = await run("serve", settings={"HOST": "0.0.0.0", "PORT": "0"})
    assert ended.code == 3
    assert ended.err.startswith("cannot start: HOST=0.0.0.0 lets other machines ask")
