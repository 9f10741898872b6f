"""Who asks, who goes and who waits, of one agent's requests to one origin."""

from app.clients.origin_queue import COMES_WITHIN, PaceKey


class Request:
    pass


def filled(count: int, at_once: int = 8) -> tuple[PaceKey[Request], list[Request]]:
    lane: PaceKey[Request] = PaceKey(at_once)
    requests = [Request() for _ in range(count)]
    lane.waiting.extend(requests)
    return lane, requests


def test_nobody_asks_before_a_turn_is_within_reach() -> None:
    lane, _ = filled(0)
    lane.turn_has_come(100, interval=60, max_wait=5)
    assert (lane.room(154.9), lane.room(155)) == (0, 1)
    lane.others_turn(155, seconds=20, interval=60)
    assert (lane.room(174.9), lane.room(175)) == (0, 1)


def test_as_many_ask_as_have_their_turn_within_a_second() -> None:
    lane, _ = filled(0)
    assert lane.room(0) == 8
    for interval, places in ((0.01, 8), (0.25, 4), (0.4, 2), (1, 1), (30, 1)):
        lane.others_turn(0, 0, interval)
        assert lane.room(0) == places


def test_never_more_ask_or_go_than_are_sent_at_once() -> None:
    lane, _ = filled(0, at_once=3)
    requests = [Request() for _ in range(2)]
    lane.going.update(requests)
    assert lane.room(0) == 1
    lane.asking += 1
    assert lane.room(0) == 0
    del requests  # which nobody holds any more: they were dropped
    assert lane.room(0) == 2


def test_who_is_called_is_counted_on_until_he_comes() -> None:
    lane, requests = filled(2, at_once=2)
    assert [lane.call(0), lane.call(1)] == requests
    assert (lane.room(1), lane.places(1)) == (0, 2)
    lane.came(requests[0])
    assert lane.room(1) == 1
    assert lane.room(1 + COMES_WITHIN) == 2
    assert not lane.is_idle()
    lane.came(requests[1])
    assert lane.is_idle()


def test_what_is_not_known_for_too_long_is_given_up_until_it_may_be() -> None:
    lane, _ = filled(0)
    assert not lane.not_known(0, 300, give_up_after=1000)
    assert not lane.not_known(300, 600, give_up_after=1000)
    assert lane.not_known(900, 600, give_up_after=1000)
    assert lane.given_up_until == 1500
    assert not lane.not_known(1500, 300, give_up_after=1000)


def test_a_verdict_begins_the_time_anew() -> None:
    lane, _ = filled(0)
    assert not lane.not_known(0, 900, give_up_after=1000)
    lane.known()
    assert not lane.not_known(900, 900, give_up_after=1000)


def test_a_silent_service_is_asked_ever_less_often() -> None:
    lane, _ = filled(0)
    pauses = []
    for _ in range(8):
        assert not lane.not_known(0, None, give_up_after=1000)
        pauses.append(lane.opens)
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30]
