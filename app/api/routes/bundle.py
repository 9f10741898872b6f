"""`POST /v1/bundle`: the files of many origins, for jobs that decide with robots-core and without this service."""

from base64 import b64encode
from functools import partial

from fastapi import Body, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from app.api.answers.schema import VERSION_TEXT
from app.api.caller import caller_of
from app.api.json_bodies import RequestModel, read_item
from app.api.parameters import file_origin_from, query_of
from app.api.problems import Problem, documented
from app.api.routes.batch import FailedOut
from app.api.routing import DirectRoute, api_router, documented_as
from app.api.services import services_of
from app.api.stream import LINES, AnswerLines, JsonLines, has_lines
from app.decisions.answer_all import OriginTasks
from app.decisions.bundle_rows import ROW_WAIT, BundleRow, BundleRows, RowQuestion
from app.decisions.question import MAX_AGE_TEXT, InstantText, MaxAge, UrlText, Wait, past_from
from robots_core.outcomes import outcome_of
from robots_core.robots.access import Successful
from robots_core.times import instant

router = api_router("files", DirectRoute)

BUNDLE_PATH = "/v1/bundle"

BUNDLE_WINDOW = 64
"""Lines that are read ahead of the rows the client has read: a row may have a whole file, 700 KB in base64."""


class RowIn(RequestModel):
    """Which origin's file is wanted, and as of when."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)

    url: UrlText = Field(description="Any URL of the origin, absolute, http or https, at most 16 KiB.")
    profile: str | None = Field(None, description="A fetch profile of AGENTS_FILE; by default the default one.")
    as_of: InstantText | None = Field(
        None, description="RFC 3339 instant in the past: the version stored then; never fetch."
    )
    fetch: bool = Field(False, description="Fetch the file if it is missing or due.")
    max_age: MaxAge | None = Field(None, description=f"With fetch: {MAX_AGE_TEXT}")
    wait: Wait = Field(ROW_WAIT, description="With fetch: seconds that the row may wait for it.")


class BundleRowOut(BaseModel):
    """A row of a bundle: the file of an origin, or the outcome of its fetch."""

    origin: str
    profile: str | None
    valid_from: str = Field(description="When this content was found first.")
    valid_until: str = Field(
        description="When it is due to be fetched again; with as_of, the last instant at which it is known to have "
        "been in use."
    )
    outcome: str = Field(
        description="The status, or why there was no response to read, as robots_core.outcome reads it."
    )
    version: str | None = Field(description=VERSION_TEXT)
    truncated: bool = Field(description="Whether the file had more bytes than are read.")
    body: str | None = Field(description="The file in base64; null if the fetch brought none.")


@router.post(
    BUNDLE_PATH,
    response_model=BundleRowOut | FailedOut,
    response_class=JsonLines,
    responses={**documented(413, 415, 422)},
    dependencies=[documented_as(RowIn, Body(media_type=LINES))],
)
async def bundle(request: Request) -> Response:
    """Send a row for each line of the request, in order: the robots.txt of an origin, now or `as_of`.

    Lines are JSON, in any number. A bad one fails alone, with a problem in its place, and so does an origin of which
    nothing is known. Each row is sent as soon as it and those before it are ready, so read rows while you send lines.
    """
    query_of(request, ())
    if not has_lines(request.scope):
        detail = f"The request body is not sent as lines of JSON. Send it with 'Content-Type: {LINES}'."
        raise Problem("unsupported-media-type", detail, {"Accept": LINES})
    services = services_of(request)
    budget = await services.turns.first()
    rows = BundleRows(services.decider.files)
    answering = partial(OriginTasks[RowQuestion, BundleRow], rows.now, rows.past, budget=budget)
    return AnswerLines(answering, partial(_question, request), _encode, budget, BUNDLE_WINDOW)


def _question(request: Request, item: object) -> RowQuestion:
    """The question of a line. Raises Problem and BadQuestion."""
    services, row = services_of(request), read_item(RowIn, item)
    origin = file_origin_from(row.url, row.profile, services.agents())
    as_of = None if row.as_of is None else past_from(row.as_of, services.now())
    return RowQuestion(origin, as_of, row.fetch, row.max_age, row.wait, caller_of(request.scope).id)


def _encode(row: BundleRow) -> bytes:
    access = row.access
    file = access if isinstance(access, Successful) else None
    out = BundleRowOut(
        origin=row.origin.with_profile(None).key,
        profile=row.origin.profile,
        valid_from=instant(row.valid_from),
        valid_until=instant(row.valid_until),
        outcome=outcome_of(access),
        version=row.version,
        truncated=file is not None and file.truncated,
        body=None if file is None else b64encode(file.body).decode("ascii"),
    )
    return out.model_dump_json().encode()
