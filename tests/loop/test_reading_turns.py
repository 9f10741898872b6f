"""Files are read in turns of the event loop, in their order, and what waits is bounded."""

import asyncio
from collections import defaultdict

import pytest

from app.loop.background import cancel_and_wait
from app.loop.reading_turns import FREE_TURNS, TURN_BYTES, WAITING_FILE_BYTES, ReadingTurns
from robots_core.robots.access import Busy


async def read(sizes: list[int], keys: list[object] | None = None) -> dict[int, list[int]]:
    """The numbers of the files that are read in each turn, in the order of the turns."""
    turns, now = ReadingTurns(), 0
    found: dict[int, list[int]] = defaultdict(list)

    async def count() -> None:
        nonlocal now
        while True:
            now += 1
            await asyncio.sleep(0)

    async def one(number: int, size: int) -> None:
        await turns.wait(number if keys is None else keys[number], size)
        found[now].append(number)

    counting = asyncio.create_task(count())
    await asyncio.gather(*map(one, range(len(sizes)), sizes))
    await cancel_and_wait([counting])
    return dict(found)


async def test_short_files_share_a_turn() -> None:
    found = await read([TURN_BYTES // 8] * 24)
    assert [len(numbers) for numbers in found.values()] == [8, 8, 8]


async def test_a_long_file_has_a_turn_of_its_own_and_others_follow() -> None:
    found = await read([10 * TURN_BYTES, 1, 10 * TURN_BYTES, TURN_BYTES, 1, 2])
    assert list(found.values()) == [[0], [1], [2], [3], [4, 5]]
    turns = list(found)
    assert turns[1] - turns[0] >= FREE_TURNS
    assert turns[3] - turns[2] >= FREE_TURNS


async def test_one_turn_is_enough_for_all_who_wait_for_a_file() -> None:
    found = await read([TURN_BYTES] * 6, ["a", "b", "b", "c", "b", "c"])
    assert [sorted(numbers) for numbers in found.values()] == [[0], [1, 2, 4], [3, 5]]


async def test_the_bytes_that_wait_are_bounded() -> None:
    turns = ReadingTurns()
    await turns.wait("first", WAITING_FILE_BYTES)
    waiting = [asyncio.create_task(turns.wait(number, WAITING_FILE_BYTES // 4)) for number in range(5)]
    await asyncio.sleep(0)
    with pytest.raises(Busy, match="Too many large files wait"):
        await waiting.pop()
    await asyncio.gather(*waiting)
    await turns.wait("again", WAITING_FILE_BYTES)


async def test_a_caller_that_leaves_takes_its_turn_from_no_one() -> None:
    turns = ReadingTurns()
    await turns.wait("first", TURN_BYTES)
    leaves, stays = (asyncio.create_task(turns.wait("second", TURN_BYTES)) for _ in range(2))
    await asyncio.sleep(0)
    await cancel_and_wait([leaves])
    await stays
    await turns.wait("third", TURN_BYTES)
