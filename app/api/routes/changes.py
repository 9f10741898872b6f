"""`GET /v1/changes`: the changes of robots.txt files that the fleet has found, as a feed that can be resumed."""

from typing import Annotated

from fastapi import Query, Request, Response
from pydantic import Field

from app.api.caller import caller_of
from app.api.long_work import while_connected
from app.api.problems import Problem, bad_value, documented
from app.api.routing import api_router
from app.api.services import services_of
from app.api.stream import LINES, JsonLines
from app.history.change import Change
from app.history.redis_changes import OLDEST, ChangeId, ChangesMissed, Position, Since, read_id
from robots_core.dates import END_OF_TIME
from robots_core.times import instant, read_instant

CHANGES_LIMIT, LONGEST_POLL = 1000, 60.0
"""Changes of one answer, and the seconds that a request may wait for the first one, at most."""

router = api_router("files")


class FileChangeOut(Change):
    """A line of the feed of changes."""

    id: str = Field(description="Grows from change to change.")
    at: str = Field(description="When the change was found.")


@router.get(
    "/v1/changes",
    response_model=FileChangeOut,
    response_class=JsonLines,
    responses={**documented(410, 422, 503)},
)
async def changes(
    request: Request,
    after: Annotated[
        str, Query(description="The id of the last change that you have processed, or an instant; 0: the oldest.")
    ] = "0",
    limit: Annotated[int, Query(ge=1, le=CHANGES_LIMIT)] = 100,
    wait: Annotated[float, Query(ge=0, le=LONGEST_POLL, description="Seconds to wait if there is no change yet.")] = 0,
) -> Response:
    """List the changes of robots.txt files that any process of the fleet has found, the oldest first, as JSON lines.

    Store the id of the last change with your own work, and continue after it: you then see each change once. The feed
    keeps the latest changes only. If it may lack some after `after`, the answer is 410: look at the origins that matter
    again, and use `after=0`. 503 means that the store is unavailable, or that too many requests wait. An answer without
    changes may come before `wait` is over, when the process that waits is stopped: ask again.
    """
    reading = services_of(request).change_polls.read(caller_of(request.scope), _position_from(after), limit, wait)
    try:
        found = await while_connected(request.receive, reading)
    except ChangesMissed as error:
        raise _missed(after, error.oldest) from None
    lines = [
        FileChangeOut(id=str(id_), at=_found_at(id_), **dict(change)).model_dump_json() + "\n" for id_, change in found
    ]
    return Response("".join(lines), media_type=LINES)


def _found_at(id_: ChangeId) -> str:
    """The instant at which the change was added, at most END_OF_TIME: another program may have chosen any id."""
    return instant(min(id_.milliseconds // 1000, END_OF_TIME))


def _missed(after: str, oldest: ChangeId | None) -> Problem:
    has = "it has no changes now" if oldest is None else f"its oldest change is {oldest}"
    detail = (
        f"The feed may lack changes after {after[:100]}: they were removed, or the store was emptied or restored; "
        f"{has}. Look at the origins that matter again, and continue with after=0."
    )
    return Problem("changes-removed", detail, parameter="after", value=after)


def _position_from(text: str) -> Position:
    id_ = read_id(text)
    if id_ is not None:
        return id_ if id_ > ChangeId(0) else OLDEST
    at = read_instant(text)
    if at is None:
        detail = f"{text[:100]!r} is neither the id of a change, such as 1790000000000-0, nor an RFC 3339 instant."
        raise bad_value("after", text, detail)
    return Since(int(at.timestamp() * 1000))
