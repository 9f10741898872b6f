import asyncio
from collections.abc import Callable, Mapping

import pytest

from tests.loops import DEFAULT, LOOPS


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Hostile origins are met on both event loops."""
    return LOOPS if item.path.name == "test_hostile_origins.py" else DEFAULT
