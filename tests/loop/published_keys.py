"""The check of key directories goes on after one of which the fetch fails as no task expects."""

from typing import Any

from app.identity import publication
from app.identity.publication import PublishedKeys
from robots_core.origin import Target
from robots_core.robots.access import Fetched, Unavailable
from tests.faults.until import until_so


async def published_keys(poison: type[Exception], stage: Any) -> None:
    asked: list[str] = []

    async def get(target: Target) -> Fetched:
        asked.append(target.origin.host)
        if asked == ["bad.example"]:
            raise poison
        return Fetched(Unavailable(404))

    stage.patch.setattr(publication, "CHECK_INTERVAL", 0.0)
    published = PublishedKeys(lambda: {"bad.example": ["a-key"], "good.example": ["a-key"]}, get)
    async with published.checking():
        await until_so(lambda: published.missing == 2)
    assert asked[:4] == ["bad.example", "good.example"] * 2
    assert ["bad.example" in message for _, message in stage.failures] == [True]
