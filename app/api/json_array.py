"""A JSON object with one array that may be long, sent piece by piece as its items are rendered."""

from collections.abc import AsyncIterator, Iterable

from starlette.responses import Response, StreamingResponse

from app.yield_budget import YieldBudget

PIECE = 256 * 1024
"""Characters of items that are put together before they are sent."""


async def array_response(name: str, items: Iterable[str]) -> Response:
    """The response `{"name": [items]}`; each item is JSON, asked for when its turn has come.

    What is short is sent with its length, and what is long without one.
    """
    pieces = _pieces(name, items)
    first = await anext(pieces)
    second = await anext(pieces, None)
    if second is None:
        return Response(first, media_type="application/json")

    async def all_pieces() -> AsyncIterator[bytes]:
        yield first
        yield second
        async for piece in pieces:
            yield piece

    return StreamingResponse(all_pieces(), media_type="application/json")


async def _pieces(name: str, items: Iterable[str]) -> AsyncIterator[bytes]:
    begins = f'{{"{name}":['
    parts: list[str] = []
    size = 0
    stretch = YieldBudget()
    for text in items:
        if size > PIECE:
            yield (begins + ",".join(parts)).encode()
            parts, size, begins = [], 0, ","
        parts.append(text)
        size += len(text)
        if stretch.is_over():
            await stretch.next()
    yield (begins + ",".join(parts) + "]}").encode()
