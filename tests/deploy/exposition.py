"""For `make deploy-check`: what /metrics of a process that has counted nothing yet says, for promtool to look at."""

import sys

from app.observability.metrics import Metrics, State

if __name__ == "__main__":
    calm = State(store_degraded=False, news_heard=True, fetches_under_way=0, fetches_waiting=0, memory={})
    sys.stdout.buffer.write(Metrics(lambda: calm).text())
