"""The commands of a process to one server, on one connection that all callers share.

redis-py opens the connection: it knows the server, TLS and the password. SharedConnection then takes the place of its
protocol, so that a call is a future, and needs neither a task nor a connection out of a pool. What callers rely on:

- Commands are sent in the order of the calls, each once. Replies come in the same order.
- What is called in one turn of the event loop is written at once, at its end.
- A call ends within its timeout. If a reply is late, the connection is closed, all that wait for one on it fail with
  TimeoutError, and another is opened for the next call.
- While a connection is opened, calls wait for it. It goes on if they give up: a distant server would never be reached
  if every attempt ended after the timeout of a command.
- A caller may be cancelled at any moment. Its command is not sent if no connection was open yet; otherwise its reply is
  dropped, and no other caller notices.
- A connection that the server has closed is opened again by the next call. Commands whose replies had not come fail,
  since the server may have run them: with ConnectionEnded, if the server had answered on that connection.
- A server that refuses a write because it is a replica is left. Another may have taken its place, and its name in DNS,
  in the list of a sentinel or behind a proxy, while connections to it stay open.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from copy import copy
from typing import Any, TypeAlias, cast

from hiredis import pack_command
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import InvalidResponse, ReadOnlyError

from app.loop.background import BackgroundTask, as_value, cancel_and_wait, report
from app.store.connect import Borrowed
from app.store.failures import FAILURES, ConnectionEnded
from app.store.replies import Replies

SLICES = 10
"""How many parts the timeout of a call is divided into."""

LATE_CALL_SECONDS = 5.0
"""Seconds after which opening a connection is given up; over a slow network it may take long."""

Word: TypeAlias = str | bytes | int
"""A part of a command."""

_Waiting: TypeAlias = "asyncio.Future[Any]"
# Its result may be an exception, which is then raised: asyncio would log one that was set as such if its caller is
# cancelled at that moment.


_CLOSED = "the connection was closed"


class SharedConnection:
    """Calls to one server, each for at most `timeout` seconds, on a connection that `borrow` opens.

    `failed` is called when a connection fails, or none can be opened.
    """

    def __init__(
        self, borrow: Callable[[], Awaitable[Borrowed]], timeout: float, failed: Callable[[], None] = lambda: None
    ) -> None:
        self._borrow = borrow
        self._slice = timeout / SLICES
        self._failed = failed
        self._connection: _Connection | None = None
        self._unsent: deque[tuple[_Waiting, int, bytes]] = deque()
        self._serving: asyncio.Task[None] | None = None
        self._tick = 0
        self._sweeping: asyncio.TimerHandle | None = None

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection, or one is being opened."""
        return self._serving is not None and not self._serving.done()

    async def call(self, *command: Word) -> Any:
        """The reply to a command. Raises one of FAILURES, or what `borrow` raises."""
        reply = await self._send(pack_command(command))  # type: ignore[arg-type] # its stub has tuples of one item
        if isinstance(reply, Exception):
            try:
                raise reply
            finally:
                del reply  # or this frame is in a cycle with an exception, which refers to it
        return reply

    async def call_asking(self, *command: Word) -> Any:
        """The reply to a command to which another server of a cluster redirected with ASK."""
        self._send(pack_command(("ASKING",)))  # its reply is dropped
        return await self.call(*command)

    async def aclose(self) -> None:
        """Close the connection; calls that wait fail."""
        if self._serving is not None:
            await cancel_and_wait([self._serving])
        self._refuse(NoConnection(_CLOSED))
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None

    def _send(self, data: bytes) -> _Waiting:
        loop = asyncio.get_running_loop()
        waiting: _Waiting = loop.create_future()
        connection = self._connection
        if connection is not None and connection.is_open:
            connection.send(waiting, self._tick, data)
        else:
            self._unsent.append((waiting, self._tick, data))
            self._serve()
        if self._sweeping is None:
            self._sweeping = loop.call_later(self._slice, self._sweep)
        return waiting

    def _sweep(self) -> None:
        # One timer for all calls, which counts slices: if it was this process that stalled, the stall counts as one
        # slice, and replies that arrived meanwhile are still read.
        self._tick += 1
        latest = self._tick - SLICES
        connection = self._connection
        if connection is not None and connection.waits_since(self._tick) < latest:
            connection.close(TimeoutError())
        while self._unsent and self._unsent[0][1] < latest:
            _settle(self._unsent.popleft()[0], TimeoutError())
        waits = self._unsent or (self._connection is not None and self._connection.waits)
        self._sweeping = asyncio.get_running_loop().call_later(self._slice, self._sweep) if waits else None

    def _serve(self) -> None:
        """Have a connection opened, unless that is under way."""
        if self._serving is None or self._serving.done():
            self._serving = asyncio.create_task(self._hold_connection(), name=BackgroundTask.STORE_CONNECTIONS)
            self._serving.add_done_callback(_ended)

    async def _hold_connection(self) -> None:
        """Open a connection, and give it back once it is closed; again, if calls wait for one, or it was late."""
        while True:
            try:
                async with asyncio.timeout(LATE_CALL_SECONDS):
                    borrowed = await self._borrow()
            except Exception as error:
                self._failed()
                self._refuse(error)
                if isinstance(error, FAILURES):
                    return
                raise
            connection = self._connection = _Connection(borrowed)
            try:
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    raise asyncio.CancelledError  # which opening the connection may drop (`cancel_and_wait`)
                for waiting, tick, data in self._unsent:
                    if not waiting.done():
                        connection.send(waiting, tick, data)
                self._unsent.clear()
                await connection.closed.wait()
                self._failed()
            finally:
                connection.close(NoConnection(_CLOSED))
                self._connection = None
                await borrowed.give_back()
            if not self._unsent and not connection.was_late:
                return

    def _refuse(self, error: Exception) -> None:
        while self._unsent:
            _settle(self._unsent.popleft()[0], error)


