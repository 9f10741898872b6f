"""For `make deploy-check`: what /metrics of a process that has counted nothing yet says, for promtool to look at."""

import sys

from app.observability.metrics import Metrics, State

if __name__ == "__main__":
    calm = State(store_degraded=False, pubsub_connected=True, fetches_in_flight=0, fetches_queued=0, memory={})
    sys.stdout.buffer.write(Metrics(lambda: calm).text())
