"""Decisions about slow files are bounded, and yield to others."""

import asyncio

import pytest

from tests.api.service import running
from tests.origins import serve, text

pytestmark = pytest.mark.usefixtures("store_client")

QUESTIONS = 150
# Every rule must be followed up to its last segment, which the path lacks.
RULES = "\n".join(["User-agent: *", *(f"Disallow: /*{'*'.join('abcdefgh' * 12)}*{line}x" for line in range(1800))])
PATH = "abcdefgh" * 750


async def test_batch_answers_about_a_slow_file_are_in_order(store_url: str) -> None:
    other = text(200, "User-agent: *\nDisallow: /")
    async with serve(text(200, RULES)) as one, serve(other) as two, running(store_url) as service:
        items = [{"url": f"{origin.url}/{path}", "agent": "ExampleBot"} for path in "ab" for origin in (one, two)]
        for _ in range(2):
            response = await service.client.post("/v1/allowed", json={"items": items})
            answers = response.json()["answers"]
            assert [answer["url"] for answer in answers] == [item["url"] for item in items]
            assert [answer["allowed"] for answer in answers] == [True, False] * 2


async def test_batch_about_a_slow_file_yields_to_others(store_url: str) -> None:
    other = text(200, "User-agent: *\nDisallow: /")
    async with serve(text(200, RULES)) as one, serve(other) as two, running(store_url) as service:
        for origin in (one, two):
            await service.allowed(f"{origin.url}/")
        items = [{"url": f"{one.url}/{PATH}{number}?", "agent": "ExampleBot"} for number in range(QUESTIONS)]
        batch = asyncio.create_task(service.client.post("/v1/allowed", json={"items": items}))
        for _ in range(3):
            assert (await service.allowed(f"{two.url}/x"))["allowed"] is False
        assert not batch.done()
        assert [answer["allowed"] for answer in (await batch).json()["answers"]] == [True] * QUESTIONS
