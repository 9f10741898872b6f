"""`/v1/overrides`: operators set, list and remove overrides, and read the audit."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import Depends, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from app.api.json_bodies import JsonInteger, RequestModel
from app.api.middleware.auth import admin
from app.api.problems import Problem, bad_value, documented
from app.api.routing import api_router
from app.api.services import services_of
from app.decisions.question import AgentText, InstantText, UrlText, instant_from, target_from
from app.overrides.override_json import (
    AGENTS_LIMIT,
    LONGEST_DELAY,
    REASON_LIMIT,
    BadOverride,
    read_override,
    write_override,
)
from app.overrides.redis_overrides import AUDIT_LIMIT, AuditEntry
from app.overrides.replica import Overrides
from app.overrides.table import ActionName, Override, OverrideSource
from app.store.guarded_client import StoreDown
from robots_core.dates import END_OF_TIME
from robots_core.times import instant

PAGE_SIZE = 100
"""Overrides or changes on one page, at most."""

PAGE_BYTES = 1024 * 1024
"""Bytes of robots.txt texts after which a page ends; it has at least one override."""

router = api_router("overrides")

Operator = Annotated[str, Depends(admin)]
Id = Annotated[str, Path(alias="id", max_length=64, description="You choose it: letters, digits, '.', '_' and '-'.")]


class OverrideText(BaseModel):
    """The members of an override that an operator writes."""

    scope: str = Field(description="An origin, https://www.example.com, or a host suffix, example.com.")
    action: ActionName
    reason: str = Field(description=f"For people, one line, at most {REASON_LIMIT} characters.")
    agents: list[AgentText] = Field(
        [], max_length=AGENTS_LIMIT, fail_fast=True, description="Product tokens; empty for all crawlers."
    )
    robots: str | None = Field(None, description="The robots.txt that replaces the origin's file.")
    delay: float | None = Field(None, description=f"Least seconds between two documents, up to {LONGEST_DELAY:.0f}.")
    budget: Annotated[int | None, JsonInteger] = Field(
        None, description="The most documents that each crawler may have of a pool in a day of UTC, by its permits."
    )
    expires_at: InstantText | None = Field(None, description="RFC 3339 instant at which it stops to apply.")
    shadow: bool = Field(False, description="Count what it would change, but change no answer; not with budget.")


class OverrideIn(OverrideText, RequestModel):
    """An override to set. The actions `robots`, `delay` and `budget` need the member of the same name.

    A record that GET gives may be sent as it is, in the service that gave it or in another one.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    id: str | None = Field(None, description="The id in the path, or left out.")
    expired: bool | None = Field(None, description="Ignored: `expires_at` decides.")
    updated_at: InstantText | None = Field(None, description="Ignored: the time of this request counts.")
    updated_by: str | None = Field(None, description="Ignored: the sender of this request counts.")
    source: OverrideSource | None = Field(None, description="Ignored: this request sets it in the store.")


class _Named(BaseModel):
    id: str


