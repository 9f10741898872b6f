"""`/v1/overrides`: what operators decide over the heads of robots.txt files."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from app.api.json_bodies import JsonRoute, RequestModel
from app.api.middleware.auth import admin
from app.api.params import instant_from, target_from
from app.api.problems import Problem, bad_value, documented
from app.api.serialize import instant
from app.api.services import ServicesDep
from app.overrides.redis_overrides import AUDIT_LIMIT, ChangedMeanwhile, Entry, ManyOverrides, Row
from app.overrides.replica import Overrides
from app.overrides.table import (
    AGENTS_LIMIT,
    END_OF_TIME,
    LONGEST_DELAY,
    REASON_LIMIT,
    BadOverride,
    Override,
    read_override,
    write_override,
)
from app.redis.guarded_client import StoreDown

PAGE = 100
"""Overrides, or changes, of the longest page."""

PAGE_BYTES = 1024 * 1024
"""Octets of the robots.txt texts on one page, after which it ends; it has one override at least."""

ActionName = Literal["allow", "deny", "robots", "delay"]

router = APIRouter(tags=["overrides"], route_class=JsonRoute)

Operator = Annotated[str, Depends(admin)]
Id = Annotated[str, Path(alias="id", max_length=64, description="Yours to choose: letters, digits, '.', '_' and '-'.")]


class OverrideIn(RequestModel):
    """What is to hold: `robots` goes with the action of that name, and so does `delay`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    scope: str = Field(description="An origin, https://www.example.com, or a host suffix, example.com.")
    action: ActionName
    reason: str = Field(description=f"For people, one line, at most {REASON_LIMIT} characters.")
    agents: list[str] = Field(
        [], max_length=AGENTS_LIMIT, fail_fast=True, description="Product tokens; none: all crawlers."
    )
    robots: str | None = Field(None, description="The text that is read in place of the origin's file.")
    delay: float | None = Field(
        None, description=f"Seconds between two documents at least; {LONGEST_DELAY:.0f} at most."
    )
    expires_at: str | None = Field(None, description="RFC 3339 instant from which on it does nothing.")
    shadow: bool = Field(False, description="Worked out and counted, without changing any answer.")


class OverrideRecordOut(BaseModel):
    """An override as it is kept. It is listed for a day after it has expired, and then removed."""

    id: str
    scope: str
    action: ActionName
    reason: str
    agents: list[str]
    robots: str | None
    delay: float | None
    expires_at: str | None
    shadow: bool
    expired: bool
    updated_at: str
    updated_by: str


class OverridesOut(BaseModel):
    """A page; `next` is the cursor of the one after it. `degraded`: the store is down, and these are the last known."""

    overrides: list[OverrideRecordOut]
    next: str | None
    degraded: bool


class ChangeOut(BaseModel):
    """One change: who made it (`expiry` for what was removed since it had expired), and what it was and is.

    The text of a robots.txt is left out: its SHA-256 and its octets stand for it.
    """

    at: str
    by: str
    id: str
    change: Literal["put", "delete"]
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class AuditOut(BaseModel):
    """Changes, newest first; `next` is the cursor of the older ones."""

    changes: list[ChangeOut]
    next: int | None


