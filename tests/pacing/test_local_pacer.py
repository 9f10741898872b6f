"""A process without the store uses only its share of the pace."""

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cache.byte_lru import MAX_KEYS, BoundedDict
from app.pacing.local_pacer import HORIZON, LOCAL_SLOT, LocalPacer
from app.pacing.membership import Rank
from app.pacing.schedule import PaceWindow
from app.pacing.slots import PaceKey, Slot, SlotRequest, WaitTooLong

HOST = "www.example.com"
KEY = PaceKey.of(HOST, "ExampleBot")
TENTH = (PaceWindow(math.inf, 0.1),)
NOW = 1_000_000.0


def request(max_wait: float = 60.0, pace_windows: tuple[PaceWindow, ...] = TENTH, **members: Any) -> SlotRequest:
    return SlotRequest(KEY, pace_windows, "w", max_wait=max_wait, **members)


@pytest.mark.parametrize("fleet", [1, 4])
def test_local_slots_are_a_fleet_of_intervals_apart(fleet: int) -> None:
    alone = LocalPacer(fleet)
    slots = [alone.reserve(request(), NOW, 0.0) for _ in range(4)]
    goes = [slot.go_at for slot in slots if isinstance(slot, Slot)]
    assert [later - first for first, later in pairwise(goes)] == pytest.approx([0.1 * fleet] * 3)
    assert NOW <= goes[0] < NOW + 0.1 * fleet
    assert all(slot.name == LOCAL_SLOT and slot.interval == pytest.approx(0.1 * fleet) for slot in slots[:1])  # type: ignore[union-attr]


def test_a_fleet_of_one_starts_at_once() -> None:
    slot = LocalPacer(1).reserve(request(), NOW, 0.0)
    assert isinstance(slot, Slot)
    assert (slot.go_at, slot.wait) == (NOW, 0)


def test_local_pacer_gives_no_slot_before_not_before() -> None:
    slot = LocalPacer(1).reserve(request(), NOW, NOW + 1.5)
    assert isinstance(slot, Slot)
    assert slot.go_at == NOW + 1.5


def test_a_slot_beyond_the_horizon_is_refused_and_comes_nearer() -> None:
    alone = LocalPacer(30)
    first = alone.reserve(request(pace_windows=(PaceWindow(math.inf, 1.0),)), NOW, NOW + HORIZON)
    assert isinstance(first, WaitTooLong)
    assert first.retry_after >= first.wait - HORIZON
    again = alone.reserve(request(pace_windows=(PaceWindow(math.inf, 1.0),)), NOW + first.retry_after, 0.0)
    assert isinstance(again, Slot)
    assert again.go_at == pytest.approx(NOW + first.wait)


def test_a_refused_local_wait_reserves_nothing() -> None:
    alone = LocalPacer(1)
    alone.reserve(request(cost=10.0), NOW, 0.0)
    late = [alone.reserve(request(max_wait=0.5), NOW, 0.0) for _ in range(3)]
    assert [type(reply) for reply in late] == [WaitTooLong] * 3
    assert [reply.wait for reply in late] == pytest.approx([1.0] * 3)


def test_each_refused_caller_has_a_turn_of_its_own() -> None:
    alone, second = LocalPacer(1), (PaceWindow(math.inf, 1.0),)
    for _ in range(2):
        assert isinstance(alone.reserve(request(pace_windows=second), NOW, 0.0), Slot)
    turns = []
    for number in range(5):
        reply = alone.reserve(request(pace_windows=second)._replace(caller=f"w{number}", cost=3.0), NOW, NOW + 3)
        assert isinstance(reply, WaitTooLong)
        turns.append(reply.retry_after)
    assert all(later - first >= 1 for first, later in pairwise(turns))
    slot = alone.reserve(request(pace_windows=second)._replace(caller="w0"), NOW + turns[0], NOW + 3)
    assert isinstance(slot, Slot)
    assert slot.go_at == pytest.approx(NOW + 3)


def test_local_pacer_charges_the_robots_txt_fetch() -> None:
    slot = LocalPacer(1).reserve(request(pace_windows=(PaceWindow(math.inf, 1.0),), fetched_at=NOW - 0.4), NOW, 0.0)
    assert slot.wait == pytest.approx(0.6)


