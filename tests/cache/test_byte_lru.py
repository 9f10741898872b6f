"""The LRU cache is bounded in bytes, and evicts the least recently used value first."""

from hypothesis import given
from hypothesis import strategies as st

from app.cache.byte_lru import ByteLRU


def test_the_least_recently_used_value_is_evicted() -> None:
    cache: ByteLRU[str, int] = ByteLRU(10)
    cache.put("a", 1, 4)
    cache.put("b", 2, 4)
    assert cache.get("a") == 1
    cache.put("c", 3, 4)
    assert [cache.get(key) for key in "abc"] == [1, None, 3]


def test_a_value_over_the_limit_is_not_kept_and_evicts_nothing() -> None:
    cache: ByteLRU[str, int] = ByteLRU(10)
    cache.put("a", 1, 10)
    cache.put("b", 2, 11)
    assert [cache.get(key) for key in "ab"] == [1, None]
    cache.put("a", 3, 11)
    assert cache.get("a") is None


def test_replacing_a_value_frees_its_bytes() -> None:
    cache: ByteLRU[str, int] = ByteLRU(10)
    for value in range(20):
        cache.put("a", value, 6)
    cache.put("b", 1, 4)
    assert [cache.get(key) for key in "ab"] == [19, 1]


def test_dropping_a_value_frees_its_bytes() -> None:
    cache: ByteLRU[str, int] = ByteLRU(10)
    cache.put("a", 1, 10)
    cache.drop("a")
    cache.drop("a")
    assert cache.get("a") is None
    cache.put("b", 2, 5)
    cache.put("c", 3, 5)
    assert [cache.get(key) for key in "bc"] == [2, 3]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 12)), max_size=60))
def test_the_newest_values_that_fit_are_kept(puts: list[tuple[int, int]]) -> None:
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
