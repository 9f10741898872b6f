"""Metrics of one process, or of several workers together.

With several workers, a scrape of any of them shows all. The client library keeps the values of each process in files
below PROMETHEUS_MULTIPROC_DIR; `python -m app` creates that directory when WORKERS is above 1. Counters of a dead
worker stay in the sums; its gauges are dropped.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from prometheus_client import CollectorRegistry, Metric, PlatformCollector, ProcessCollector
from prometheus_client.exposition import generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"  # prometheus_client reads it at import


class Exposition:
    """The content of /metrics: `registry` of this process or of all workers, and `process_*` of each."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._directory: str | None = os.environ.get(_DIRECTORY)
        self._shown = self.registry
        if self._directory is None:
            ProcessCollector(registry=self.registry)
        else:
            self._shown = CollectorRegistry()
            MultiProcessCollector(self._shown, self._directory)  # type: ignore[no-untyped-call]
            self._shown.register(_Workers(Path(self._directory)))
        PlatformCollector(registry=self._shown)

    def text(self) -> bytes:
        """Everything, in Prometheus text format."""
        return generate_latest(self._shown)

    def forget_dead_workers(self) -> None:
        """Drop the gauges of workers that were killed. The process that replaces a worker calls this at its start."""
        if self._directory is not None:
            for pid in _workers(Path(self._directory)):
                if not _is_alive(pid):
                    mark_process_dead(pid, self._directory)  # type: ignore[no-untyped-call]

    def forget_this_worker(self) -> None:
        """Drop the gauges of this process, which is about to exit."""
        if self._directory is not None:
            mark_process_dead(os.getpid(), self._directory)  # type: ignore[no-untyped-call]


class _Workers(Collector):
    """The `process_*` metrics of every worker, labelled by `pid`: a sum would drop when a worker exits."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def collect(self) -> Iterable[Metric]:
        families: dict[str, Metric] = {}
        for pid in sorted(_workers(self._directory)):
            for metric in ProcessCollector(pid=partial(int, pid), registry=None).collect():
                family = families.setdefault(metric.name, Metric(metric.name, metric.documentation, metric.type))
                for sample in metric.samples:
                    family.add_sample(sample.name, {**sample.labels, "pid": str(pid)}, sample.value)
        return families.values()


@contextmanager
def shared_metrics() -> Iterator[None]:
    """Share metrics between the processes started in this block; the values are deleted at its end."""
    with tempfile.TemporaryDirectory(prefix="robots-metrics-") as directory:
        os.environ[_DIRECTORY] = directory
        try:
            yield
        finally:
            del os.environ[_DIRECTORY]


def _workers(directory: Path) -> set[int]:
    """Ids of the processes with gauges: running workers, and killed ones that are not forgotten yet."""
    return {int(file.stem.rpartition("_")[2]) for file in directory.glob("gauge_live*_*.db")}


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it runs as another user
    return True
