"""No request blocks the event loop for long: the worst known requests of each route."""

from tests.faults.loop_blocking import Request, Service, running, sites, warm, worst_requests

MOST = 800
"""Units of work by which an answer of /healthz may be later than in an idle service.

One request took 1,559 units, about 2 s, when the warnings of a large file were still computed on the event loop.
"""

COLD = "GET /v1/allowed"
"""The route whose first request parses the file, so that its work cannot be repeated."""


def lateness(service: Service, request: Request, attempts: int) -> tuple[int, int]:
    """The units and the status, of the first attempt that is not late: other processes delay answers, too."""
    while True:
        lag, status = service.lag_during(request)
        units, attempts = lag.worst - service.idle.worst, attempts - 1
        if units <= MOST or attempts == 0:
            return units, status


def test_no_request_blocks_the_event_loop() -> None:
    late = {}
    with sites() as origins, running() as service:
        warm(service, origins)
        for route, requests in worst_requests({name: one.url for name, one in origins.items()}).items():
            for number, request in enumerate(requests):
                units, status = lateness(service, request, 1 if route == COLD else 3)
                assert status in {200, 413, 422}
                if units > MOST:
                    late[route, number] = units
    assert late == {}
