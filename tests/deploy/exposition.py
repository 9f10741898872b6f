"""For `make check NAME=deploy`: print the /metrics of a new process, for promtool."""

import sys

from app.observability.metrics import Metrics, ServiceState

if __name__ == "__main__":
    calm = ServiceState(store_degraded=False, pubsub_connected=True, fetches_in_flight=0, fetches_queued=0, memory={})
    sys.stdout.buffer.write(Metrics(lambda: calm).text())
