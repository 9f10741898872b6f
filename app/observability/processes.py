"""The processes that are counted: one, or several workers that count together.

With several workers, any of them answers for all. The client library keeps the values of each process in files of its
own in the directory that PROMETHEUS_MULTIPROC_DIR names, and `python -m app` makes one where WORKERS is more than 1.
What a worker counted that has died stays in the sum; its gauges are dropped.
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

_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"  # the library's own name; the library reads it when it is imported


class Exposition:
    """What /metrics shows: the metrics in `registry`, of this process or of all workers, and `process_*` of each."""

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
        """All of it in Prometheus's text format."""
        return generate_latest(self._shown)

    def forget_dead_workers(self) -> None:
        """Drop the gauges of workers that were killed: each is replaced by a process that calls this."""
        if self._directory is not None:
            for pid in _workers(Path(self._directory)):
                if not _is_alive(pid):
                    mark_process_dead(pid, self._directory)  # type: ignore[no-untyped-call]

    def leave(self) -> None:
        """Drop the gauges of this process, which is about to end."""
        if self._directory is not None:
            mark_process_dead(os.getpid(), self._directory)  # type: ignore[no-untyped-call]


class _Workers(Collector):
    """The `process_*` metrics of every worker, told apart by `pid`: sums of them would fall when a worker ends."""

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
def counted_together() -> Iterator[None]:
    """Let the processes that are started in this block count together; what they counted is gone when it ends."""
    with tempfile.TemporaryDirectory(prefix="robots-metrics-") as directory:
        os.environ[_DIRECTORY] = directory
        try:
            yield
        finally:
            del os.environ[_DIRECTORY]


def _workers(directory: Path) -> set[int]:
    """The processes that have gauges: those that run, and those that were killed and are not forgotten yet."""
    return {int(file.stem.rpartition("_")[2]) for file in directory.glob("gauge_live*_*.db")}


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it runs as another user
    return True
