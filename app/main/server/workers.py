"""The worker processes of `python -m app serve`; their parent replaces them one by one on SIGHUP."""

import logging
import os
import signal
import time
from contextlib import suppress
from socket import socket

from uvicorn import Config
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

START_TIMEOUT = 120.0
"""Seconds that a worker may take to start, on a busy machine."""

START_ATTEMPTS = 3
"""How many new workers may fail to start before the restart is aborted."""

_log = logging.getLogger("uvicorn.error")


class Worker(Process):
    """A worker process; `was_ready` is whether it has reported that it serves."""

    def __init__(self, config: Config, sockets: list[socket]) -> None:
        super().__init__(config, sockets)
        self._started_at = time.monotonic()
        self.was_ready = self._asked = False

    def __getstate__(self) -> dict[str, object]:
        """What the worker process gets: not the parent's end of the pipe, or it would never be closed."""
        return {name: value for name, value in self.__dict__.items() if name != "parent_conn"}

    def always_pong(self) -> None:
        """Answer the parent until it is gone; without it, nothing would stop or replace this worker."""
        try:
            super().always_pong()
        except (EOFError, OSError):
            if not self.server.should_exit:
                _log.error("The parent process has ended: this worker stops.")
            self.server.should_exit = True

    @property
    def serves(self) -> bool:
        """Whether the worker has started serving."""
        # Not `is_ready`, which sends a ping at every call: a worker that starts slowly would have to answer them all.
        with suppress(OSError, EOFError):
            if not self.was_ready and not self._asked:
                self.parent_conn.send(b"ping")
                self._asked = True
            if self._asked and self.parent_conn.poll():
                self.was_ready, self._asked = self.parent_conn.recv(), False
        return self.was_ready

    def is_alive(self, timeout: float = 5) -> bool:
        """Whether the worker answers within `timeout` seconds, or may still be starting."""
        if not self.process.is_alive():
            return False
        if self.serves:
            return self.ping(timeout)
        return time.monotonic() - self._started_at < START_TIMEOUT


class Workers(Multiprocess):
    """uvicorn's supervisor with a rolling restart.

    uvicorn's own restart gives up when a worker needs more than 5 s to start, which leaves some workers replaced and
    others not, and it handles no signal while it waits. Here the restart is a step of the supervisor's loop: it starts
    a new worker and, once that serves, terminates an old one. The configured number of workers serves throughout.

    A restart may take long or fail. So if workers have files to reload (`reloads`), SIGHUP is forwarded to them at
    once: a revoked API key must not live as long as the slowest start.
    """

    def __init__(self, config: Config, sockets: list[socket], *, reloads: bool) -> None:
        super().__init__(config, sockets)
        self._reloads = reloads
        if hasattr(signal, "SIGHUP"):
            signal.signal(signal.SIGHUP, self._on_sighup)
        self.failed = False  # whether no worker could be started
        self._outdated: list[Process] = []
        self._successor: Worker | None = None
        self._terminating: list[Process] = []
        self._failures = 0

    def init_processes(self) -> None:
        """Start the workers."""
        self.processes = [self._start() for _ in range(self.processes_num)]

    def _on_sighup(self, number: int, _frame: object) -> None:
        self._forward_sighup()
        self.signal_queue.append(number)

    def _forward_sighup(self) -> None:
        # Not to a worker that is still starting, which SIGHUP would kill: that one is replaced.
        for worker in self.processes if self._reloads else ():
            if isinstance(worker, Worker) and worker.was_ready and worker.pid is not None and worker.exitcode is None:
                with suppress(ProcessLookupError):
                    os.kill(worker.pid, signal.SIGHUP)

    def handle_hup(self) -> None:
        """Replace all current workers, including those that started before this signal and do not serve yet."""
        self._forward_sighup()
        _log.info("Received SIGHUP, replacing %d workers one by one.", len(self.processes))
        self._outdated, self._failures = list(self.processes), 0
        self._dismiss_successor()

    def handle_ttin(self) -> None:
        """The number of workers is a setting."""

    def handle_ttou(self) -> None:
        """The number of workers is a setting."""

    def keep_subprocess_alive(self) -> None:
        """Replace dead workers, and continue a restart."""
        for at, worker in enumerate(self.processes):
            if worker.is_alive(self.config.timeout_worker_healthcheck):
                continue
            worker.kill()  # it may hang
            worker.join()
            if worker.exitcode == STARTUP_FAILURE:
                _log.error("Worker [%s] failed to start; stopping.", worker.pid)
                self.failed = True
                self.should_exit.set()
                return
            _log.info("Worker [%s] died", worker.pid)
            self.processes[at] = self._start()
            if worker in self._outdated:
                self._outdated.remove(worker)
        self._replace()

    def terminate_all(self) -> None:
        """Terminate all workers and stop listening."""
        # Otherwise clients could still connect to a socket from which no worker accepts any more.
        for listener in self.sockets:
            listener.close()
        self._dismiss_successor()
        super().terminate_all()

    def join_all(self) -> None:
        """Wait until all workers have exited."""
        super().join_all()
        for worker in self._terminating:
            worker.join()

    def _replace(self) -> None:
        """Take the next step of a restart."""
        ending, self._terminating = (
            self._terminating,
            [worker for worker in self._terminating if worker.process.is_alive()],
        )
        if ending and not (self._terminating or self._outdated):
            _log.info("All workers were replaced.")
        if self._successor is None:
            if self._outdated:
                self._successor = self._start()
        elif self._successor.serves:
            new, self._successor = self._successor, None
            old = self._outdated.pop(0)
            self.processes[self.processes.index(old)] = new
            old.terminate()
            self._terminating.append(old)
        elif not self._successor.is_alive():
            self._failures += 1
            _log.error("New worker [%s] did not start (attempt %d).", self._successor.pid, self._failures)
            self._dismiss_successor()
            if self._failures == START_ATTEMPTS:
                _log.error("Restart aborted: %d workers were not replaced.", len(self._outdated))
                self._outdated = []

    def _start(self) -> Worker:
        worker = Worker(self.config, self.sockets)
        worker.start()
        return worker

    def _dismiss_successor(self) -> None:
        if self._successor is not None:
            self._successor.kill()
            self._successor.join()
            self._successor = None
