"""Requests to the service by httpx or httpx2, whose names are the same."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import ModuleType
from typing import Generic, TypeVar

from robots_decisions._io import AsyncReply
from robots_decisions.permits import Fields, Unavailable

TransportT = TypeVar("TransportT")


class AsyncLibraryHttp(Generic[TransportT]):
    """Sends requests by a library. `transport` replaces the library's own."""

    library: ModuleType

    def __init__(self, transport: TransportT | None = None) -> None:
        transport = transport or self.library.AsyncHTTPTransport()
        self._client = self.library.AsyncClient(transport=transport, trust_env=False)

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
        with _explained(self.library, timeout):
            async with self._client.stream(method, url, headers=headers, content=content, timeout=timeout) as response:
                yield AsyncReply(response.status_code, response.headers, response.aiter_raw())


@contextmanager
def _explained(library: ModuleType, timeout: float) -> Iterator[None]:
    try:
        yield
    except library.TimeoutException:
        raise Unavailable(f"it does not respond within {timeout:g} s") from None
    except (library.HTTPError, library.InvalidURL) as error:
        raise Unavailable(f"it cannot be reached: {str(error) or type(error).__name__}") from None
