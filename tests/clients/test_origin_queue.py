"""The queue of one agent's requests to one origin."""

from collections import deque

from robots_decisions.origin_queue import CALL_TIMEOUT, OriginQueue


class Request:
    pass


def filled(count: int, concurrency: int = 8) -> tuple[OriginQueue[Request], list[Request]]:
    requests = [Request() for _ in range(count)]
    return OriginQueue(concurrency, deque(requests)), requests


def test_requests_ask_once_a_slot_is_within_max_wait() -> None:
    queue, _ = filled(0)
    queue.granted(100, interval=60, max_wait=5)
    assert (queue.unclaimed_slots(154.9), queue.unclaimed_slots(155)) == (0, 1)
    queue.wait_for_slot(155, seconds=20, interval=60)
    assert (queue.unclaimed_slots(174.9), queue.unclaimed_slots(175)) == (0, 1)


def test_first_turn_counts_of_those_that_asked_together() -> None:
    queue, _ = filled(0, concurrency=100)
    queue.granted(0, interval=2, max_wait=5)
    for turn in (4, 2, 128, 6):
        queue.wait_for_slot(0.1, seconds=turn, interval=2)
    assert (queue.unclaimed_slots(2.0), queue.unclaimed_slots(2.1)) == (0, 1)
    queue.wait_for_slot(2.2, seconds=130, interval=2)  # whoever comes at its turn hears the next one
    assert (queue.unclaimed_slots(132.1), queue.unclaimed_slots(132.2)) == (0, 1)


def test_turn_does_not_shorten_another_wait() -> None:
    queue, _ = filled(0)
    queue.wait_for_slot(0, seconds=10, interval=1)
    queue.opens_at = 100  # the site asked to be left alone
    queue.wait_for_slot(5, seconds=20, interval=1)
    assert queue.opens_at == 25  # the service knows of that, too


def test_requests_ask_if_their_slot_is_within_a_second() -> None:
    queue, _ = filled(0)
    assert queue.unclaimed_slots(0) == 8
    for interval, places in ((0.01, 8), (0.25, 4), (0.4, 2), (1, 1), (30, 1)):
        queue.wait_for_slot(0, 0, interval)
        assert queue.unclaimed_slots(0) == places


def test_concurrency_limits_asking_and_in_flight_requests() -> None:
    queue, _ = filled(0, concurrency=3)
    requests = [Request() for _ in range(2)]
    queue.in_flight.update(requests)
    assert queue.unclaimed_slots(0) == 1
    queue.requesting += 1
    assert queue.unclaimed_slots(0) == 0
    del requests  # dropped by their owner
    assert queue.unclaimed_slots(0) == 2


def test_called_request_claims_a_slot_until_it_arrives() -> None:
    queue, requests = filled(2, concurrency=2)
    (first, number), (second, other) = queue.call(100), queue.call(101)
    assert [first, second] == requests
    assert (queue.unclaimed_slots(101), queue.free_slots(101)) == (0, 2)
    queue.arrived(number)
    assert queue.unclaimed_slots(101) == 1
    assert not queue.is_idle()
    queue.arrived(other)
    assert queue.is_idle()
    queue.arrived(None)
    queue.arrived(number)  # a request of an earlier run, or of another process
    assert queue.is_idle()


def test_call_is_written_off_once_its_request_must_have_arrived() -> None:
    queue, _ = filled(3, concurrency=3)
    queue.call(100)
    queue.call(110)
    assert queue.unclaimed_slots(110.5, handed_out=100.5) == 1
    assert queue.unclaimed_slots(110.5, handed_out=101) == 2
    assert queue.unclaimed_slots(110 + CALL_TIMEOUT - 0.1) == 2
    assert queue.unclaimed_slots(110 + CALL_TIMEOUT) == 3


def test_origin_without_verdict_is_given_up_after_a_while() -> None:
    queue, _ = filled(0)
    assert not queue.verdict_unknown(0, 300, give_up_after=1000)
    assert not queue.verdict_unknown(300, 600, give_up_after=1000)
    assert queue.verdict_unknown(900, 600, give_up_after=1000)
    assert queue.given_up_until == 1500
    assert not queue.verdict_unknown(1500, 300, give_up_after=1000)


def test_verdict_resets_the_time_to_give_up() -> None:
    queue, _ = filled(0)
    assert not queue.verdict_unknown(0, 900, give_up_after=1000)
    queue.verdict_known()
    assert not queue.verdict_unknown(900, 900, give_up_after=1000)


def test_unavailable_service_is_retried_with_backoff() -> None:
    queue, _ = filled(0)
    pauses = []
    for _ in range(8):
        assert not queue.verdict_unknown(0, None, give_up_after=1000)
        pauses.append(queue.opens_at)
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30]
