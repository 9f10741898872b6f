"""What a process admits of a kind of work: how much runs at once, how much waits and for whom, how many bytes it holds.

How long work may keep the event loop is in work_turns. All refusals are Overloaded, with the kind as the label by which
they are counted; a full fetch queue is Busy, since it says that an origin was not asked.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from robots_core.robots.access import Busy

LATELY: Final = 10.0
"""Seconds after which the time for which callers held slots counts half."""

LEAST_WORK: Final = 0.001
"""Seconds that a piece of work counts as at least."""

REFUSED: Final = 0.25
"""As how many pieces of work a refused one counts, so that to ask again and again is of no use."""

MOST_REFUSED: Final = 8
"""As how many pieces all refused ones of a caller count at most, so that it is served at some time."""

Refused: TypeAlias = Callable[[str], None]
"""Is called with the kind of the work that is refused."""


def ignore(_kind: str) -> None:
    """Count no refusal."""


class Overloaded(Busy):
    """This process has too much to do, so the work was not begun."""

    def __init__(self, retry_after: int = 1, why: str = "This process is overloaded") -> None:
        super().__init__(retry_after, why)


def refusal(
    kind: str, refused: Refused, why: str = "This process is overloaded", retry_after: int = 1
) -> Callable[[], Overloaded]:
    """What makes the error of work of a kind that is not admitted, and counts it.

    `why` says in words what there is too much of.
    """

    def refuse() -> Overloaded:
        refused(kind)
        return Overloaded(retry_after, why)

    return refuse


@dataclass(slots=True, eq=False)
class _Account:
    """What a caller holds and waits for, and lately: how long it held slots, how much work it did and was refused."""

    line: deque[asyncio.Future[bool]] = field(default_factory=deque)
    """Its waiting work. The result is whether it has a slot; without one it has lost its place."""
    holds: int = 0
    seconds: float = 0.0
    pieces: float = 0.0
    refused: float = 0.0

    @property
    def counts(self) -> bool:
        """Whether it differs from that of a new caller."""
        return bool(self.line) or self.holds > 0 or self.seconds >= LEAST_WORK or self.refused >= REFUSED

    def note(self, seconds: float) -> None:
        """Add a piece of work that has ended."""
        self.seconds += seconds
        self.pieces += 1

    def halve(self, share: float) -> None:
        """Keep a share of what was lately."""
        self.seconds *= share
        self.pieces *= share
        self.refused *= share


class Admission:
    """Admits as much work at once as there are `slots`, and lets `waiting` more wait.

    The callers that it is for share the time of the slots. A slot goes to the first work of the caller that would then
    have held slots for the shortest time lately. When all places are taken, a caller takes the place of the last work
    of the one that would have held them for longest with all its waiting work, unless that is the caller itself. Work
    that has not ended counts as long as the work of its caller took on average, or as all work, if none has ended.

    So the work of one caller, however much it is and however long it takes, delays that of another by one piece each,
    and many callers, of which each has some work, do not keep out one that asks now and then or has short work.
    """

    def __init__(
        self,
        slots: int,
        waiting: int,
        busy: Callable[[], Exception],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`busy` makes the error of work that gets no slot."""
        self._free = slots
        self._waiting_limit = waiting
        self._waiting = 0
        self._accounts: dict[str, _Account] = {}
        self._lines: dict[str, _Account] = {}  # of callers with waiting work; of equal ones, the first is the next
        self._all = _Account()  # for how long all held slots
        self._halved_at = monotonic()
        self._busy = busy
        self._monotonic = monotonic

    @property
    def waiting(self) -> int:
        """How much work waits for a slot."""
        return self._waiting

    async def acquire(self, caller: str, deadline: float) -> ExitStack:
        """Wait for a slot until `deadline`, by the event loop's time. When it is closed, other work gets the slot.

        `caller` says for whom: an API key, or an address. Raises what `busy` makes.
        """
        self._halve()
        account = self._accounts.get(caller)
        if account is None:
            account = self._accounts[caller] = _Account()
        if self._free > 0:
            self._free -= 1
            account.holds += 1
        else:
            await self._wait(caller, account, deadline)
        slot = ExitStack()
        slot.callback(self._release, account, self._monotonic())
        return slot

    async def _wait(self, caller: str, account: _Account, deadline: float) -> None:
        if self._waiting >= self._waiting_limit:
            self._displace(account)
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        account.line.append(turn)
        self._lines[caller] = account
        self._waiting += 1
        admitted = False
        try:
            async with asyncio.timeout_at(deadline):
                admitted = await turn
        except TimeoutError:
            raise self._refusal(account) from None
        finally:
            if not admitted:
                self._leave(caller, account, turn)
        if not admitted:
            raise self._refusal(account)

    def _release(self, account: _Account, since: float) -> None:
        seconds = max(self._monotonic() - since, LEAST_WORK)
        account.holds -= 1
        account.note(seconds)
        self._all.note(seconds)
        self._admit_next()

    def _admit_next(self) -> None:
        while self._lines:
            caller = min(self._lines, key=lambda name: self._load(self._lines[name], 1))
            account = self._lines.pop(caller)
            turn = account.line.popleft()
            self._waiting -= 1
            if account.line:
                self._lines[caller] = account  # behind the others
            if not turn.cancelled():
                account.holds += 1
                turn.set_result(True)
                return
        self._free += 1

    def _leave(self, caller: str, account: _Account, turn: asyncio.Future[bool]) -> None:
        if not turn.cancelled():
            if turn.result():  # cancelled before it could use the slot
                account.holds -= 1
                self._admit_next()
        elif turn in account.line:
            account.line.remove(turn)
            self._waiting -= 1
            if not account.line:
                del self._lines[caller]

    def _expected(self, account: _Account) -> float:
        """For how long a piece of work of the caller holds a slot."""
        known = account if account.pieces else self._all
        return known.seconds / known.pieces if known.pieces else LEAST_WORK

    def _load(self, account: _Account, pieces: int) -> float:
        """For how long a caller would have held slots lately with so many more pieces of work."""
        asked = account.holds + pieces + min(account.refused * REFUSED, MOST_REFUSED)
        return account.seconds + asked * self._expected(account)

    def _displace(self, account: _Account) -> None:
        """Remove the last work of the caller with most, or raise if that is this one."""
        loads = {name: self._load(it, len(it.line)) for name, it in self._lines.items()}
        name = max(loads, key=loads.__getitem__, default="")
        if not loads or loads[name] <= self._load(account, len(account.line) + 1):
            raise self._refusal(account)
        longest = self._lines[name]
        turn = longest.line.pop()
        if not longest.line:
            del self._lines[name]
        self._waiting -= 1
        if not turn.cancelled():
            turn.set_result(False)

    def _refusal(self, account: _Account) -> Exception:
        account.refused += 1
        return self._busy()

    def _halve(self) -> None:
        times = int((self._monotonic() - self._halved_at) / LATELY)
        if times > 0:
            self._halved_at += times * LATELY
            for account in (self._all, *self._accounts.values()):
                account.halve(0.5**times)
            self._accounts = {name: it for name, it in self._accounts.items() if it.counts}


