"""The garbage collector walks everything in quiet moments only, and nothing twice."""

import gc
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from app.garbage import collected_when_quiet
from tests.faults.until import until_so


@pytest.fixture
def collections() -> Iterator[list[int]]:
    """The generations that were collected since the test began."""
    seen: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "stop":
            seen.append(info["generation"])

    gc.callbacks.append(note)
    yield seen
    gc.callbacks.remove(note)


async def looks(number: int, worked: Callable[[], float], **settings: float) -> list[int]:
    """The full collections, by number, within so many looks of a block that has begun."""
    seen: list[int] = []
    looked = 0

    def look() -> float:
        nonlocal looked
        looked += 1
        return worked()

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "stop" and info["generation"] == 2:
            seen.append(looked)

    async with collected_when_quiet(look=0.0, worked=look, **settings):
        gc.callbacks.append(note)
        await until_so(lambda: looked >= number)
        gc.callbacks.remove(note)
    return seen


async def test_what_is_there_at_the_start_is_walked_no_more(collections: list[int]) -> None:
    before = gc.get_threshold()
    async with collected_when_quiet():
        assert collections.count(2) == 1
        assert gc.get_freeze_count() > 1000
        held = [[number] for number in range(200_000)]
        assert gc.get_threshold()[:2] == before[:2]
        assert collections.count(2) == 1
        assert len(collections) > 100
    del held
    assert gc.get_freeze_count() == 0
    assert gc.get_threshold() == before


async def test_a_quiet_moment_is_used_for_a_collection() -> None:
    assert await looks(20, lambda: 0.0, least=0.0, most=1e9)


async def test_a_busy_process_is_left_alone() -> None:
    clock = count(0.0, 1000.0)
    assert await looks(20, lambda: next(clock), least=0.0, most=1e9) == []


async def test_a_process_that_is_never_quiet_collects_in_the_end() -> None:
    clock = count(0.0, 1000.0)
    assert await looks(20, lambda: next(clock), least=1e9, most=0.0)


async def test_quiet_moments_that_follow_at_once_are_passed_over() -> None:
    assert await looks(20, lambda: 0.0, least=1e9, most=1e9) == []


async def test_what_came_since_the_last_collection_is_frozen_by_the_next() -> None:
    async with collected_when_quiet(look=0.0, least=0.0, worked=lambda: 0.0):
        frozen = gc.get_freeze_count()
        held = [[number] for number in range(1000)]
        await until_so(lambda: gc.get_freeze_count() >= frozen + 1000)
        assert len(held) == 1000
