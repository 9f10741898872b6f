"""The service over httpx."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import httpx

from robots_decisions._io import AsyncReply
from robots_decisions.permits import Fields, Unavailable


class AsyncHttpxHttp:
    """Sends requests by httpx. `transport` replaces its own."""

    def __init__(self, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._client = httpx.AsyncClient(transport=transport or httpx.AsyncHTTPTransport(), trust_env=False)

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
    except httpx.TimeoutException:
        raise Unavailable(f"it does not respond within {timeout:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Unavailable(f"it cannot be reached: {str(error) or type(error).__name__}") from None
