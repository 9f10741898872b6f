# scripts/generate.py made this module from _async/httpx_http.py; change that one.
"""The service over httpx2."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx2

from robots_decisions._io import Reply
from robots_decisions.permits import Fields, Unavailable


class Httpx2Http:
    """Sends requests by httpx2. `transport` replaces its own."""

    def __init__(self, transport: httpx2.BaseTransport | None = None) -> None:
        self._client = httpx2.Client(transport=transport or httpx2.HTTPTransport(), trust_env=False)

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
        with _explained(timeout):
            with self._client.stream(method, url, headers=headers, content=content, timeout=timeout) as response:
                yield Reply(response.status_code, response.headers, response.iter_raw())


@contextmanager
def _explained(timeout: float) -> Iterator[None]:
    try:
        yield
    except httpx2.TimeoutException:
        raise Unavailable(f"it does not respond within {timeout:g} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise Unavailable(f"it cannot be reached: {str(error) or type(error).__name__}") from None
