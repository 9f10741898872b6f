"""`GET /v1/changes`: the changes of robots.txt files that the fleet has found, as a feed that can be resumed."""

import asyncio
import time
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.api.disconnect import while_connected
from app.api.instants import instant
from app.api.params import read_instant
from app.api.problems import Problem, bad_value, documented
from app.api.schemas.history import FileChangeOut
from app.api.services import ServicesDep
from app.api.stream import LINES
from app.history.redis_changes import ChangeId, Page, RedisChanges, read_id

LIMIT, LONGEST_WAIT = 1000, 60.0
"""Changes of one answer, and the seconds that a request may wait for the first one, at most."""

PAUSE = 1.0
"""Seconds between two looks into the store while a request waits."""

router = APIRouter(tags=["files"])


@router.get(
    "/v1/changes",
    response_class=Response,
    responses={
        200: {"content": {LINES: {"schema": {"$ref": "#/components/schemas/FileChangeOut"}}}},
        **documented(410, 422, 503),
    },
)
async def changes(
    request: Request,
    services: ServicesDep,
    after: Annotated[
        str, Query(description="The id of the last change that you have processed, or an instant; 0: the oldest.")
    ] = "0",
    limit: Annotated[int, Query(ge=1, le=LIMIT)] = 100,
    wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT, description="Seconds to wait if there is no change yet.")] = 0,
) -> Response:
    """List the changes of robots.txt files that any process of the fleet has found, the oldest first, as JSON lines.

    Store the id of the last change with your own work, and continue after it: you then see each change once. The feed
    keeps the latest changes only. If some after `after` were removed, the answer is 410; use `after=0`, and
    `GET /v1/robots/diff` for origins that matter. 503 means that the store is unavailable.
    """
    feed, start = services.changes, _id_from(after)
    page = await while_connected(request.receive, _wait_for(feed, start, limit, wait))
    if page.missed is not None:
        detail = f"Changes after {after[:100]} were removed; the oldest is {page.missed}. Continue with after=0."
        raise Problem(410, "changes-removed", detail, parameter="after", value=after)
    lines = [
        FileChangeOut(id=str(id_), at=instant(id_.milliseconds / 1000), **dict(change)).model_dump_json() + "\n"
        for id_, change in page.changes
    ]
    return Response("".join(lines), media_type=LINES)


async def _wait_for(feed: RedisChanges, after: ChangeId, limit: int, wait: float) -> Page:
    """The first page with a change, or the one after `wait` seconds."""
    deadline = time.monotonic() + wait
    while True:
        page = await feed.read(after, limit)
        left = deadline - time.monotonic()
        if page.changes or page.missed or left <= 0:
            return page
        after = page.last  # behind entries that could not be read
        await asyncio.sleep(min(PAUSE, left))


def _id_from(text: str) -> ChangeId:
    id_ = read_id(text)
    if id_ is not None:
        return id_
    at = read_instant(text)
    if at is None:
        detail = f"{text[:100]!r} is neither the id of a change, such as 1790000000000-0, nor an RFC 3339 instant."
        raise bad_value("after", text, detail)
    return ChangeId(int(at.timestamp() * 1000))
