"""A service in a process of its own, with a store of its own: other tests flush the one of `store_url`."""

from collections.abc import Iterator
from contextlib import contextmanager

from app.store.embedded import serve
from tests.forked import ForkedService


@contextmanager
def service(**settings: str) -> Iterator[str]:
    """The URL of a service with these settings."""
    with serve(None) as store:
        forked = ForkedService(store, **settings)
        try:
            yield forked.listen()
        finally:
            forked.kill()
