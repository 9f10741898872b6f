"""The answer to many questions: a JSON object with one long array, sent in pieces while its items are encoded."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from app.api.answers.http_caching import NO_STORE
from app.api.long_work import while_connected
from app.api.services import services_of
from app.loop.work_turns import YieldBudget

ARRAY_PIECE = 256 * 1024
"""Bytes of items to send in one piece."""


async def array_response(
    request: Request, name: str, work: Callable[[YieldBudget], Awaitable[Iterable[bytes]]]
) -> Response:
    """The response `{"name": [items]}`. The `work` ends if the client leaves; it is given the budget of the request.

    The items are JSON, taken from the iterable while the response is sent. A short response has a Content-Length, a
    long one is sent in chunks, and no cache may store either. Raises Overloaded and ClientDisconnect.
    """

    async def working() -> tuple[Iterable[bytes], YieldBudget]:
        budget = await services_of(request).turns.first()
        return await work(budget), budget

    await request.body()
    items, budget = await while_connected(request.receive, working())
    headers = {"Cache-Control": NO_STORE}
    pieces = _pieces(name, items, budget)
    first = await anext(pieces)
    second = await anext(pieces, None)
    if second is None:
        return Response(first, headers=headers, media_type="application/json")

    async def all_pieces() -> AsyncIterator[bytes]:
        yield first
        yield second
        async for piece in pieces:
            yield piece

    return StreamingResponse(all_pieces(), headers=headers, media_type="application/json")


async def _pieces(name: str, items: Iterable[bytes], budget: YieldBudget) -> AsyncIterator[bytes]:
    begins = b'{"%s":[' % name.encode()
    parts: list[bytes] = []
    size = 0
    for item in items:
        if size > ARRAY_PIECE:
            yield begins + b",".join(parts)
            parts, size, begins = [], 0, b","
        parts.append(item)
        size += len(item)
        if budget.is_over():
            await budget.next()
    yield begins + b",".join(parts) + b"]}"
