"""`/healthz`, `/readyz` and `/metrics`, for the platform that the service runs on."""

from contextlib import suppress
from datetime import timedelta
from typing import Literal

from fastapi import Request, Response
from pydantic import BaseModel, Field

from app.api.problems import Problem, documented
from app.api.routing import api_router
from app.api.services import services_of
from app.observability.metrics import CONTENT_TYPE
from app.store.guarded_client import StoreDown
from robots_core.times import rfc3339

router = api_router("operations")


class HealthOut(BaseModel):
    """The answer of a live process."""

    status: Literal["ok"] = "ok"


class ReadinessOut(BaseModel):
    """`store` is `degraded` while it is unavailable: answers then come from memory and from fetches."""

    status: Literal["ready"] = "ready"
    store: Literal["ok", "degraded"] = "ok"
    detail: str | None = Field(None, description="What is wrong; omitted if nothing is.")
    since: str | None = Field(None, description="RFC 3339 instant since when; omitted if nothing is wrong.")
    fetches: Literal["failing"] | None = Field(
        None,
        description="Every fetch of this process fails while others reach the same origins: check its egress (DNS, "
        "network policy, proxy). Omitted otherwise.",
    )
    eviction: str | None = Field(
        None,
        description="The store's `maxmemory-policy`, if it may evict what must not be lost: `allkeys-*` overrides, "
        "`volatile-ttl` and `volatile-random` pacing. Omitted otherwise.",
    )
    overrides: Literal["unknown", "lost"] | None = Field(
        None,
        description="`unknown`: they have not been read from the store yet. `lost`: the store has none, but "
        "once had some that this process never read. None applies: set them again, or restore the store. Omitted "
        "otherwise.",
    )


@router.get("/healthz")
async def healthz() -> HealthOut:
    """Answer if the process is alive."""
    return HealthOut()


@router.get("/readyz", response_model_exclude_none=True, responses={**documented(503)})
async def readyz(request: Request) -> ReadinessOut:
    """Answer 200 if the process can decide, also without its store; 503 while it stops.

    With REQUIRE_STORE_AT_START, it starts until it has read the overrides from the store.
    """
    services = services_of(request)
    store, overrides = services.store, services.overrides
    if services.stopping.is_set():
        raise Problem("not-ready", "The service is stopping.", retry_after=1)
    with suppress(StoreDown):
        await store.ping()
    trouble = store.trouble
    if services.store_required and not overrides.loaded:
        why = "" if trouble is None else f": {trouble.what}"
        detail = f"The overrides have not been read from the store since the start (REQUIRE_STORE_AT_START){why}."
        raise Problem("not-ready", detail, retry_after=1)
    unknown: Literal["unknown", "lost"] | None = "lost" if overrides.lost else None if overrides.loaded else "unknown"
    fetches: Literal["failing"] | None = "failing" if services.fetch_health.failing else None
    answer = ReadinessOut(fetches=fetches, eviction=services.eviction.risk, overrides=unknown)
    if trouble is not None:
        answer.store = "degraded"
        answer.detail = f"{trouble.what}; answers come from memory and from fetches."
        answer.since = rfc3339(services.now() - timedelta(seconds=trouble.seconds))
    return answer


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request) -> Response:
    """Answer the metrics in Prometheus's text format, summed over all workers."""
    services = services_of(request)
    return Response(services.metrics.text(), media_type=CONTENT_TYPE)