class OverrideRecordOut(OverrideText, _Named):  # JSON has the members of the last base first
    """An override. A stored one that has expired is listed for a day, then removed."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    expired: bool
    updated_at: str | None = Field(description="When it was last set; null for one of OVERRIDES_FILE.")
    updated_by: str | None = Field(description="Who set it; null for one of OVERRIDES_FILE.")
    source: OverrideSource = Field(description="Where it comes from: a PUT, or OVERRIDES_FILE.")


class OverridesOut(BaseModel):
    """A page; `next` is the cursor of the next one. `degraded`: the store is down, and these were read before."""

    overrides: list[OverrideRecordOut]
    next: str | None
    degraded: bool


class ChangeOut(BaseModel):
    """One change: who made it (`expiry` if the override had expired), and the override before and after it.

    The SHA-256 and the size of a robots.txt stand for its text.
    """

    at: str
    by: str
    id: str
    change: Literal["put", "delete"]
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class AuditOut(BaseModel):
    """Changes, newest first; `next` is the cursor of older ones."""

    changes: list[ChangeOut]
    next: int | None


@router.get("/v1/overrides", responses={**documented(403, 422)})
async def overrides(
    request: Request,
    _operator: Operator,
    url: Annotated[
        UrlText | None,
        Query(description="List only overrides whose scope has this URL, in the order in which they decide."),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=PAGE_SIZE)] = PAGE_SIZE,
    cursor: Annotated[str | None, Query(max_length=64, description="`next` of the page before.")] = None,
) -> OverridesOut:
    """List all overrides by id, or those for one URL in the order in which they decide."""
    services = services_of(request)
    replica = services.overrides
    degraded = not await _synced(replica)
    if url is not None:
        wanted = list(replica.table.at(target_from(url).origin))
        start = next((at + 1 for at, one in enumerate(wanted) if one.id == cursor), 0)
    else:
        wanted = list(replica.table.ordered)
        start = sum(1 for one in wanted if one.id <= cursor) if cursor is not None else 0
    page = _page(wanted[start:], limit)
    rest = len(wanted) > start + len(page)
    now = services.now().timestamp()
    records = [_record(one, replica, now) for one in page]
    return OverridesOut(overrides=records, next=page[-1].id if rest else None, degraded=degraded)


@router.get("/v1/overrides/audit", responses={**documented(403, 422, 503)})
async def audit(
    request: Request,
    _operator: Operator,
    limit: Annotated[int, Query(ge=1, le=PAGE_SIZE)] = PAGE_SIZE,
    cursor: Annotated[int, Query(ge=0, le=AUDIT_LIMIT, description="`next` of the page before.")] = 0,
) -> AuditOut:
    """List the last thousand changes: who changed what, and when."""
    services = services_of(request)
    entries = await services.overrides.audit(cursor, limit)
    full = len(entries) == limit and cursor + limit < AUDIT_LIMIT
    return AuditOut(changes=list(map(_change, entries)), next=cursor + limit if full else None)


@router.get("/v1/overrides/{id}", responses={**documented(403, 404, 422)})
async def override(request: Request, _operator: Operator, id_: Id) -> OverrideRecordOut:
    """Get one override."""
    services = services_of(request)
    replica = services.overrides
    await _synced(replica)
    found = replica.table.by_id.get(id_)
    if found is None:
        raise _not_found(id_)
    return _record(found, replica, services.now().timestamp())


@router.put(
    "/v1/overrides/{id}",
    responses={
        201: {"model": OverrideRecordOut, "description": "The override is new."},
        **documented(403, 409, 413, 422, 503),
    },
)
async def put_override(
    request: Request,
    response: Response,
    operator: Operator,
    id_: Id,
    body: OverrideIn,
) -> OverrideRecordOut:
    """Set an override. It applies when this answers, and in other processes within three seconds."""
    services = services_of(request)
    now = services.now().timestamp()
    wanted = _override_from(id_, body)
    if wanted.expired(now):
        raise bad_value("expires_at", body.expires_at, f"{body.expires_at!r} is in the past; choose a later instant.")
    replica = services.overrides
    response.status_code = 201 if await replica.put(wanted, operator) else 200
    found = replica.table.by_id.get(id_)
    if found != wanted:
        raise Problem("edit-conflict", f"The override {id_!r} was set, then changed by another request.")
    return _record(found, replica, now)


@router.delete("/v1/overrides/{id}", status_code=204, responses={**documented(403, 404, 409, 422, 503)})
async def delete_override(request: Request, operator: Operator, id_: Id) -> None:
    """Remove an override."""
    if not await services_of(request).overrides.remove(id_, operator):
        raise _not_found(id_)


async def _synced(replica: Overrides) -> bool:
    """Read the overrides from the store. False if it is down: those in force were read before."""
    try:
        await replica.sync()
    except StoreDown:
        return False
    return True


def _page(wanted: list[Override], limit: int) -> list[Override]:
    page: list[Override] = []
    room = PAGE_BYTES
    for one in wanted[:limit]:
        room -= one.size
        if page and room < 0:
            break
        page.append(one)
    return page


def _override_from(id_: str, body: OverrideIn) -> Override:
    if body.id not in (None, id_):
        detail = f"id is {body.id!r}, and the path has {id_!r}: leave it out, or send the same."
        raise bad_value("id", body.id, detail, "bad-override")
    expires_at = instant_from(body.expires_at, "expires_at")
    members = body.model_dump()
    try:
        return read_override(id_, {**members, "expires_at": expires_at.timestamp() if expires_at else None})
    except BadOverride as error:
        raise bad_value(error.field, error.value, str(error), "bad-override") from None


def _record(override: Override, replica: Overrides, now: float) -> OverrideRecordOut:
    row = replica.rows.get(override.id) if override.source == "api" else None
    return OverrideRecordOut(
        **_readable(write_override(override)),
        id=override.id,
        expired=override.expired(now),
        updated_at=None if row is None else instant(row.updated_at),
        updated_by=None if row is None else row.updated_by,
        source=override.source,
    )


def _change(entry: AuditEntry) -> ChangeOut:
    return ChangeOut(
        at=instant(entry.at),
        by=entry.by,
        id=entry.id,
        change="put" if entry.after is not None else "delete",
        before=entry.before and _readable(entry.before),
        after=entry.after and _readable(entry.after),
    )


def _readable(members: Mapping[str, Any]) -> dict[str, Any]:
    """The members of an override, with its expiry as an instant of RFC 3339."""
    at = members.get("expires_at")
    return {**members, "expires_at": instant(at) if isinstance(at, int | float) and 0 <= at <= END_OF_TIME else None}


def _not_found(id_: str) -> Problem:
    return Problem("not-found", f"No override has the id {id_[:100]!r}.")
