"""A process without the store takes its share of the pace, and no more."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.origin import Origin
from app.pacing.local_pacer import ALONE, HORIZON, LANES, LocalPacer, Recent
from app.pacing.membership import Rank
from app.pacing.schedule import PaceWindow
from app.pacing.slots import PaceKey, Slot, SlotRequest, WaitTooLong

SITE = Origin("https", "www.example.com", 443)
LANE = PaceKey.of(SITE, "ExampleBot")
TENTH = (PaceWindow(math.inf, 0.1),)
NOW = 1_000_000.0


def wish(max_wait: float = 60.0, spans: tuple[PaceWindow, ...] = TENTH, **members: float) -> SlotRequest:
    return SlotRequest(LANE, spans, "w", max_wait=max_wait, **members)


@pytest.mark.parametrize("fleet", [1, 4])
def test_slots_are_so_many_intervals_apart_as_the_fleet_has_processes(fleet: int) -> None:
    alone = LocalPacer(fleet)
    slots = [alone.reserve(wish(), NOW, 0.0) for _ in range(4)]
    goes = [slot.go_at for slot in slots if isinstance(slot, Slot)]
    assert [later - first for first, later in pairwise(goes)] == pytest.approx([0.1 * fleet] * 3)
    assert NOW <= goes[0] < NOW + 0.1 * fleet
    assert all(slot.name == ALONE and slot.interval == pytest.approx(0.1 * fleet) for slot in slots[:1])  # type: ignore[union-attr]


def test_one_process_alone_begins_at_once() -> None:
    slot = LocalPacer(1).reserve(wish(), NOW, 0.0)
    assert isinstance(slot, Slot)
    assert (slot.go_at, slot.wait) == (NOW, 0)


def test_nothing_is_given_before_what_others_may_still_have() -> None:
    slot = LocalPacer(1).reserve(wish(), NOW, NOW + 1.5)
    assert isinstance(slot, Slot)
    assert slot.go_at == NOW + 1.5


def test_the_local_pacer_grants_no_slot_beyond_its_horizon() -> None:
    alone = LocalPacer(30)
    first = alone.reserve(wish(spans=(PaceWindow(math.inf, 1.0),)), NOW, NOW + HORIZON)
    assert isinstance(first, WaitTooLong)
    assert first.retry_after >= first.wait - HORIZON
    again = alone.reserve(wish(spans=(PaceWindow(math.inf, 1.0),)), NOW + first.retry_after, 0.0)
    assert isinstance(again, Slot)
    assert again.go_at == pytest.approx(NOW + first.wait)


def test_a_wait_beyond_what_was_asked_for_takes_nothing() -> None:
    alone = LocalPacer(1)
    alone.reserve(wish(cost=10.0), NOW, 0.0)
    late = [alone.reserve(wish(max_wait=0.5), NOW, 0.0) for _ in range(3)]
    assert [type(reply) for reply in late] == [WaitTooLong] * 3
    assert [reply.wait for reply in late] == pytest.approx([1.0] * 3)


def test_the_fetch_of_robots_txt_is_charged() -> None:
    slot = LocalPacer(1).reserve(wish(spans=(PaceWindow(math.inf, 1.0),), fetched_at=NOW - 0.4), NOW, 0.0)
    assert slot.wait == pytest.approx(0.6)


def test_who_has_too_much_to_do_is_left_alone_by_all_agents() -> None:
    alone = LocalPacer(1)
    assert alone.hold_back(LANE, NOW, 0.0) == 10
    assert alone.hold_back(LANE, NOW + 1, 60.0) == 60
    assert alone.hold_back(LANE, NOW + 2, 5.0) == 59
    assert alone.hold_back(LANE, NOW + 2, 1e12) == 86_400
    other = SlotRequest(PaceKey.of(SITE, "OtherBot"), TENTH, "w", max_wait=3600)
    assert isinstance(alone.reserve(other, NOW + 2, 0.0), WaitTooLong)
    assert isinstance(alone.reserve(other, NOW + 86_402, 0.0), Slot)


@given(st.lists(st.tuples(st.floats(0, 3), st.sampled_from([0.5, 1.0, 4.0])), max_size=40), st.integers(1, 5))
def test_slots_never_overlap(asked: list[tuple[float, float]], fleet: int) -> None:
    alone, now, ends = LocalPacer(fleet), NOW, 0.0
    for later, cost in asked:
        now += later
        reply = alone.reserve(wish(cost=cost), now, 0.0)
        if isinstance(reply, Slot):
            assert reply.go_at >= max(now, ends) - 1e-6
            ends = reply.go_at + cost * 0.1 * fleet


@pytest.mark.parametrize("size", [1, 2, 8])
@pytest.mark.parametrize("fleet", [1, 4])
def test_a_fleet_that_agreed_on_places_goes_never_beyond_the_pace(fleet: int, size: int) -> None:
    goes = turns_of([LocalPacer(fleet, lambda number=number: Rank(number, size)) for number in range(size)])  # type: ignore[misc]
    assert min(later - first for first, later in pairwise(sorted(goes))) > 0.0999
    assert len(goes) >= 45 * size / max(size, fleet)


def turns_of(processes: list[LocalPacer]) -> list[float]:
    goes = []
    for at, alone in enumerate(processes):
        now = NOW + at * 0.013
        while now < NOW + 5:
            reply = alone.reserve(wish(), now, 0.0)
            now += reply.wait if isinstance(reply, Slot) else reply.retry_after
            goes += [reply.go_at] if isinstance(reply, Slot) else []
    return goes


@pytest.mark.parametrize("fleet", [1, 2, 4, 8])
def test_a_fleet_without_ranks_exceeds_the_rate_by_less_than_its_size(
    fleet: int,
) -> None:
    goes = turns_of([LocalPacer(fleet) for _ in range(fleet)])
    due = [at - go / 0.1 for at, go in enumerate(sorted(goes))]
    assert max(later - first for at, first in enumerate(due) for later in due[at:]) <= fleet - 1 + 1e-3


def test_so_many_lanes_are_remembered_and_no_more() -> None:
    recent: Recent[int, int] = Recent()
    for number in range(LANES + 10):
        recent[number] = number
        recent[0] = -1
    assert [recent.get(number, 7) for number in (0, 1, 10, 11, LANES)] == [-1, 7, 7, 11, LANES]
