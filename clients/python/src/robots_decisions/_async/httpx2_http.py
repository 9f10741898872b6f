# scripts/generate.py made this module from _async/httpx_http.py; change that one.
"""The service over httpx2."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import httpx2

from robots_decisions._io import AsyncReply
from robots_decisions.permits import Fields, Unavailable


class AsyncHttpx2Http:
    """Sends requests by httpx2. `transport` replaces its own."""

    def __init__(self, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        self._client = httpx2.AsyncClient(transport=transport or httpx2.AsyncHTTPTransport(), trust_env=False)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        headers: Fields,
        content: bytes | None,
        timeout: float,
    ) -> AsyncIterator[AsyncReply]:
        """Send a request. The connection, and each piece of the response, may take `timeout` seconds."""
        with _explained(timeout):
            async with self._client.stream(method, url, headers=headers, content=content, timeout=timeout) as response:
                yield AsyncReply(response.status_code, response.headers, response.aiter_raw())


@contextmanager
def _explained(timeout: float) -> Iterator[None]:
    try:
        yield
    except httpx2.TimeoutException:
        raise Unavailable(f"it does not respond within {timeout:g} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise Unavailable(f"it cannot be reached: {str(error) or type(error).__name__}") from None
