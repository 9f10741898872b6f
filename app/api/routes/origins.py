"""`GET /v1/origins`: the origins that operators may want to look at."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import Depends, Query, Request
from pydantic import BaseModel, Field

from app.api.answers.schema import EdgeOut
from app.api.answers.serialize import edge_out, facts_of
from app.api.middleware.auth import admin
from app.api.problems import documented
from app.api.routing import api_router
from app.api.services import Services, services_of
from app.cache.freshness import Recheck, Snapshot, freshness
from app.cache.origin_lists import LISTED, Order
from robots_core.origin import Origin
from robots_core.robots.access import Successful
from robots_core.times import instant

router = api_router("operations")

READ_AT_ONCE = 16
"""Snapshots read from the store at once: half of the calls that a process may have in flight."""


class OriginOut(BaseModel):
    """An origin and its last fetch; members are null if it was never fetched, or purged.

    `outcome`, `cause`, `detail` and `status` are those of the last fetch, also while a stale copy answers.
    """

    origin: str
    pool: str = Field(description="What shares the pace of its permits: a host, a domain, an origin, or a named pool.")
    profile: str | None = Field(None, description="The fetch profile that its file is fetched with; null: the default.")
    outcome: str | None = Field(None, description="successful, unavailable, unreachable, challenge or blocked_address")
    cause: str | None = None
    detail: str | None = Field(None, description="What exactly failed, if it is known, in words for people.")
    status: int | None = None
    checked_at: str | None = Field(None, description="When the origin was last asked for its file.")
    recheck_at: str | None = Field(None, description="When it is next asked, provided that a question needs it.")
    failing_since: str | None = None
    attempts: int | None = Field(None, description="Failed fetches since then.")
    fetched_at: str | None = Field(None, description="When the cached copy was fetched; null without one.")
    stale: bool = False
    fetch_seconds: float | None = Field(None, description="How long the last fetch took; with order=slow.")
    backoff_until: str | None = Field(None, description="With order=backoff.")
    asked: int | None = Field(None, description="Decisions given in this hour and the one before; with order=asked.")

    edge: dict[str, EdgeOut] | None = Field(
        None, description="The refusals that callers reported, by agent in lower case; with order=refused."
    )


class OriginsOut(BaseModel):
    """The first origins of a list; `order` says what it is ordered by."""

    order: Order
    origins: list[OriginOut]


@router.get("/v1/origins", dependencies=[Depends(admin)], responses={**documented(403, 422, 503)})
async def origins(
    request: Request,
    order: Annotated[
        Order,
        Query(
            description="failing: the latest failure first; slow: fetches of a second or longer; stale: answered "
            "from a stale copy, the oldest first; backoff: the longest backoff first; asked: most decisions first; "
            "refused: pages that callers reported as refused or priced, the latest report first."
        ),
    ] = Order.FAILING,
    outcome: Annotated[
        Literal["successful", "unavailable", "unreachable", "challenge", "blocked_address"] | None,
        Query(description="List only origins whose last fetch had this outcome."),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=LISTED)] = 100,
) -> OriginsOut:
    """List the origins of the fleet that fail, are slow, stale or in backoff, are asked about most, or refuse pages.

    For operators. A list holds 1,000 origins, is up to 10 s old, and is approximate. 503 means that the store is
    unavailable.
    """
    services = services_of(request)
    now = services.now().timestamp()
    if order is Order.REFUSED:
        listed: Sequence[tuple[Origin, float]] = [(origin, 0.0) for origin in services.edge.latest()[:LISTED]]
    else:
        listed = await services.origin_lists.read(order)
    found: list[OriginOut] = []
    for start in range(0, len(listed), READ_AT_ONCE):
        some = listed[start : start + READ_AT_ONCE]
        snapshots = await asyncio.gather(*(services.snapshot_of(origin) for origin, _ in some))
        rows = (_row(services, order, *it, snapshot, now) for it, snapshot in zip(some, snapshots, strict=True))
        found += [row for row in rows if row is not None and outcome in (None, row.outcome)]
        if len(found) >= limit:
            break
    return OriginsOut(order=order, origins=found[:limit])


def _row(
    services: Services, order: Order, origin: Origin, score: float, snapshot: Snapshot | None, now: float
) -> OriginOut | None:
    """The origin, or None if its snapshot, which is newer than the list, no longer belongs there."""
    row = OriginOut(origin=origin.with_profile(None).key, profile=origin.profile, pool=services.pool_of(origin))
    if snapshot is not None:
        _describe(row, origin, snapshot, now)
    match order:
        case Order.FAILING:
            return row if row.attempts or row.outcome == "blocked_address" else None
        case Order.STALE:
            return row if row.fetched_at is not None else None
        case Order.SLOW:
            row.fetch_seconds = round(score, 3)
        case Order.BACKOFF:
            if score <= now:
                return None
            row.backoff_until = instant(score)
        case Order.ASKED:
            row.asked = int(score)
        case Order.REFUSED:
            row.edge = {agent: edge_out(fact) for agent, fact in services.edge.agents(origin).items()}
    return row


def _describe(row: OriginOut, origin: Origin, snapshot: Snapshot, now: float) -> None:
    """Add what is known of the last fetch, and of the copy that stands in if it failed."""
    failing = snapshot.failing
    row.outcome, row.status, row.cause = facts_of(snapshot.access if failing is None else failing.failure)
    row.detail = None if failing is None else failing.failure.detail
    # All recheck models retry an origin with a stale copy by the same rule, so any of them will do.
    fresh = freshness(snapshot, Recheck(), origin.key, now)
    row.checked_at, row.recheck_at, row.stale = instant(snapshot.checked_at), instant(fresh.recheck_at), fresh.stale
    if failing is not None:
        row.failing_since, row.attempts = instant(failing.since), failing.attempts
        if isinstance(snapshot.access, Successful):
            row.fetched_at = instant(snapshot.fetched_at)