class CallerShares:
    """Admits `limit` pieces of a kind of work at once, and `each` of one caller; none waits."""

    def __init__(self, limit: int, each: int, busy: Callable[[], Exception]) -> None:
        """`busy` makes the error of work that is not admitted."""
        self._limit = limit
        self._each = each
        self._busy = busy
        self._admitted: Counter[str] = Counter()

    @contextmanager
    def admitted(self, caller: str) -> Iterator[None]:
        """Count a piece of work while the block lasts. Raises what `busy` makes."""
        if self._admitted.total() >= self._limit or self._admitted[caller] >= self._each:
            raise self._busy()
        self._admitted[caller] += 1
        try:
            yield
        finally:
            self._admitted[caller] -= 1
            self._admitted += Counter()  # drop callers whose count is 0


class HeldBytes:
    """The bytes that work of a kind holds in this process, at most `limit`; `left` is the room for more."""

    def __init__(self, limit: int, busy: Callable[[], Exception]) -> None:
        """`busy` makes the error of work for which there is no room."""
        self.left = limit
        self._busy = busy

    def take(self, size: int) -> None:
        """Hold so many bytes more, until they are given back. Raises what `busy` makes if there is no room."""
        if size > self.left:
            raise self._busy()
        self.add(size)

    def add(self, size: int) -> None:
        """Hold so many bytes more, also where there is no room for them."""
        self.left -= size

    def give_back(self, size: int) -> None:
        """Hold so many bytes less."""
        self.left += size

    @contextmanager
    def holding(self, size: int) -> Iterator[None]:
        """Hold so many bytes while the block lasts. Raises what `busy` makes if there is no room."""
        self.take(size)
        try:
            yield
        finally:
            self.give_back(size)
