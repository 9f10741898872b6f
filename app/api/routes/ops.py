"""What the platform asks: is the process alive, can it answer, and what does it count."""

from contextlib import suppress
from datetime import timedelta
from typing import Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from app.api.problems import Problem, documented
from app.api.serialize import rfc3339
from app.api.services import Phase, ServicesDep
from app.observability.metrics import CONTENT_TYPE
from app.redis.guarded_client import StoreDown

router = APIRouter(tags=["operations"])


class HealthOut(BaseModel):
    status: Literal["ok"] = "ok"


class ReadinessOut(BaseModel):
    """`store` is `degraded` while Redis cannot be used: answers then come from memory and from fetching."""

    status: Literal["ready"] = "ready"
    store: Literal["ok", "degraded"] = "ok"
    detail: str | None = Field(None, description="What is wrong; left out while nothing is.")
    since: str | None = Field(None, description="RFC 3339 instant since when; left out while nothing is wrong.")
    fetches: Literal["failing"] | None = Field(
        None,
        description="Where every fetch of this process fails, while others reach the same origins: look at its way out "
        "(DNS, egress rules, proxy). Left out otherwise.",
    )
    eviction: str | None = Field(
        None,
        description="The store's `maxmemory-policy`, where it may evict what must not be lost: `allkeys-*` overrides, "
        "`volatile-ttl` and `volatile-random` pacing. Left out otherwise.",
    )
    overrides: Literal["unknown", "lost"] | None = Field(
        None,
        description="`unknown`: the store has not told them since the start. `lost`: it has none, and once had some "
        "that this process never knew. None is in force then: set them again, or restore the store. Else left out.",
    )


@router.get("/healthz")
async def healthz() -> HealthOut:
    """The process runs."""
    return HealthOut()


@router.get("/readyz", response_model_exclude_none=True, responses={**documented(503)})
async def readyz(services: ServicesDep) -> ReadinessOut:
    """It can answer: also without its store, for as long as that lasts; not while it starts or stops."""
    phase, store, overrides = services.lifecycle.phase, services.store, services.overrides
    if phase is not Phase.RUNNING:
        raise Problem(503, "not-ready", f"The service is {phase}.", {"Retry-After": "1"})
    with suppress(StoreDown):
        await store.ping()
    trouble = store.trouble
    unknown: Literal["unknown", "lost"] | None = "lost" if overrides.lost else None if overrides.known else "unknown"
    fetches: Literal["failing"] | None = "failing" if services.fetch_health.failing else None
    if trouble is None:
        return ReadinessOut(fetches=fetches, eviction=services.eviction.risk, overrides=unknown)
    return ReadinessOut(
        store="degraded",
        detail=f"{trouble.what}; answers come from memory and from fetching.",
        since=rfc3339(services.now() - timedelta(seconds=trouble.seconds)),
        fetches=fetches,
        eviction=services.eviction.risk,
        overrides=unknown,
    )


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(services: ServicesDep) -> Response:
    """What it counts, in Prometheus's text format; with several workers, the sum of all."""
    return Response(services.metrics.text(), media_type=CONTENT_TYPE)
