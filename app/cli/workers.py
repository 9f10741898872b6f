"""The worker processes of `python -m app serve`, and their parent, which replaces them one by one on SIGHUP."""

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

START = 120.0
"""Seconds that a worker may take to start. On a busy machine it takes many times as long as on an idle one."""

ATTEMPTS = 3
"""How many new workers may fail to start before a restart is given up."""

_log = logging.getLogger("uvicorn.error")


class Worker(Process):
    """A worker; `was_ready` is whether it was seen to serve."""

    def __init__(self, config: Config, sockets: list[socket]) -> None:
        super().__init__(config, sockets)
        self._started_at = time.monotonic()
        self.was_ready = self._asked = False

    @property
    def serves(self) -> bool:
        """Whether it has begun to serve."""
        # Not `is_ready`, which asks anew at every call: a worker that is slow to start answers all of that one by one.
        with suppress(OSError, EOFError):
            if not self.was_ready and not self._asked:
                self.parent_conn.send(b"ping")
                self._asked = True
            if self._asked and self.parent_conn.poll():
                self.was_ready, self._asked = self.parent_conn.recv(), False
        return self.was_ready

    def is_alive(self, timeout: float = 5) -> bool:
        """Whether it answers in so many seconds, or may still be starting."""
        if not self.process.is_alive():
            return False
        if self.serves:
            return self.ping(timeout)
        return time.monotonic() - self._started_at < START


class Workers(Multiprocess):
    """uvicorn's workers, and their parent.

    uvicorn's own restart gives up when a worker needs more than 5 s to start, which leaves some workers replaced and
    others not, and it hears no signal while it waits. Here the restart is a step of the parent's loop: a new worker is
    started, and once it serves, an old one is told to end. All the while as many serve as are configured.

    It may take long or fail. So where workers have files to read again, `reread`, SIGHUP is passed on to them at once:
    an API key that was revoked must not live as long as the slowest start.
    """

    def __init__(self, config: Config, sockets: list[socket], *, reread: bool) -> None:
        super().__init__(config, sockets)
        self._reread = reread
        if hasattr(signal, "SIGHUP"):
            signal.signal(signal.SIGHUP, self._hang_up)
        self.failed = False  # whether no worker could be started
        self._outdated: list[Process] = []
        self._successor: Worker | None = None
        self._ending: list[Process] = []
        self._failures = 0

    def init_processes(self) -> None:
        """Start the workers."""
        self.processes = [self._start() for _ in range(self.processes_num)]

    def _hang_up(self, number: int, _frame: object) -> None:
        self._pass_on_hang_up()
        self.signal_queue.append(number)

    def _pass_on_hang_up(self) -> None:
        # Not to a worker that is still starting, which it would kill: those are replaced.
        for worker in self.processes if self._reread else ():
            if isinstance(worker, Worker) and worker.was_ready and worker.pid is not None and worker.exitcode is None:
                with suppress(ProcessLookupError):
                    os.kill(worker.pid, signal.SIGHUP)

    def handle_hup(self) -> None:
        """Replace all workers that there are now, also those that began to start before this signal."""
        self._pass_on_hang_up()
        _log.info("Received SIGHUP, replacing %d workers one by one.", len(self.processes))
        self._outdated, self._failures = list(self.processes), 0
        self._dismiss_successor()

    def handle_ttin(self) -> None:
        """The number of workers is a setting."""

    def handle_ttou(self) -> None:
        """The number of workers is a setting."""

    def keep_subprocess_alive(self) -> None:
        """Replace what has died, and what is to be replaced."""
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
        """Tell all workers to end, and listen no longer than they do."""
        # Else whoever connects while the workers end is let in, by a socket that is no longer accepted from.
        for listener in self.sockets:
            listener.close()
        self._dismiss_successor()
        super().terminate_all()

    def join_all(self) -> None:
        """Wait until all have ended."""
        super().join_all()
        for worker in self._ending:
            worker.join()

    def _replace(self) -> None:
        """Take the next step of a restart."""
        ending, self._ending = self._ending, [worker for worker in self._ending if worker.process.is_alive()]
        if ending and not (self._ending or self._outdated):
            _log.info("All workers were replaced.")
        if self._successor is None:
            if self._outdated:
                self._successor = self._start()
        elif self._successor.serves:
            new, self._successor = self._successor, None
            old = self._outdated.pop(0)
            self.processes[self.processes.index(old)] = new
            old.terminate()
            self._ending.append(old)
        elif not self._successor.is_alive():
            self._failures += 1
            _log.error("New worker [%s] did not start (attempt %d).", self._successor.pid, self._failures)
            self._dismiss_successor()
            if self._failures == ATTEMPTS:
                _log.error("The restart was given up: %d workers were not replaced.", len(self._outdated))
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
