"""A service for all tests of this directory in one process."""

from collections.abc import Iterator

import pytest

from tests.service_process import started


@pytest.fixture(scope="session")
def service_url() -> Iterator[str]:
    """The URL of a service that remembers the origins of earlier tests: serve others at `new_address()`."""
    # No access log: nothing reads the output of the process once it has started.
    with started(PACE_FLOOR="0.01", ACCESS_LOG="false") as service:
        yield service.url
