# scripts/generate.py made this module from _async/httpx_http.py; change that one.
"""The service over httpx."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from robots_decisions._io import Reply
from robots_decisions.permits import Fields, Unavailable


class HttpxHttp:
    """Sends requests by httpx. `transport` replaces its own."""

    def __init__(self, transport: httpx.BaseTransport | None = None) -> None:
        self._client = httpx.Client(transport=transport or httpx.HTTPTransport(), trust_env=False)

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
    except httpx.TimeoutException:
        raise Unavailable(f"it does not respond within {timeout:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Unavailable(f"it cannot be reached: {str(error) or type(error).__name__}") from None
