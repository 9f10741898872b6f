"""What a process admits of a kind of work: how much runs at once, how much waits and for whom, how many bytes it holds.

How long work may keep the event loop is in work_turns. All refusals are Overloaded, with the kind as the label by which
they are counted; a full fetch queue is Busy, since it says that an origin was not asked.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import Final, TypeAlias

from robots_core.robots.access import Busy

LATELY: Final = 10.0
"""Seconds after which what callers asked for while no slot was free counts half."""

Refused: TypeAlias = Callable[[str], None]
"""Is called with the kind of the work that is refused."""


def ignore(_kind: str) -> None:
    """Count no refusal."""


class Overloaded(Busy):
    """This process has too much to do, so the work was not begun."""

    def __init__(self, retry_after: int = 1, why: str = "This process is overloaded") -> None:
        super().__init__(retry_after, why)


_Line: TypeAlias = deque[asyncio.Future[bool]]
"""The waiting work of a caller. The result is whether it has a slot; without one it has lost its place."""


class Admission:
    """Admits as much work at once as there are `slots`, and lets `waiting` more wait.

    The callers that it is for take turns, each in the order of its work; one that asked for less lately has its first
    turn before those that asked for more. When all places are taken, a caller with less waiting work takes the place of
    the last of the caller with most. If all have one piece, that of the caller that asked for most lately makes room.
    So the work of one caller, however much it is, delays that of another by one piece each, and many callers that ask
    again and again do not keep out one that asks now and then.
    """

    def __init__(self, slots: int, waiting: int, busy: Callable[[], Exception]) -> None:
        """`busy` makes the error of work that gets no slot."""
        self._free = slots
        self._waiting_limit = waiting
        self._waiting = 0
        self._lines: dict[str, _Line] = {}  # by caller; the first is the next
        self._asked: Counter[str] = Counter()  # while no slot was free, by caller
        self._halved_at = 0.0
        self._busy = busy

    @property
    def waiting(self) -> int:
        """How much work waits for a slot."""
        return self._waiting

    async def acquire(self, caller: str, deadline: float) -> None:
        """Wait for a slot until `deadline`, by the event loop's time; `release` it afterwards.

        `caller` says for whom: an API key, or an address. Raises what `busy` makes.
        """
        if self._free > 0:
            self._free -= 1
            return
        loop = asyncio.get_running_loop()
        self._note_asked(caller, loop.time())
        if self._waiting >= self._waiting_limit:
            self._displace(caller)
        turn: asyncio.Future[bool] = loop.create_future()
        self._line(caller).append(turn)
        self._waiting += 1
        admitted = False
        try:
            async with asyncio.timeout_at(deadline):
                admitted = await turn
        except TimeoutError:
            raise self._busy() from None
        finally:
            self._leave(caller, turn, admitted=admitted)
        if not admitted:
            raise self._busy()

    def release(self) -> None:
        """Give the slot to the first work of the next caller."""
        while self._lines:
            caller = next(iter(self._lines))
            line = self._lines.pop(caller)
            turn = line.popleft()
            self._waiting -= 1
            if line:
                self._lines[caller] = line  # behind the others
            if not turn.cancelled():
                turn.set_result(True)
                return
        self._free += 1

    def _leave(self, caller: str, turn: asyncio.Future[bool], *, admitted: bool) -> None:
        if not turn.cancelled():
            if turn.result() and not admitted:
                self.release()  # cancelled before it could use the slot
            return
        line = self._lines.get(caller)
        if line is not None and turn in line:
            line.remove(turn)
            self._waiting -= 1
            if not line:
                del self._lines[caller]

    def _note_asked(self, caller: str, now: float) -> None:
        if now - self._halved_at > LATELY:
            self._halved_at = now
            self._asked = Counter({name: count // 2 for name, count in self._asked.items() if count > 1})
        self._asked[caller] += 1

    def _line(self, caller: str) -> _Line:
        """The line of the caller; a new one is before the first that is of a caller that asked for more lately."""
        line = self._lines.get(caller)
        if line is None:
            line, asked = deque(), self._asked[caller]
            before = list(takewhile(lambda name: self._asked[name] <= asked, self._lines))
            self._lines = {name: self._lines[name] for name in before} | {caller: line} | self._lines
        return line

    def _displace(self, caller: str) -> None:
        """Remove the last work of the caller with most, or raise if no other has more."""
        own, asked = len(self._lines.get(caller, ())), self._asked[caller]
        longest = max(self._lines, key=lambda it: (len(self._lines[it]), self._asked[it]), default=caller)
        most = len(self._lines[longest]) if longest != caller else 0
        if most <= own + 1 and not (most == 1 and own == 0 and self._asked[longest] > asked):
            raise self._busy()
        turn = self._lines[longest].pop()
        if not self._lines[longest]:
            del self._lines[longest]
        self._waiting -= 1
        if not turn.cancelled():
            turn.set_result(False)


class CallerShares:
    """Admits `limit` pieces of a kind of work at once, and `each` of one caller; none waits."""

    def __init__(self, kind: str, limit: int, each: int, why: str, retry_after: int, refused: Refused = ignore) -> None:
        """`why` says in words what there is too much of."""
        self._kind = kind
        self._limit = limit
        self._each = each
        self._why = why
        self._retry_after = retry_after
        self._refused = refused
        self._admitted: Counter[str] = Counter()

    @contextmanager
    def admitted(self, caller: str) -> Iterator[None]:
        """Count a piece of work while the block lasts. Raises Overloaded."""
        if self._admitted.total() >= self._limit or self._admitted[caller] >= self._each:
            self._refused(self._kind)
            raise Overloaded(self._retry_after, self._why)
        self._admitted[caller] += 1
        try:
            yield
        finally:
            self._admitted[caller] -= 1
            self._admitted += Counter()  # drop callers whose count is 0


class HeldBytes:
    """The bytes that work of a kind holds in this process, at most `limit`; `left` is the room for more."""

    def __init__(self, kind: str, limit: int, why: str, retry_after: int = 1, refused: Refused = ignore) -> None:
        """`why` says in words what there is too much of."""
        self.left = limit
        self._kind = kind
        self._why = why
        self._retry_after = retry_after
        self._refused = refused

    def take(self, size: int) -> None:
        """Hold so many bytes more, until they are given back. Raises Overloaded if there is no room."""
        if size > self.left:
            self._refused(self._kind)
            raise Overloaded(self._retry_after, self._why)
        self.add(size)

    def add(self, size: int) -> None:
        """Hold so many bytes more, also where there is no room for them."""
        self.left -= size

    def give_back(self, size: int) -> None:
        """Hold so many bytes less."""
        self.left += size

    @contextmanager
    def holding(self, size: int) -> Iterator[None]:
        """Hold so many bytes while the block lasts. Raises Overloaded if there is no room."""
        self.take(size)
        try:
            yield
        finally:
            self.give_back(size)
