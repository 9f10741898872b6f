"""What the platform asks: is the process alive, and can it answer."""

from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel

from app.cache.robots_cache import StoreDown
from app.cache.store import RedisStore

router = APIRouter(tags=["operations"])


class Health(BaseModel):
    status: Literal["ok"] = "ok"


class Readiness(BaseModel):
    """`store` is `degraded` while Redis cannot be used: answers then come from memory and from fetching."""

    status: Literal["ready"] = "ready"
    store: Literal["ok", "degraded"]


@router.get("/healthz")
async def healthz() -> Health:
    """The process runs."""
    return Health()


@router.get("/readyz")
async def readyz(request: Request) -> Readiness:
    """It can answer: also without its store, for as long as that lasts."""
    store: RedisStore = request.app.state.store
    try:
        await store.ping()
    except StoreDown:
        return Readiness(store="degraded")
    return Readiness(store="ok")
