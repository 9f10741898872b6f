"""A clock that is off is logged once, and so is its end."""

import logging

import pytest

from app.store.store_clock import OFF, StoreClocks

NOW = 1_700_000_000.0


@pytest.mark.parametrize(("by", "side"), [(OFF + 1, "ahead of"), (-OFF - 1, "behind")])
def test_clocks_that_differ_are_logged_once(by: float, side: str, caplog: pytest.LogCaptureFixture) -> None:
    clocks = StoreClocks(lambda: NOW, lambda: 0.0)
    caplog.set_level(logging.INFO, "app.store.store_clock")
    for offset in (0.0, by / 2, by, by, 0.0, 0.0, by):
        clocks.sync({0: NOW + offset, 1: NOW}, 0.0)
    begun = f"The store's clock is 11 s {side} that of this process. Set the wrong one."
    ended = "The clocks of the store and of this process agree again, to 10 s"
    assert [record.getMessage() for record in caplog.records] == [begun, ended, begun]
