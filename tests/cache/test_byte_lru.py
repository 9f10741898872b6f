"""The cache in process: bounded in bytes, and what was not asked for the longest goes first."""

from hypothesis import given
from hypothesis import strategies as st

from app.cache.byte_lru import ByteLRU


def test_what_was_not_asked_for_the_longest_goes_first() -> None:
    cache: ByteLRU[str, int] = ByteLRU(10)
    cache.put("a", 1, 4)
    cache.put("b", 2, 4)
    assert cache.get("a") == 1
    cache.put("c", 3, 4)
    assert [cache.get(key) for key in "abc"] == [1, None, 3]


def test_a_value_larger_than_the_bound_is_not_kept_and_pushes_nobody_out() -> None:
    cache: ByteLRU[str, int] = ByteLRU(10)
    cache.put("a", 1, 10)
    cache.put("b", 2, 11)
    assert [cache.get(key) for key in "ab"] == [1, None]
    cache.put("a", 3, 11)
    assert cache.get("a") is None


def test_a_value_in_place_of_another_frees_its_bytes() -> None:
    cache: ByteLRU[str, int] = ByteLRU(10)
    for value in range(20):
        cache.put("a", value, 6)
    cache.put("b", 1, 4)
    assert [cache.get(key) for key in "ab"] == [19, 1]


def test_what_is_dropped_is_gone_and_frees_its_bytes() -> None:
    cache: ByteLRU[str, int] = ByteLRU(10)
    cache.put("a", 1, 10)
    cache.drop("a")
    cache.drop("a")
    assert cache.get("a") is None
    cache.put("b", 2, 5)
    cache.put("c", 3, 5)
    assert [cache.get(key) for key in "bc"] == [2, 3]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 12)), max_size=60))
def test_the_bound_holds_and_the_newest_that_fit_are_there(puts: list[tuple[int, int]]) -> None:
    cache: ByteLRU[int, int] = ByteLRU(10)
    newest: list[tuple[int, int]] = []
    for key, size in puts:
        cache.put(key, size, size)
        newest = [(other, held) for other, held in newest if other != key]
        if size <= 10:
            newest.append((key, size))
        while sum(held for _, held in newest) > 10:
            newest.pop(0)
    assert {key: cache.get(key) for key in range(6)} == {key: dict(newest).get(key) for key in range(6)}


def test_small_values_are_bounded_in_number() -> None:
    lru: ByteLRU[int, str] = ByteLRU(1000, entries=3)
    for number in range(5):
        lru.put(number, "a", 1)
    assert lru.usage == (3, 3)
    assert [lru.get(number) for number in range(5)] == [None, None, "a", "a", "a"]