class _Connection(asyncio.Protocol):
    """An open connection, which this takes over from redis-py."""

    def __init__(self, borrowed: Borrowed) -> None:
        self.closed = asyncio.Event()
        self.was_late = False
        self._has_answered = False
        self._sent: deque[tuple[_Waiting, int]] = deque()
        self._unwritten: list[bytes] = []
        self._replies = Replies()
        self._transport = borrowed.transport
        self._before = self._transport.get_protocol()
        self._transport.set_protocol(self)

    @property
    def is_open(self) -> bool:
        return not (self.closed.is_set() or self._transport.is_closing())

    @property
    def waits(self) -> bool:
        """Whether a reply is to come."""
        return bool(self._sent)

    def waits_since(self, now: int) -> int:
        """The tick of the oldest call that waits; `now` if none does."""
        return self._sent[0][1] if self._sent else now

    def send(self, waiting: _Waiting, tick: int, data: bytes) -> None:
        # What is sent in one turn of the loop is written at once: uvloop makes a system call of every write.
        self._sent.append((waiting, tick))
        if not self._unwritten:
            asyncio.get_running_loop().call_soon(self._write)
        self._unwritten.append(data)

    def close(self, error: Exception) -> None:
        """Close the connection; calls that wait fail with the error."""
        if self.closed.is_set():
            return
        self.closed.set()
        self.was_late = isinstance(error, TimeoutError)
        self._transport.abort()
        while self._sent:
            _settle(self._sent.popleft()[0], error)

    def _write(self) -> None:
        if self.is_open:
            self._transport.write(b"".join(self._unwritten))
        self._unwritten.clear()

    def _expect_reply(self) -> None:
        if not self._sent:
            raise InvalidResponse("the server sent a reply to no command")

    # asyncio calls these.

    def data_received(self, data: bytes) -> None:
        if self.closed.is_set():
            return
        try:
            # Before it is read: a reply that never ends would be collected for as long as no call waits.
            self._expect_reply()
            for reply in self._replies.feed(data):
                self._expect_reply()
                if isinstance(reply, ReadOnlyError):
                    raise NoConnection(f"READONLY {reply}")
                self._has_answered = True
                _settle(self._sent.popleft()[0], reply)
        except (InvalidResponse, NoConnection) as error:
            self.close(error)

    def connection_lost(self, exc: Exception | None) -> None:
        kind = ConnectionEnded if self._has_answered else NoConnection
        self.close(kind(f"the server closed the connection{f': {exc}' if exc else ''}"))
        cast("asyncio.Protocol", self._before).connection_lost(exc)  # redis-py may wait for it


def _settle(waiting: _Waiting, reply: Any) -> None:
    if not waiting.done():
        # A copy for each caller: what is raised collects the frames that it passes.
        waiting.set_result(as_value(copy(reply)) if isinstance(reply, Exception) else reply)


def _ended(serving: asyncio.Task[None]) -> None:
    error = None if serving.cancelled() else serving.exception()
    if error is not None:
        report(BackgroundTask.STORE_CONNECTIONS, "", error)
