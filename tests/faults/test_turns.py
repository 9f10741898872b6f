"""No request keeps the event loop from others for long: the worst that is known for each route, one after the other."""

from tests.faults.turns import running, sites, warm, worst_requests

MISSED = 800
"""Units of work by which a turn may come later than in a service that has nothing to do.

One request took 1,559 of them, about 2 s, when the warnings of a large file were still worked out on the loop.
"""


def test_no_request_keeps_the_event_loop_from_others() -> None:
    missed = {}
    statuses = set()
    with sites() as held, running() as service:
        warm(service, held)
        for route, requests in worst_requests({name: one.url for name, one in held.items()}).items():
            for number, asked in enumerate(requests):
                turns, status = service.turns_during(asked)
                missed[route, number] = turns.worst - service.idle.worst
                statuses.add(status)
    assert statuses <= {200, 413, 422}
    assert {name: units for name, units in missed.items() if units > MISSED} == {}
