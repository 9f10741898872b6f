# scripts/generate.py made this module from _async/http.py; change that one.
"""Requests to the service by httpx or httpx2, whose names are the same."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Generic, TypeVar

from robots_decisions._io import Reply
from robots_decisions._not_http import is_not_http
from robots_decisions.permits import Fields, late, not_http, unreached

TransportT = TypeVar("TransportT")


class LibraryHttp(Generic[TransportT]):
    """Sends requests by a library. `transport` replaces the library's own."""

    library: ModuleType

    def __init__(self, transport: TransportT | None = None) -> None:
        transport = transport or self.library.HTTPTransport()
        self._client = self.library.Client(transport=transport, trust_env=False)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    @contextmanager
    def stream(
        self,
        method: str,
        url: str,
        headers: Fields,
        content: bytes | None,
        timeout: float,
    ) -> Iterator[Reply]:
        """Send a request. The connection, and each piece of the response, may take `timeout` seconds."""
        with _explained(self.library, timeout):
            with self._client.stream(method, url, headers=headers, content=content, timeout=timeout) as response:
                yield Reply(response.status_code, response.headers, response.iter_raw())


@contextmanager
def _explained(library: ModuleType, timeout: float) -> Iterator[None]:
    try:
        yield
    except library.TimeoutException:
        raise late(timeout) from None
    except (library.HTTPError, library.InvalidURL) as error:
        not_asked = isinstance(error, library.InvalidURL | library.UnsupportedProtocol | library.TooManyRedirects)
        if not_asked or is_not_http(error, library.RemoteProtocolError):
            raise not_http(error) from None
        raise unreached(error) from None