@router.get("/v1/overrides", responses={**documented(403, 422)})
async def overrides(
    services: ServicesDep,
    _operator: Operator,
    url: Annotated[
        str | None, Query(description="Only those whose scope this URL is in, the first to decide first.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=PAGE)] = PAGE,
    cursor: Annotated[str | None, Query(max_length=64, description="`next` of the page before.")] = None,
) -> OverridesOut:
    """All overrides by id, or those for one URL in the order in which they decide."""
    held, degraded = await _up_to_date(services.overrides)
    if url is not None:
        wanted = list(held.table.at(target_from(url).origin))
        start = next((at + 1 for at, one in enumerate(wanted) if one.id == cursor), 0)
    else:
        wanted = list(held.table.ordered)
        start = sum(1 for one in wanted if one.id <= cursor) if cursor is not None else 0
    page = _page(wanted[start:], limit)
    rest = len(wanted) > start + len(page)
    now = services.now().timestamp()
    records = [_record(held.rows[one.id], now) for one in page]
    return OverridesOut(overrides=records, next=page[-1].id if rest else None, degraded=degraded)


@router.get("/v1/overrides/audit", responses={**documented(403, 422, 503)})
async def audit(
    services: ServicesDep,
    _operator: Operator,
    limit: Annotated[int, Query(ge=1, le=PAGE)] = PAGE,
    cursor: Annotated[int, Query(ge=0, le=AUDIT_LIMIT, description="`next` of the page before.")] = 0,
) -> AuditOut:
    """Who changed what and when: the last thousand changes."""
    entries = await services.overrides.audit(cursor, limit)
    full = len(entries) == limit and cursor + limit < AUDIT_LIMIT
    return AuditOut(changes=list(map(_change, entries)), next=cursor + limit if full else None)


@router.get("/v1/overrides/{id}", responses={**documented(403, 404, 422)})
async def override(services: ServicesDep, _operator: Operator, id_: Id) -> OverrideRecordOut:
    """One override."""
    held, _ = await _up_to_date(services.overrides)
    row = held.rows.get(id_)
    if row is None:
        raise _none(id_)
    return _record(row, services.now().timestamp())


@router.put(
    "/v1/overrides/{id}",
    responses={
        201: {"model": OverrideRecordOut, "description": "It is a new one."},
        **documented(403, 409, 413, 422, 503),
    },
)
async def put_override(
    services: ServicesDep,
    response: Response,
    operator: Operator,
    id_: Id,
    body: OverrideIn,
) -> OverrideRecordOut:
    """Set the override of that id. It holds when this answers, and in other processes within three seconds."""
    now = services.now().timestamp()
    wanted = _read(id_, body)
    if wanted.expired(now):
        raise bad_value("expires_at", body.expires_at, f"{body.expires_at!r} has passed: it would do nothing")
    held = services.overrides
    try:
        new = await held.put(wanted, operator)
    except ManyOverrides as error:
        raise Problem(409, "too-many-overrides", str(error)) from None
    except ChangedMeanwhile as error:
        raise Problem(409, "edit-conflict", f"{error} Read it again.") from None
    response.status_code = 201 if new else 200
    row = held.rows.get(id_)
    if row is None or row.override != wanted:
        raise Problem(409, "edit-conflict", f"The override {id_!r} was set, and changed by somebody else at once.")
    return _record(row, now)


@router.delete("/v1/overrides/{id}", status_code=204, responses={**documented(403, 404, 409, 422, 503)})
async def delete_override(services: ServicesDep, operator: Operator, id_: Id) -> None:
    """Remove the override of that id."""
    try:
        found = await services.overrides.remove(id_, operator)
    except ChangedMeanwhile as error:
        raise Problem(409, "edit-conflict", f"{error} Read it again.") from None
    if not found:
        raise _none(id_)


async def _up_to_date(held: Overrides) -> tuple[Overrides, bool]:
    """The overrides as the store has them now, or, where it is down, as they are in force."""
    try:
        await held.sync()
    except StoreDown:
        return held, True
    return held, False


def _page(wanted: list[Override], limit: int) -> list[Override]:
    page: list[Override] = []
    room = PAGE_BYTES
    for one in wanted[:limit]:
        room -= one.size
        if page and room < 0:
            break
        page.append(one)
    return page


def _read(id_: str, body: OverrideIn) -> Override:
    expires_at = instant_from(body.expires_at, "expires_at")
    members = body.model_dump()
    try:
        return read_override(id_, {**members, "expires_at": expires_at.timestamp() if expires_at else None})
    except BadOverride as error:
        raise bad_value(error.field, error.value, str(error), "bad-override") from None


def _record(row: Row, now: float) -> OverrideRecordOut:
    members: dict[str, Any] = write_override(row.override)
    return OverrideRecordOut(
        **_readable(members),
        id=row.override.id,
        expired=row.override.expired(now),
        updated_at=instant(row.updated_at),
        updated_by=row.updated_by,
    )


def _change(entry: Entry) -> ChangeOut:
    return ChangeOut(
        at=instant(entry.at),
        by=entry.by,
        id=entry.id,
        change="put" if entry.after is not None else "delete",
        before=None if entry.before is None else _readable(dict(entry.before)),
        after=None if entry.after is None else _readable(dict(entry.after)),
    )


def _readable(members: dict[str, Any]) -> dict[str, Any]:
    """The members of an override, with its expiry as an instant of RFC 3339."""
    at = members.get("expires_at")
    return {**members, "expires_at": instant(at) if isinstance(at, int | float) and 0 <= at <= END_OF_TIME else None}


def _none(id_: str) -> Problem:
    return Problem(404, "not-found", f"There is no override {id_[:100]!r}.")
