import asyncio
from collections.abc import Callable, Mapping

import pytest

from tests.loops import LOOPS


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Every test of the fetch runs on both event loops."""
    return LOOPS