def test_a_fetch_of_robots_txt_in_the_future_counts_as_now() -> None:
    slot = LocalPacer(1).reserve(request(pace_windows=(PaceWindow(math.inf, 1.0),), fetched_at=NOW + 3600), NOW, 0.0)
    assert slot.wait == pytest.approx(1.0)


@given(st.lists(st.tuples(st.floats(0, 3), st.sampled_from([0.5, 1.0, 4.0])), max_size=40), st.integers(1, 5))
def test_local_slots_never_overlap(asked: list[tuple[float, float]], fleet: int) -> None:
    alone, now, ends = LocalPacer(fleet), NOW, 0.0
    for later, cost in asked:
        now += later
        reply = alone.reserve(request(cost=cost), now, 0.0)
        if isinstance(reply, Slot):
            assert reply.go_at >= max(now, ends) - 1e-6
            ends = reply.go_at + cost * 0.1 * fleet


@pytest.mark.parametrize("size", [1, 2, 8])
@pytest.mark.parametrize("fleet", [1, 4])
def test_processes_with_ranks_never_exceed_the_pace(fleet: int, size: int) -> None:
    goes = turns_of([LocalPacer(fleet, lambda number=number: (Rank(number, size),)) for number in range(size)])  # type: ignore[misc]
    assert min(later - first for first, later in pairwise(sorted(goes))) > 0.0999
    assert len(goes) >= 45 * size / max(size, fleet)


def turns_of(processes: list[LocalPacer]) -> list[float]:
    goes = []
    for at, alone in enumerate(processes):
        now = NOW + at * 0.013
        while now < NOW + 5:
            reply = alone.reserve(request(), now, 0.0)
            now += reply.wait if isinstance(reply, Slot) else reply.retry_after
            goes += [reply.go_at] if isinstance(reply, Slot) else []
    return goes


@pytest.mark.parametrize("fleet", [1, 2, 4, 8])
def test_n_processes_without_ranks_exceed_by_n_minus_1_at_most(
    fleet: int,
) -> None:
    goes = turns_of([LocalPacer(fleet) for _ in range(fleet)])
    due = [at - go / 0.1 for at, go in enumerate(sorted(goes))]
    assert max(later - first for at, first in enumerate(due) for later in due[at:]) <= fleet - 1 + 1e-3


def test_a_bounded_dict_drops_the_oldest_keys() -> None:
    recent: BoundedDict[int, int] = BoundedDict()
    for number in range(MAX_KEYS + 10):
        recent[number] = number
        recent[0] = -1
    assert [recent.get(number, 7) for number in (0, 1, 10, 11, MAX_KEYS)] == [-1, 7, 7, 11, MAX_KEYS]


def test_hosts_of_one_pool_with_different_paces_do_not_collide() -> None:
    second = (PaceWindow(math.inf, 0.5),)
    pacers = [LocalPacer(None, lambda number=number: (Rank(number, 3),)) for number in range(3)]  # type: ignore[misc]
    taken: list[tuple[float, float]] = []
    for step in range(400):
        at = NOW + step * 0.05
        for number, pacer in enumerate(pacers):
            windows = second if step < 3 or (step + number) % 2 else TENTH
            slot = pacer.reserve(request(0.0, windows), at, 0.0)
            if isinstance(slot, Slot):
                taken.append((slot.go_at, windows[0].interval))
    taken.sort()
    assert len(taken) > 30
    assert all(later >= go + interval - 1e-3 for (go, interval), (later, _) in pairwise(taken))


def test_a_slow_host_that_the_store_answered_for_slows_its_pool() -> None:
    pacers = [LocalPacer(None, lambda number=number: (Rank(number, 3),)) for number in range(3)]  # type: ignore[misc]
    for pacer in pacers:
        pacer.note(request(0.0, TENTH).key, 0.5, NOW)
    slots = [pacer.reserve(request(2.0, TENTH), NOW, 0.0) for pacer in pacers for _ in range(3)]
    taken = sorted(slot.go_at for slot in slots if isinstance(slot, Slot))
    assert len(taken) >= 3
    assert all(later >= go + 0.5 - 1e-3 for go, later in pairwise(taken))
