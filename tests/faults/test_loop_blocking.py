"""No request blocks the event loop for long: the worst known requests of each route."""

from tests.faults.loop_blocking import AtOnce, Service, running, sites, warm, worst_requests

MOST = 800
"""Units of work by which an answer of /healthz may be later than in an idle service.

One request took 1,559 units, about 2 s, when the warnings of a large file were still computed on the event loop.
"""

ONCE = {
    "GET /v1/allowed",
    "20 GET /v1/allowed",
    "POST /v1/allowed, 20 cold",
    "POST /v1/permits/batch, 20 cold",
}
"""Requests of which the first one does the work, so that they cannot be repeated."""


def lateness(service: Service, requests: AtOnce, attempts: int) -> tuple[int, set[int]]:
    """The units and the statuses of the first attempt that is not late: other processes delay answers, too."""
    while True:
        lag, statuses = service.lag_during(requests)
        units, attempts = lag.worst - service.idle.worst, attempts - 1
        if units <= MOST or attempts == 0:
            return units, statuses


def test_no_request_blocks_the_event_loop() -> None:
    late = {}
    with sites() as origins, running() as service:
        warm(service, origins)
        for route, requests in worst_requests({name: one.url for name, one in origins.items()}).items():
            for number, at_once in enumerate(requests):
                units, statuses = lateness(service, at_once, 1 if route in ONCE else 3)
                assert statuses <= {200, 413, 422}
                if units > MOST:
                    late[route, number] = units
    assert late == {}
