"""No request blocks the event loop for long: the worst known requests of each route."""

from tests.faults.loop_blocking import running, sites, warm, worst_requests

MOST = 800
"""Units of work by which an answer of /healthz may be later than in an idle service.

One request took 1,559 units, about 2 s, when the warnings of a large file were still computed on the event loop.
"""


def test_no_request_blocks_the_event_loop() -> None:
    lags = {}
    statuses = set()
    with sites() as origins, running() as service:
        warm(service, origins)
        for route, requests in worst_requests({name: one.url for name, one in origins.items()}).items():
            for number, request in enumerate(requests):
                lag, status = service.lag_during(request)
                lags[route, number] = lag.worst - service.idle.worst
                statuses.add(status)
    assert statuses <= {200, 413, 422}
    assert {name: units for name, units in lags.items() if units > MOST} == {}
