"""A service for all tests of this directory in one process."""

from collections.abc import Iterator

import pytest

from tests.clients.serving import service
from tests.forked import preload

preload("tests.clients.preloaded")


@pytest.fixture(scope="session")
def service_url() -> Iterator[str]:
    """The URL of a service that remembers the origins of earlier tests: serve others at `new_address()`."""
    with service(PACE_FLOOR="0.01") as url:
        yield url


@pytest.fixture(scope="session")
def default_pace_url() -> Iterator[str]:
    """The URL of a service with the default pace."""
    with service() as url:
        yield url
